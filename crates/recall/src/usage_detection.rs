//! Which of the notes that a context was given were used in a turn.
//!
//! Being shown proves nothing. A note was used for certain when it was named, opened or changed, or
//! when what a warning says to do instead was done; it was probably used when words turn up in the
//! answer or in what was done that the note has and neither the prompt nor another note. So a note that
//! repeats the prompt is not used by an answer that repeats it, too.

use std::collections::{HashMap, HashSet};

use anamnesis_note::{
    id::{NoteId, SHORT_ID_LENGTH},
    usage_log::Weight,
};
use anamnesis_text::terms::{Role, words};
use serde_json::Value;

/// How much is looked at of what a turn brought forth, in bytes: the answer first, then what tools
/// were given, the last first.
const MAX_OUTPUT: usize = 64 * 1024;

/// How much of a note or a prompt is looked at, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// How many words of its own a note must have in common with what was done, and which share of all of
/// them these must weigh.
const MIN_WORDS: usize = 2;
const MIN_SHARE: f64 = 0.25;

/// What the tools of our server are called.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_anamnesis_memory__", "mcp__anamnesis__"];

/// Commands that name a note without using it are not among these.
const USING_COMMANDS: [&str; 7] = [
    "connect", "edit", "history", "pathway", "pin", "show", "verify",
];

/// Words in the names of tools that name a note without using it.
const NOT_USING: [&str; 2] = ["feedback", "forget"];

/// A note that the context was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The note.
    pub note: NoteId,
    /// Its title and what was shown of its text.
    pub text: String,
    /// What it says to do instead, if it is a warning.
    pub instead: Option<String>,
    /// When it was given, milliseconds since 1970.
    pub at: i64,
}

/// A tool that ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Act<'a> {
    /// Its name.
    pub tool: &'a str,
    /// What it was given.
    pub input: &'a Value,
    /// When it was, milliseconds since 1970.
    pub at: i64,
}

/// What happened from a prompt to its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The answer.
    pub answer: &'a str,
    /// The tools that ran, in their order.
    pub acts: &'a [Act<'a>],
}

/// Returns the notes that were used, in the order in which they were given. `rarity` says how much a
/// term weighs.
pub fn uses(
    given: &[Given],
    turn: &Turn<'_>,
    rarity: impl Fn(&str) -> f64,
) -> Vec<(NoteId, Weight)> {
    if given.is_empty() || (turn.answer.is_empty() && turn.acts.is_empty()) {
        return Vec::new();
    }
    let named = named(turn);
    let output = output(turn);
    let done: HashSet<String> = terms_of(&output).into_iter().collect();
    let prompt: HashSet<String> = terms_of(clip(turn.prompt, MAX_TEXT)).into_iter().collect();
    let texts: Vec<Vec<String>> = given
        .iter()
        .map(|given| terms_of(clip(&given.text, MAX_TEXT)))
        .collect();
    let mut owners: HashMap<&str, HashSet<NoteId>> = HashMap::new();
    for (given, terms) in given.iter().zip(&texts) {
        for term in terms {
            owners.entry(term).or_default().insert(given.note);
        }
    }
    let is_own = |term: &&String| {
        !prompt.contains(*term) && owners.get(term.as_str()).is_some_and(|of| of.len() == 1)
    };
    let is_probable = |terms: &[String]| {
        let own = || terms.iter().filter(is_own);
        let found = || own().filter(|term| done.contains(*term));
        let weight = |term: &String| rarity(term);
        // Words are counted first: to weigh one costs a look into the index.
        found().count() >= MIN_WORDS
            && found().map(weight).sum::<f64>() >= MIN_SHARE * own().map(weight).sum::<f64>()
    };
    let ids: HashSet<NoteId> = given.iter().map(|given| given.note).collect();
    let named: HashSet<NoteId> = named.iter().filter_map(|name| meant(name, &ids)).collect();
    let mut used: Vec<(NoteId, Weight)> = Vec::new();
    for (given, terms) in given.iter().zip(&texts) {
        let weight = if named.contains(&given.note) || is_done_instead(given, turn.acts) {
            Weight::Explicit
        } else if is_probable(terms) {
            Weight::Implicit
        } else {
            continue;
        };
        // A note may have been given several times, each time more of it.
        match used.iter_mut().find(|(note, _)| *note == given.note) {
            Some((_, known)) => *known = weight.max(*known),
            None => used.push((given.note, weight)),
        }
    }
    used
}

/// The different terms of a text, those of identifiers whole only: one identifier is one word.
fn terms_of(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut terms = Vec::new();
    words(text, |word| {
        if word.role != Role::Part && !word.is_stop_word() && !seen.contains(word.term) {
            seen.insert(word.term.to_owned());
            terms.push(word.term.to_owned());
        }
    });
    terms
}

/// What the turn brought forth, as one text.
fn output(turn: &Turn<'_>) -> String {
    let mut text = clip(turn.answer, MAX_OUTPUT).to_owned();
    for act in turn.acts.iter().rev() {
        each_text(act.input, &mut |part| {
            let room = MAX_OUTPUT.saturating_sub(text.len() + 1);
            if room > 0 {
                text.push('\n');
                text.push_str(clip(part, room));
            }
        });
    }
    text
}

fn each_text(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, take)),
        Value::Object(members) => members.values().for_each(|item| each_text(item, take)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What may be the ids of notes that the turn names, whole or in part: `#7Q4KZ9` or a whole id in the
/// answer or in what a tool was given, and any id that a command or tool of ours was given to use.
pub fn named(turn: &Turn<'_>) -> HashSet<String> {
    let mut named = HashSet::new();
    references(clip(turn.answer, MAX_OUTPUT), &mut named);
    for act in turn.acts {
        let is_ours = OWN_TOOLS.iter().any(|prefix| act.tool.starts_with(prefix));
        if is_ours && NOT_USING.iter().any(|word| act.tool.contains(word)) {
            continue;
        }
        each_text(act.input, &mut |text| {
            let text = clip(text, MAX_OUTPUT);
            if is_ours {
                named.extend(text.split_whitespace().filter_map(id_like));
            } else if act.tool != "Bash" || !opened(text, &mut named) {
                references(text, &mut named);
            }
        });
    }
    named
}

fn references(text: &str, named: &mut HashSet<String>) {
    let mut after_sign = false;
    for run in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = run.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if let Some(id) = id_like(word)
            && (after_sign || id.len() == ID_LENGTH)
        {
            named.insert(id);
        }
        after_sign = run.ends_with('#');
    }
}

/// Adds the ids that commands of ours in a shell command were given to use. Tells whether there is a
/// command of ours, which may also name notes to be rid of them.
fn opened(command: &str, named: &mut HashSet<String>) -> bool {
    let mut is_ours = false;
    let mut words = command
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | ')'))
        .filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if word.rsplit('/').next() != Some("anamnesis") {
            continue;
        }
        is_ours = true;
        let verb = words.next().unwrap_or_default();
        let rest = words
            .clone()
            .take_while(|word| !word.contains([';', '|', '&']));
        let is_use = USING_COMMANDS.contains(&verb)
            || (verb == "feedback" && rest.clone().any(|word| word == "good"));
        if is_use {
            named.extend(rest.filter_map(id_like));
        }
    }
    is_ours
}

/// The characters of a whole id.
const ID_LENGTH: usize = 26;

/// An id, or the beginning or end of one, in the form in which ids are written.
fn id_like(word: &str) -> Option<String> {
    let word = word.trim_start_matches('#');
    let is_id = (SHORT_ID_LENGTH..=ID_LENGTH).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| word.to_ascii_uppercase())
}

/// The one note of these that a name stands for.
fn meant(name: &str, ids: &HashSet<NoteId>) -> Option<NoteId> {
    let mut found = ids.iter().filter(|id| {
        let id = id.to_string();
        id.ends_with(name) || id.starts_with(name)
    });
    let only = found.next()?;
    found.next().is_none().then_some(*only)
}

/// Tells whether a command ran that a warning says to run instead, after it was given.
fn is_done_instead(given: &Given, acts: &[Act<'_>]) -> bool {
    let Some(instead) = &given.instead else {
        return false;
    };
    // What stands between back-ticks, else all of it; a single word is in too many commands.
    let parts: Vec<&str> = instead.split('`').collect();
    let candidates: Vec<Vec<&str>> = if parts.len() >= 3 {
        parts
            .iter()
            .skip(1)
            .step_by(2)
            .map(|part| split(part))
            .collect()
    } else {
        vec![split(instead)]
    };
    let commands = acts
        .iter()
        .filter(|act| act.tool == "Bash" && act.at >= given.at);
    commands
        .filter_map(|act| act.input.get("command")?.as_str())
        .any(|command| {
            let words = split(clip(command, MAX_TEXT));
            let mut candidates = candidates.iter().filter(|words| words.len() >= 2);
            candidates.any(|candidate| {
                words
                    .windows(candidate.len())
                    .any(|window| window == candidate.as_slice())
            })
        })
}

/// The beginning of a text, of at most so many bytes.
fn clip(text: &str, length: usize) -> &str {
    let mut end = length.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn split(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STUB: &str = "01JZ00000000000000007Q4KZ9";
    const LIMITS: &str = "01JZ0000000000000000B2M6RD";

    fn given() -> Vec<Given> {
        let note = |id: &str, text: &str| Given {
            note: id.parse().unwrap(),
            text: text.to_owned(),
            instead: None,
            at: 5,
        };
        vec![
            note(
                STUB,
                "Integration tests need the stub server\n`make stub` binds port 9090; without it the \
                 login tests hang.",
            ),
            note(
                LIMITS,
                "Rate limits live in middleware/limit.rs\nThe login has ten attempts a minute.",
            ),
        ]
    }

    /// Runs a turn; `inputs` are tools with what they were given.
    fn check(prompt: &str, answer: &str, inputs: &[(&str, Value)]) -> Vec<(String, Weight)> {
        run(&given(), prompt, answer, inputs)
    }

    fn run(
        given: &[Given],
        prompt: &str,
        answer: &str,
        inputs: &[(&str, Value)],
    ) -> Vec<(String, Weight)> {
        let acts: Vec<Act<'_>> = inputs
            .iter()
            .map(|(tool, input)| Act {
                tool,
                input,
                at: 10,
            })
            .collect();
        let turn = Turn {
            prompt,
            answer,
            acts: &acts,
        };
        let found = uses(given, &turn, |_| 1.0);
        found
            .into_iter()
            .map(|(note, weight)| (note.to_string(), weight))
            .collect()
    }

    fn explicit(id: &str) -> Vec<(String, Weight)> {
        vec![(id.to_owned(), Weight::Explicit)]
    }

    #[test]
    fn a_note_that_is_named_was_used() {
        for answer in [
            "As #7Q4KZ9 says, the stub has to run.",
            "See #7q4kz9.",
            "(01JZ00000000000000007Q4KZ9)",
        ] {
            assert_eq!(check("why", answer, &[]), explicit(STUB), "{answer}");
        }
        for answer in ["commit 7Q4KZ9", "#7Q4KZ", "issue #123456", "# 7Q4KZ9", ""] {
            assert_eq!(check("why", answer, &[]), [], "{answer}");
        }
    }

    #[test]
    fn a_note_that_was_opened_or_changed_was_used() {
        let shell = |command: &str| check("why", "", &[("Bash", json!({ "command": command }))]);
        for command in [
            "anamnesis show 7Q4KZ9",
            "\"/p/bin/anamnesis\" edit 7q4kz9 --stdin <<'EOF'",
            "cd x && anamnesis verify 01JZ00000000000000007Q4KZ9",
            "anamnesis feedback 7Q4KZ9 good",
            "git commit -m 'stub first (#7Q4KZ9)'",
        ] {
            assert_eq!(shell(command), explicit(STUB), "{command}");
        }
        for command in [
            "anamnesis forget '#7Q4KZ9'",
            "anamnesis feedback 7Q4KZ9 bad",
            "anamnesis list; git show 7Q4KZ9",
            "anamnesis",
            "anamnesis show",
        ] {
            assert_eq!(shell(command), [], "{command}");
        }
        let tool = |name: &str| check("why", "", &[(name, json!({ "id": "7Q4KZ9" }))]);
        assert_eq!(
            tool("mcp__plugin_anamnesis_memory__memory_get"),
            explicit(STUB)
        );
        assert_eq!(tool("mcp__plugin_anamnesis_memory__memory_forget"), []);
        assert_eq!(tool("mcp__other__get"), []);
    }

    #[test]
    fn words_that_only_the_note_has_make_it_probable() {
        let probable = [(STUB.to_owned(), Weight::Implicit)];
        assert_eq!(
            check(
                "the login fails",
                "The integration tests hang: nothing listens on port 9090. I started the stub server.",
                &[]
            ),
            probable
        );
        let input = json!({ "command": "make stub & curl localhost:9090 # binds the port the integration needs" });
        assert_eq!(check("go on", "done", &[("Bash", input)]), probable);
        // One word is no evidence, however rare it is.
        assert_eq!(check("the login fails", "Something is on 9090.", &[]), []);
    }

    #[test]
    fn a_note_that_repeats_the_prompt_was_not_used() {
        let prompt = "integration tests need the stub server: make stub binds port 9090, else login tests hang";
        assert_eq!(check(prompt, prompt, &[]), []);
        // Nor one whose words another note has, too.
        let mut given = given();
        let text = given[0].text.clone();
        given[1].text = text;
        assert_eq!(run(&given, "why", prompt, &[]), []);
        // The same note given twice is not another one.
        given[1].note = given[0].note;
        assert_eq!(run(&given, "why", prompt, &[]).len(), 1);
    }

    #[test]
    fn common_words_weigh_little() {
        let common = ["make", "tests", "port"];
        let turn = Turn {
            prompt: "why",
            answer: "I make the tests use that port",
            acts: &[],
        };
        let stems: Vec<String> = common.iter().flat_map(|word| terms_of(word)).collect();
        let rarity = |term: &str| {
            if stems.iter().any(|s| s == term) {
                0.2
            } else {
                4.0
            }
        };
        assert_eq!(uses(&given(), &turn, rarity), []);
        assert_eq!(uses(&given(), &turn, |_| 1.0).len(), 1);
    }

    #[test]
    fn what_a_warning_says_instead_was_done_after_it() {
        let mut given = given();
        given[0].instead = Some("push with `git push --force-with-lease`".to_owned());
        let shell = |given: &[Given], command: &str| {
            run(given, "why", "", &[("Bash", json!({ "command": command }))])
        };
        let command = "cd web && git push --force-with-lease origin main";
        assert_eq!(shell(&given, command), explicit(STUB));
        assert_eq!(shell(&given, "git push --force"), []);
        given[0].at = 11;
        assert_eq!(shell(&given, command), []);
        given[0].at = 10;
        given[0].instead = Some("make migration".to_owned());
        assert_eq!(shell(&given, "make migration NAME=x"), explicit(STUB));
        // Single words are in too many commands.
        given[0].instead = Some("`make`".to_owned());
        assert_eq!(shell(&given, "make all"), []);
    }

    #[test]
    fn hostile_turns_are_read_in_bounded_time() {
        let long = "#7Q4KZ8 stub ".repeat(100_000);
        assert_eq!(
            check(&long, &long, &[("Bash", json!([[long.clone()]]))]),
            []
        );
        assert_eq!(check("", "\u{0}#\u{1F600}#", &[("", Value::Null)]), []);
    }
}
