//! Detects which injected notes a turn used.
//!
//! Being shown proves nothing. A use is certain if the note was named, opened or changed, or if a
//! warning's alternative command was run. A use is probable if the answer or the tool calls contain
//! words that a line of the note has and that neither the prompt nor another note has. So repeating
//! a note that repeats the prompt is not a use, and a long note can be used by one of its lines.

use std::collections::{HashMap, HashSet};

use anamnesis_note::id::{IdPrefix, NoteId};
use anamnesis_session::event::ToolInput;
use anamnesis_store::journal::{LastTurn, TurnEvent, Weight};
use anamnesis_text::{
    sanitize::head,
    terms::{Role, words},
};

/// How many bytes of a turn's output are read: the answer first, then tool inputs, the last first.
const MAX_OUTPUT: usize = 64 * 1024;

/// How many bytes of a note or a prompt are read.
const MAX_TEXT: usize = 8 * 1024;

/// The minimum number of the note's own words in the output, and the minimum share of their weight in
/// one line and in the whole note.
const MIN_WORDS: usize = 2;
const MIN_SHARE_OF_LINE: f64 = 0.5;
const MIN_SHARE_OF_NOTE: f64 = 0.25;

/// A line with more bytes counts as several, one for each sentence.
const MAX_LINE: usize = 200;

/// Prefixes of our server's tools.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_anamnesis_memory__", "mcp__anamnesis__"];

/// Commands that use a note. Other commands may name a note without using it.
const USING_COMMANDS: [&str; 7] = [
    "connect", "edit", "history", "pathway", "pin", "show", "verify",
];

/// Parts of tool names that name a note without using it.
const NOT_USING: [&str; 2] = ["feedback", "forget"];

/// A note that was shown to the context.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenNote {
    /// The note.
    pub note: NoteId,
    /// Its title and the shown part of its body.
    pub text: String,
    /// A warning's alternative.
    pub instead: Option<String>,
    /// When it was shown, in milliseconds since 1970.
    pub at: i64,
}

/// Returns the notes that a turn with this answer used, in the order of `given`. `rarity` returns a
/// term's idf.
pub fn detect(
    given: &[GivenNote],
    turn: &LastTurn,
    answer: &str,
    rarity: impl Fn(&str) -> f64,
) -> Vec<(NoteId, Weight)> {
    if given.is_empty() || (answer.is_empty() && turn.events.is_empty()) {
        return Vec::new();
    }
    let named = named(&turn.events, answer);
    let output = output(&turn.events, answer);
    let done: HashSet<String> = terms_of(&output).into_iter().collect();
    let prompt = turn.prompt.as_deref().unwrap_or_default();
    let prompt: HashSet<String> = terms_of(head(prompt, MAX_TEXT)).into_iter().collect();
    let texts: Vec<Vec<Vec<String>>> = given
        .iter()
        .map(|given| {
            lines_of(head(&given.text, MAX_TEXT))
                .map(terms_of)
                .collect()
        })
        .collect();
    let mut owners: HashMap<&str, HashSet<NoteId>> = HashMap::new();
    for (given, lines) in given.iter().zip(&texts) {
        for term in lines.iter().flatten() {
            owners.entry(term).or_default().insert(given.note);
        }
    }
    let is_own = |term: &&String| {
        !prompt.contains(*term) && owners.get(term.as_str()).is_some_and(|of| of.len() == 1)
    };
    let has_share = |terms: &HashSet<&String>, min_share: f64| {
        let own = || terms.iter().copied().filter(is_own);
        let found = || own().filter(|term| done.contains(*term));
        let weight = |term: &String| rarity(term);
        // Counting comes first, because weighing a term needs an index lookup.
        found().count() >= MIN_WORDS
            && found().map(weight).sum::<f64>() >= min_share * own().map(weight).sum::<f64>()
    };
    let is_probable = |lines: &[Vec<String>]| {
        let mut parts = lines.iter().map(|line| line.iter().collect());
        parts.any(|line| has_share(&line, MIN_SHARE_OF_LINE))
            || has_share(&lines.iter().flatten().collect(), MIN_SHARE_OF_NOTE)
    };
    let ids: HashSet<NoteId> = given.iter().map(|given| given.note).collect();
    let named: HashSet<NoteId> = named
        .iter()
        .filter_map(|name| only_match(name, &ids))
        .collect();
    let mut used: Vec<(NoteId, Weight)> = Vec::new();
    for (given, lines) in given.iter().zip(&texts) {
        let weight = if named.contains(&given.note) || is_done_instead(given, &turn.events) {
            Weight::Explicit
        } else if is_probable(lines) {
            Weight::Implicit
        } else {
            continue;
        };
        // A note may have been shown several times, each time more of it.
        match used.iter_mut().find(|(note, _)| *note == given.note) {
            Some((_, known)) => *known = weight.max(*known),
            None => used.push((given.note, weight)),
        }
    }
    used
}

/// Splits a text into lines, and long lines into sentences.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let end = if line.len() > MAX_LINE { ". " } else { "\n" };
        line.split(end)
    })
}

/// Returns the distinct terms of a text. An identifier counts as one term.
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

/// Returns the turn's output as one text.
fn output(calls: &[TurnEvent], answer: &str) -> String {
    let mut text = head(answer, MAX_OUTPUT).to_owned();
    for call in calls.iter().rev() {
        for part in call.input.iter().flat_map(ToolInput::texts) {
            let room = MAX_OUTPUT.saturating_sub(text.len() + 1);
            if room > 0 {
                text.push('\n');
                text.push_str(head(part, room));
            }
        }
    }
    text
}

/// Returns strings that may be ids of notes named in the turn: `#7Q4KZ9` or a full id in the answer
/// or a tool input, and any id passed to one of our commands or tools that uses notes.
fn named(calls: &[TurnEvent], answer: &str) -> HashSet<IdPrefix> {
    let mut named = HashSet::new();
    add_named_ids(head(answer, MAX_OUTPUT), &mut named);
    for call in calls {
        let is_ours = OWN_TOOLS.iter().any(|prefix| call.tool.starts_with(prefix));
        if is_ours && NOT_USING.iter().any(|word| call.tool.contains(word)) {
            continue;
        }
        for text in call.input.iter().flat_map(ToolInput::texts) {
            let text = head(text, MAX_OUTPUT);
            if is_ours {
                let words = text.split_whitespace();
                named.extend(words.filter_map(|word| IdPrefix::parse(word).ok()));
            } else if call.tool != "Bash" || !add_used_ids(text, &mut named) {
                add_named_ids(text, &mut named);
            }
        }
    }
    named
}

fn add_named_ids(text: &str, named: &mut HashSet<IdPrefix>) {
    let mut after_sign = false;
    for run in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = run.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if after_sign || word.len() == ID_LENGTH {
            named.extend(IdPrefix::parse(word).ok());
        }
        after_sign = run.ends_with('#');
    }
}

/// Adds ids passed to our commands in a shell command. Returns whether it has one of our commands,
/// which may also name a note to delete it.
fn add_used_ids(command: &str, named: &mut HashSet<IdPrefix>) -> bool {
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
            named.extend(rest.filter_map(|word| IdPrefix::parse(word).ok()));
        }
    }
    is_ours
}

/// The length of a full id.
const ID_LENGTH: usize = 26;

/// Returns the only note that a name can stand for.
fn only_match(name: &IdPrefix, ids: &HashSet<NoteId>) -> Option<NoteId> {
    let mut found = ids.iter().filter(|id| name.matches(&id.to_string()));
    let only = found.next()?;
    found.next().is_none().then_some(*only)
}

/// Returns whether a warning's alternative command was run after the warning was shown.
fn is_done_instead(given: &GivenNote, calls: &[TurnEvent]) -> bool {
    let Some(instead) = &given.instead else {
        return false;
    };
    // The text between backticks, or the whole text. A single word occurs in too many commands.
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
    let commands = calls
        .iter()
        .filter(|call| call.tool == "Bash" && call.at >= given.at);
    commands
        .filter_map(|call| call.input.as_ref()?.command.as_deref())
        .any(|command| {
            let words = split(head(command, MAX_TEXT));
            let mut candidates = candidates.iter().filter(|words| words.len() >= 2);
            candidates.any(|candidate| {
                words
                    .windows(candidate.len())
                    .any(|window| window == candidate.as_slice())
            })
        })
}

fn split(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STUB: &str = "01JZ00000000000000007Q4KZ9";
    const LIMITS: &str = "01JZ0000000000000000B2M6RD";

    fn given() -> Vec<GivenNote> {
        let note = |id: &str, text: &str| GivenNote {
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

    /// Detects uses in a turn; `inputs` are tools with their inputs.
    fn check(prompt: &str, answer: &str, inputs: &[(&str, Value)]) -> Vec<(String, Weight)> {
        run(&given(), prompt, answer, inputs)
    }

    fn run(
        given: &[GivenNote],
        prompt: &str,
        answer: &str,
        inputs: &[(&str, Value)],
    ) -> Vec<(String, Weight)> {
        let found = detect(given, &turn(prompt, inputs), answer, |_| 1.0);
        found
            .into_iter()
            .map(|(note, weight)| (note.to_string(), weight))
            .collect()
    }

    fn turn(prompt: &str, inputs: &[(&str, Value)]) -> LastTurn {
        let events = inputs.iter().map(|(tool, input)| TurnEvent {
            tool: (*tool).to_owned(),
            input: Some(input.clone().into()),
            at: 10,
        });
        LastTurn {
            number: 1,
            prompt: Some(prompt.to_owned()),
            events: events.collect(),
        }
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
    fn own_words_in_the_output_are_a_probable_use() {
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
    fn one_line_of_a_long_note_is_a_use() {
        let lines = |number: usize| {
            format!(
                "Component{number} stores gadget{number} beside widget{number}, for reason{number}."
            )
        };
        let mut given = given();
        for separator in ["\n", " "] {
            let long: Vec<String> = (0..40).map(lines).collect();
            given[0].text = format!("Notes\n{}", long.join(separator));
            let answer = "So component17 has its gadget17 beside it, hence reason17.";
            let used = [(STUB.to_owned(), Weight::Implicit)];
            assert_eq!(run(&given, "why", answer, &[]), used, "{separator:?}");
            // Words from many lines are no line.
            let scattered = "component1 gadget2 widget3 reason4 component5 gadget6";
            assert_eq!(run(&given, "why", scattered, &[]), [], "{separator:?}");
        }
    }

    #[test]
    fn a_note_that_repeats_the_prompt_was_not_used() {
        let prompt = "integration tests need the stub server: make stub binds port 9090, else login tests hang";
        assert_eq!(check(prompt, prompt, &[]), []);
        // Words that another note has, too, are no evidence.
        let mut given = given();
        let text = given[0].text.clone();
        given[1].text = text;
        assert_eq!(run(&given, "why", prompt, &[]), []);
        // The same note shown twice does not count as another note.
        given[1].note = given[0].note;
        assert_eq!(run(&given, "why", prompt, &[]).len(), 1);
    }

    #[test]
    fn common_words_weigh_little() {
        let common = ["make", "tests", "port"];
        let turn = turn("why", &[]);
        let answer = "I make the tests use that port";
        let stems: Vec<String> = common.iter().flat_map(|word| terms_of(word)).collect();
        let rarity = |term: &str| {
            if stems.iter().any(|s| s == term) {
                0.2
            } else {
                4.0
            }
        };
        assert_eq!(detect(&given(), &turn, answer, rarity), []);
        assert_eq!(detect(&given(), &turn, answer, |_| 1.0).len(), 1);
    }

    #[test]
    fn running_the_alternative_of_a_warning_is_a_use() {
        let mut given = given();
        given[0].instead = Some("push with `git push --force-with-lease`".to_owned());
        let shell = |given: &[GivenNote], command: &str| {
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
        // A single word occurs in too many commands.
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
