use proptest::prelude::*;

use super::*;
use anamnesis_testkit::assert_linear;

fn check(answer: &str, expected: &[&str]) {
    assert_eq!(next_steps(answer), expected, "{answer:?}");
}

#[test]
fn labels() {
    for (answer, step) in [
        ("Next: the cart.", "the cart."),
        ("Limits are in, tests pass. Next: the cart.", "the cart."),
        ("Limits are in; Next: the cart.", "the cart."),
        ("Done! **Next:** the cart.", "the cart."),
        ("**Next steps:** wire the cart", "wire the cart"),
        ("**Next step**: wire the cart", "wire the cart"),
        ("__Next__: wire the cart", "wire the cart"),
        ("- Next: wire the cart", "wire the cart"),
        ("3. Remaining: the till", "the till"),
        ("Next — the cart", "the cart"),
        ("Next – the cart", "the cart"),
        ("Next up: the cart", "the cart"),
        ("What's next: the cart", "the cart"),
        ("The next step: the cart", "the cart"),
        ("Suggested next steps (optional): the cart", "the cart"),
        ("🔜 Next: the cart", "the cart"),
        ("NEXT: the cart", "the cart"),
        ("TODO: tests for the till", "tests for the till"),
        ("TODO(ana): tests for the till", "tests for the till"),
        ("To do: tests for the till", "tests for the till"),
        ("Still open: the licence", "the licence"),
        ("Remaining: 3 of 5 tables", "3 of 5 tables"),
        ("Follow-up: delete `Cart::old`", "delete `Cart::old`"),
        ("Not yet done: the docs", "the docs"),
        ("What’s left: the docs", "the docs"),
        ("- [ ] write the docs", "write the docs"),
        ("1. [ ] write the docs", "write the docs"),
        (
            "Next: None of the tables has an index yet",
            "None of the tables has an index yet",
        ),
        ("Next: `next()` returns twice", "`next()` returns twice"),
    ] {
        check(answer, &[step]);
    }
}

#[test]
fn advice_that_names_nothing_is_no_step() {
    let answer = "Next steps:\n- Review the design for any further tweaks\n- Review `design.md`\n\
        - Share the document with stakeholders\n- Write the tests of the till";
    check(
        answer,
        &["Review `design.md`", "Write the tests of the till"],
    );
}

#[test]
fn labels_in_other_languages() {
    for (answer, step) in [
        ("Fertig. Als Nächstes: der Warenkorb.", "der Warenkorb."),
        ("Nächste Schritte: der Warenkorb", "der Warenkorb"),
        ("Offen: die Lizenz", "die Lizenz"),
        ("Próximos pasos: el carrito", "el carrito"),
        ("Listo. Siguiente paso: el carrito", "el carrito"),
        ("Prochaines étapes : le panier", "le panier"),
        ("Reste à faire\u{a0}: le panier", "le panier"),
        ("测试通过。下一步：购物车。", "购物车。"),
        ("下一步:购物车", "购物车"),
        ("待办：文档", "文档"),
        ("テストは通りました。次：カート", "カート"),
        ("次のステップ: カート", "カート"),
    ] {
        check(answer, &[step]);
    }
}

#[test]
fn other_text_names_no_step() {
    for answer in [
        "",
        "All done.",
        "The next line holds the name.",
        "Next.js is up to date.",
        "Next.js: the router is new",
        "Next, the parser reads the token.",
        "next: the pointer to the next node",
        "- next: the pointer to the next node",
        "`Next`: goes on",
        "\"Next\": 1,",
        "'Next': 1,",
        "Next:5",
        "Next::new() panics",
        "The step after the next: deploy",
        "What comes Next: nobody knows",
        "The list of TODO comments is in docs/todo.md",
        "TODO comments: 14 were found",
        "Todo-MVC: a sample",
        "Remaining time: 5 minutes",
        "Disk space remaining: 5 GiB",
        "Offenbar: ein Fehler",
        "次回: 未定",
        "下一步骤见文档：无",
        "> Next: what you wrote",
        "```\nNext: in code\n```",
        "~~~ text\nTODO: in code\n```\nTODO: still in code\n~~~",
        "```md\n- [ ] in code",
        "- [x] done already",
        "- [X] done already",
        "[ ] is an empty array",
        "Next: none.",
        "Next steps: None required.",
        "Remaining: nothing, all of it is in.",
        "TODO: n/a",
        "Offen: nichts.",
        "Still open: -",
        "Next steps:",
        "## Next steps",
        "## Next stop: Berlin is nice",
        "See https://next.example/TODO:1 for it",
    ] {
        check(answer, &[]);
    }
}

#[test]
fn lists_below_a_label() {
    for (answer, steps) in [
        (
            "Done.\n\nNext steps:\n\n1. the cart\n2. the till\n\nShall I go on?",
            &["the cart", "the till"][..],
        ),
        (
            "## Next steps\n- **Cart**: wire it\n- till\n\n## Notes\n- no step",
            &["Cart: wire it", "till"],
        ),
        ("**Next steps**\n* the cart", &["the cart"]),
        ("**Next steps:**\n* the cart", &["the cart"]),
        ("### What's next\nThe cart.\nNot this.", &["The cart."]),
        ("Next steps:\nThe cart.\n- not this", &["The cart."]),
        (
            "Next steps:\n- the cart\n  wraps to here\n    - a detail\n- the till",
            &["the cart", "the till"],
        ),
        (
            "- Done: limits\n- Next steps:\n  - the cart\n- Changed: src/a.rs",
            &["the cart"],
        ),
        (
            "Next, these: no\nTODO:\n- [x] a\n- [ ] b\n- ~~c~~\n- ✅ d\n- e",
            &["b", "e"],
        ),
        ("Next: two things remain:\n- a\n- b", &["a", "b"]),
        ("Next steps:\n## Other\n- a", &[]),
        ("Next steps:\n- none", &[]),
        ("Next: a\n\n- no step", &["a"]),
        ("TODO: a. Next: b. Done.", &["a.", "b. Done."]),
        ("Next: a\nNext: a\nNext: b", &["a", "b"]),
        (
            "Next steps:\n- a\n- b\n- c\n- d\n- e\n- f",
            &["a", "b", "c", "d", "e"],
        ),
        (
            "```rust\nlet a = 1;\n```\nNext: the cart\n```` md\n```\nNext: no\n````\nTODO: till",
            &["the cart", "till"],
        ),
        ("```inline``` code\nNext: the cart", &["the cart"]),
    ] {
        check(answer, steps);
    }
}

#[test]
fn long_steps_are_cut() {
    let steps = next_steps(&format!("Next: {}", "é ".repeat(4_000)));
    assert_eq!(steps.len(), 1);
    assert_eq!(steps.first().map_or(0, |step| step.chars().count()), 200);
}

#[test]
fn the_work_is_linear() {
    for unit in [" ", "Next. ", "Next: ", "- ", "(", "``` ", "1", "。"] {
        let text = |size: usize| format!("a{}b", unit.repeat(size / unit.len()));
        let (small, large) = (text(1 << 13), text(1 << 17));
        assert_linear(unit, || next_steps(&small), || next_steps(&large));
    }
}

/// Generates texts of the parts that matter to the reader.
fn answers() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "Next",
        "Next steps",
        "TODO",
        "下一步",
        "：",
        ":",
        ": ",
        ". ",
        "。",
        "- ",
        "[ ] ",
        "[x] ",
        "1. ",
        "**",
        "#",
        "# ",
        "```",
        "~~~~",
        "> ",
        "\n",
        "\n\n",
        "  ",
        "é",
        "cart",
        "none",
        "(",
        ")",
        " — ",
        "`",
        "\u{a0}",
        "\t",
        "🔜",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn steps_are_few_and_short(text in prop_oneof![answers(), any::<String>()]) {
        let steps = next_steps(&text);
        prop_assert!(steps.len() <= MAX_STEPS);
        for step in &steps {
            prop_assert!(step.chars().count() <= MAX_STEP && !step.trim().is_empty());
            prop_assert!(!step.contains('\n'));
        }
    }

    #[test]
    fn a_named_step_is_found(step in "[a-z]{4,20}( [a-z]{4,20}){0,5}", before in "[A-Z][a-z ]{0,40}") {
        prop_assume!(is_step(&step));
        let found = next_steps(&format!("{before}. Next: {step}"));
        prop_assert_eq!(found, vec![step]);
    }
}
