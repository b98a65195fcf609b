use super::*;

fn was(earlier: &str, later: &str) -> Option<String> {
    let [earlier, later] = [earlier, later].map(|text| Rulings::parse("", text));
    earlier
        .amended_by(&later)
        .into_iter()
        .next()
        .map(|amendment| amendment.was)
}

#[test]
fn a_later_value_replaces_an_earlier_one() {
    let mut wrong = Vec::new();
    for (earlier, later, expected) in [
        ("We use tabs.", "No, use spaces instead of tabs.", "tabs"),
        (
            "Storybook stays part of the component previews.",
            "Storybook is gone, look at the docs site.",
            "Storybook",
        ),
        (
            "The API server listens on port 8080.",
            "The API server listens on port 9090 now.",
            "8080",
        ),
        (
            "We use Redux for state management.",
            "Switch from Redux to Zustand.",
            "Redux",
        ),
        (
            "use redux for the dashboard state",
            "drop redux, it is too heavy",
            "redux",
        ),
        (
            "Call the endpoint `/v1/users`.",
            "Rename `/v1/users` to `/v1/members`.",
            "v1/users",
        ),
        (
            "Deploy with `make deploy`.",
            "Don't use `make deploy` any more, run `just ship`.",
            "make deploy",
        ),
        (
            "Cache entries expire after 30 minutes.",
            "Cache entries expire after 2 hours now.",
            "30 minutes",
        ),
        (
            "Wir verwenden npm im Frontend.",
            "Ab jetzt pnpm statt npm im Frontend.",
            "npm",
        ),
        (
            "Usamos MySQL para los pedidos.",
            "Ya no usamos MySQL, pasamos a Postgres.",
            "MySQL",
        ),
        (
            "On utilise Jest pour les tests.",
            "On n'utilise plus Jest, on passe à Vitest.",
            "Jest",
        ),
        (
            "Usamos Jenkins para o deploy.",
            "Trocar Jenkins por GitHub Actions.",
            "Jenkins",
        ),
        (
            "我们使用 Redux 管理状态。",
            "不再使用 Redux，改用 Zustand。",
            "Redux",
        ),
        (
            "Используем Jest для тестов.",
            "Больше не используем Jest, переходим на Vitest.",
            "Jest",
        ),
        ("Logs go to stdout.", "Logs go to stdout → Loki.", "stdout"),
    ] {
        let found = was(earlier, later);
        if found.as_deref() != Some(expected) {
            wrong.push(format!(
                "{earlier} | {later}: {found:?}, expected {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_about_something_else_replaces_nothing() {
    let mut wrong = Vec::new();
    for (earlier, later) in [
        (
            "The auth service listens on port 8080.",
            "The billing service listens on port 8081.",
        ),
        ("Use pnpm for the frontend.", "Use cargo for the backend."),
        (
            "We use Redis for the session cache.",
            "We use Redis for the job queue.",
        ),
        (
            "We use Postgres for the orders.",
            "Postgres needs the extension pgcrypto.",
        ),
        ("Use tabs in Makefiles.", "Use tabs in Makefiles."),
        ("We use pnpm instead of npm.", "Run npm never."),
        (
            "Storybook stays part of the component previews.",
            "The Storybook theme is gone.",
        ),
        ("Retry failed uploads 3 times.", "The queue has 8 workers."),
        (
            "The parser lives in src/parse.rs.",
            "Remove the debug print from src/parse.rs.",
        ),
    ] {
        if let Some(found) = was(earlier, later) {
            wrong.push(format!("{earlier} | {later}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns whether the later text is about the subject of the earlier one. Each word is as rare as
/// in a store that has it in few notes.
fn may_change(earlier: &str, later: &str, question: &str) -> bool {
    let [earlier, later] = [earlier, later].map(|text| Rulings::parse("", text));
    let asked = crate::terms::terms(question).into_iter().collect();
    let found = earlier.followed_by(&later, Focus::Asked(&asked), &|_| 0.8);
    found.is_some()
}

#[test]
fn a_later_text_about_the_same_subject_may_change_it_in_any_words() {
    for (earlier, later, question) in [
        (
            "I picked Jest for the unit tests.",
            "Jest turned out badly, take Vitest.",
            "why are the unit tests broken?",
        ),
        (
            "redux is our choice for the dashboard.",
            "zustand is better than redux.",
            "what is behind the dashboard?",
        ),
        (
            "We agreed on `shop_` for the prefix.",
            "`shop_` grew into `store_`.",
            "which prefix do we have?",
        ),
        (
            "The session cookie is `sid`.",
            "`__session` is what `sid` is called.",
            "where is the session cookie?",
        ),
        (
            "The timeout of the session is 30 minutes.",
            "Session timeout: 2 hours",
            "what is the session timeout?",
        ),
        (
            "Uploads above 25 MB are rejected.",
            "Designers send huge files: uploads up to 200 MB pass.",
            "which uploads are rejected?",
        ),
        (
            "Все письма отправляет Sendmail.",
            "Postfix разбирает очередь, Sendmail падал.",
            "что отправляет письма?",
        ),
    ] {
        assert!(
            may_change(earlier, later, question),
            "{earlier} | {later} | {question}"
        );
    }
}

#[test]
fn a_later_text_about_another_subject_changes_nothing() {
    for (earlier, later, question) in [
        (
            "The auth service listens on 8080.",
            "Webhooks are signed with HMAC.",
            "which port has the auth service?",
        ),
        (
            "The billing service listens on port 8081.",
            "The search service listens on port 8082.",
            "which port has the billing service?",
        ),
        (
            "We use Postgres for the orders.",
            "We use Postgres for the orders.",
            "what is behind the orders?",
        ),
        (
            "We use Jest for the unit tests.",
            "**Outcome:** Jest is green, and Vitest is installed too.",
            "how do the unit tests run?",
        ),
        (
            "Feature flags are read from flags.toml.",
            "Use feature branches, squash on merge.",
            "where are feature flags read from?",
        ),
        (
            "The timeout of the session is 30 minutes.",
            "The timeout of the session is 30 minutes.",
            "what is the session timeout?",
        ),
    ] {
        assert!(
            !may_change(earlier, later, question),
            "{earlier} | {later} | {question}"
        );
    }
}

#[test]
fn what_a_change_adds_is_followed() {
    let [first, second, last] = [
        "npm is the package manager.",
        "I'd rather have pnpm than npm.",
        "pnpm made trouble again, bun took its place.",
    ]
    .map(|text| Rulings::parse("", text));
    let of = Focus::Change { at: 0, of: &first };
    assert!(second.followed_by(&last, of, &|_| 0.8).is_some());
    let other = Rulings::parse("", "I'd rather have NATS than RabbitMQ.");
    assert!(second.followed_by(&other, of, &|_| 0.8).is_none());
}

#[test]
fn a_question_changes_no_note() {
    let earlier = Rulings::parse(
        "Integration tests need the stub server",
        "`make stub` binds port 9090; without it the login tests hang.",
    );
    let later = Rulings::parse(
        "Why do the integration tests hang without the stub server?",
        "**Said:**\n- Why do the integration tests hang without the stub server?\n",
    );
    assert!(earlier.amended_by(&later).is_empty());
}
