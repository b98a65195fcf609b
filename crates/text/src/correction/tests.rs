use super::*;

/// Reads a note of a case: `title / body`, or the parts of a session's note.
fn note(text: &str) -> (String, String, NoteText) {
    if text.starts_with('[') {
        let body = text.replace('[', "**").replace("] ", ":** ");
        (String::new(), body, NoteText::Session)
    } else {
        let (title, body) = text.split_once(" / ").unwrap();
        (title.to_owned(), body.to_owned(), NoteText::Written)
    }
}

/// Returns what the later text corrects.
fn corrected(earlier: &str, later: &str) -> Option<Correction> {
    let [earlier, later] = [earlier, later].map(note);
    // A session's note corrects only those of sessions.
    if earlier.2 == NoteText::Written && later.2 == NoteText::Session {
        return None;
    }
    let earlier = Statements::parse(&earlier.0, &earlier.1, earlier.2);
    let later = Statements::parse(&later.0, &later.1, later.2);
    let mut given_up = later.given_up().into_iter();
    given_up.find_map(|given_up| earlier.corrected_by(&later, &given_up))
}

#[test]
fn corrections_are_told_from_siblings() {
    let (mut told, mut right, mut all) = (0, 0, 0);
    let mut wrong = Vec::new();
    let lines = include_str!("pairs.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(" | ").collect();
        let [answer, _, earlier, later] = fields[..] else {
            panic!("{line}");
        };
        let is_correction = answer == "yes";
        let is_told = corrected(earlier, later).is_some();
        all += usize::from(is_correction);
        told += usize::from(is_told);
        right += usize::from(is_told && is_correction);
        if is_told != is_correction {
            wrong.push(line);
        }
    }
    assert!(
        100 * right >= 95 * told,
        "precision {right} of {told}: {wrong:#?}"
    );
    assert!(
        100 * right >= 70 * all,
        "recall {right} of {all}: {wrong:#?}"
    );
}

#[test]
fn a_correction_names_the_old_and_the_new_value() {
    let earlier = "Port / The api listens on port 8080.";
    let found = corrected(
        earlier,
        "Port / The api moved from port 8080 to 9090. It is faster.",
    );
    let found = found.unwrap();
    assert_eq!(found.was, "8080");
    assert_eq!(
        (found.old.as_str(), found.new.as_deref()),
        ("#8080", Some("#9090"))
    );
    assert_eq!(found.says, "The api moved from port 8080 to 9090.");
}

#[test]
fn a_value_that_the_later_text_also_states_is_not_given_up() {
    let earlier = "State / The state is in Redux.";
    for (later, is_told) in [
        ("State / The state is no longer in Redux.", true),
        (
            "State / The state is no longer in Redux. Redux was too much code.",
            true,
        ),
        (
            "State / The state is no longer in Redux. The forms stay on Redux.",
            false,
        ),
        ("State / Is the state no longer in Redux?", false),
    ] {
        assert_eq!(corrected(earlier, later).is_some(), is_told, "{later}");
    }
}

#[test]
fn values_are_given_up_in_many_words() {
    for later in [
        "The state is no longer in Redux.",
        "The state is not in Redux any more, but in Zustand.",
        "We moved from Redux to Zustand.",
        "We moved the state from Redux to Zustand.",
        "Redux is gone.",
        "Redux was replaced by Zustand.",
        "We replaced Redux with Zustand.",
        "Instead of Redux we use Zustand now.",
        "The state is in Zustand instead of Redux.",
        "The state is in Zustand, not Redux.",
        "We don't use Redux anymore.",
        "We got rid of Redux.",
        "The state used to be in Redux.",
        "Wir nutzen Redux nicht mehr.",
        "Wir nutzen Zustand statt Redux.",
        "Wir sind von Redux auf Zustand umgestellt.",
        "En lugar de Redux usamos Zustand.",
        "On utilise Zustand au lieu de Redux.",
        "Usamos Zustand em vez de Redux.",
        "Мы используем Zustand вместо Redux.",
        "不再使用 Redux，改用 Zustand。",
        "Redux ではなく Zustand を使う。",
    ] {
        let later = format!("State / {later}");
        let found = corrected("State / The state is in Redux.", &later);
        assert_eq!(found.map(|it| it.was).as_deref(), Some("Redux"), "{later}");
    }
}

#[test]
fn an_order_for_the_step_at_hand_gives_nothing_up() {
    let earlier = "[Said] Test changes with `bun run` instead of `shop`.";
    assert!(corrected(earlier, "[Said] Use `shop`, not `bun run`.").is_some());
    assert!(corrected(earlier, "[Said] just run using `shop`, not `bun run`.").is_none());
}

#[test]
fn a_sentence_without_a_phrase_is_not_split_into_tokens() {
    let body = "We do not know it. More about this in the notes from May. Redux is gone.";
    let statements = Statements::parse("State", body, NoteText::Written);
    assert_eq!(statements.given_up().len(), 1);
    let is_split = |sentence: &Sentence<'_>| sentence.tokens.get().is_some();
    let split = statements.sentences.iter().map(is_split);
    // The others are, too, to see whether one states the value.
    assert!(split.eq([true; 4]));
    let body = body.replace("is gone", "is here");
    let statements = Statements::parse("State", &body, NoteText::Written);
    assert_eq!(statements.given_up(), []);
    assert!(!statements.sentences.iter().any(is_split));
}
