//! Chooses the title of a session's note: what names the session by construction first, then what was
//! asked, committed and told.

use std::collections::HashSet;

use anamnesis_text::{
    clean::{one_line, without_machine_paths},
    word_list::WordTable,
};

use super::{ParsedDigest, SessionDigest, TypedPrompt, answer, plan};
use crate::{
    declared,
    directive::is_question,
    phrases::{Words, is_dense, rest_after, sum_of_marks},
    prose::{names_error, shorten},
};

/// The maximum length of a title, in characters.
pub(super) const MAX_TITLE: usize = 80;

/// How many sentences of a prompt are read.
const MAX_SENTENCES: usize = 8;

/// Words of English that name nothing: function words, and words for any work on any code.
const COMMON: &str = "\
    a|able|about|above|actually|after|again|all|already|also|always|am|an|and|another|any|anything|are|as|\
    at|background|be|been|before|being|below|best|better|bit|both|branch|but|by|call|can|change|changed|changes|\
    check|claude|code|codebase|commit|commits|complete|context|continue|correct|correctly|could|current|currently|\
    description|details|did|do|does|doing|don't|done|down|each|error|errors|ever|every|everyone|everything|explain|fail|failing|fails|file|files|\
    fill|finally|find|first|fix|following|for|from|fully|get|getting|give|go|goal|goals|going|got|had|happened|has|\
    have|hello|help|here|hey|hi|how|however|i|i'd|i'm|i've|if|implement|in|instructions|into|is|issue|issues|it|items|it's|its|\
    job|just|keep|kind|know|let|let's|like|little|look|looking|looks|lot|made|make|making|me|mean|means|\
    merge|merged|more|most|much|my|need|needed|needs|never|new|next|no|not|now|of|ok|okay|on|one|only|or|\
    other|our|out|over|overview|part|parts|pass|passed|passes|passing|plan|please|point|possible|pr|present|problem|\
    problems|project|pull|push|ran|read|ready|really|repo|request|result|results|resume|review|right|run|\
    running|same|see|seems|should|show|so|some|someone|something|sort|start|started|starting|step|steps|\
    still|successfully|summary|sure|take|task|tell|test|tests|than|that|the|their|them|then|there|there's|theres|\
    these|they|thing|things|think|this|those|time|to|today|too|try|unit|up|update|us|use|using|version|want|\
    was|way|we|we're|well|were|what|what's|when|where|whether|which|while|who|why|will|wish|with|work|\
    worked|working|works|worth|would|write|written|wrong|yes|yesterday|yet|you|your";

/// Beginnings of sentences that report or introduce instead of asking.
const REPORTING: &str = "\
    i'm|im|i've|ive|i did|i just|i have|i got|i get|i see|i found|we have|we had|we're|this|that|these|\
    there|there's|it|it's|the|hello|hi|hey|for the|in the|here|here's|when|you're thinking|you think";

/// Phrases of sentences that only name the material.
const LOOKING: &str = "look at|take a look|read|review|check out";

/// Beginnings of sentences that continue something else.
const CONTINUING: &[&str] = &[
    "continue working on ",
    "continue with ",
    "keep working on ",
    "start working on ",
    "start with ",
    "work on ",
    "resume ",
    "continue ",
];

/// Phrases that ask.
const ASKING: &str = "\
    please|can you|could you|would you|will you|can we|could we|should we|we should|you should|help me|i want|\
    i'd like|i would like|i need|we need|need to|needs to|we want|let's|lets|should|time to";

/// Phrases after which the request itself begins, in a sentence that is too long for a title.
const LEADS: &[&str] = &[
    "your task is to ",
    "i would like to know ",
    "i want to know ",
    "help me to ",
    "help me ",
    "i want you to ",
    "i want to ",
    "i would like to ",
    "i'd like to ",
    "i need you to ",
    "i need to ",
    "we need to ",
    "we should ",
    "can you please ",
    "can you ",
    "could you please ",
    "could you ",
    "please ",
];

/// Beginnings of a question, which the title keeps.
const QUESTIONS: &[&str] = &["is there ", "are there "];

/// Returns the title; `None` if nothing says what the session was about.
pub(super) fn title(parsed: &ParsedDigest) -> Option<String> {
    let digest = parsed.digest;
    let line = |text: &str| without_machine_paths(text, digest.folder.as_deref()).into_owned();
    let asked = |text: String| without_place(&line(&text)).to_owned();
    let name = digest.name.as_deref().map(line);
    let plan = || {
        plan::approved(digest)
            .and_then(plan::heading)
            .map(|heading| line(&heading))
    };
    let first = parsed.prompts.first();
    let first_request = || first.and_then(request);
    let later = || parsed.prompts.iter().skip(1);
    let subject = |commit: &String| declared::subject_of(commit).to_owned();
    let commit = || match digest.declared.commits.as_slice() {
        [only] => Some(subject(only)),
        _ => None,
    };
    // What was done about an error tells more than the error, and it more than a later question.
    let pasted = || first?.prose.error.as_deref();
    let error = || pasted().filter(|line| names_error(line)).map(line);
    let title = name
        .or_else(plan)
        .or_else(|| first_request().filter(|text| !is_report(text)).map(asked))
        .or_else(commit)
        .or_else(error)
        .or_else(|| {
            let mut later = later().filter_map(request);
            later
                .find(|text| !is_report(text) && !Words::new(text).contain("those|these"))
                .map(asked)
        })
        .or_else(|| {
            let mut subjects = digest.declared.commits.iter().map(subject);
            subjects.find(|subject| names_subject(subject))
        })
        .or_else(|| told(parsed, |text| !is_claim(text)).map(|text| line(&text)))
        .or_else(|| first_request().map(asked))
        .or_else(|| first.and_then(vague).map(asked))
        .or_else(|| pasted().map(line))
        .or_else(|| {
            let file = digest.files.first()?.rsplit('/').next()?;
            Some(format!("Change of {file}"))
        })
        .or_else(|| digest.failing.last().map(|failing| line(failing)))
        .or_else(|| told(parsed, is_claim).map(|text| line(&text)))?;
    let title = without_folders(without_tie(without_open_end(&title)));
    let title = with_name_of_number(title, digest);
    let title = one_line(&shorten(without_lead(&title), MAX_TITLE - 2));
    (!title.is_empty()).then_some(title)
}

/// Returns the sentence of a prompt that asks, if it names what it is about.
fn request(prompt: &TypedPrompt) -> Option<String> {
    let behind = &prompt.prose.typed_behind;
    let sentences: Vec<&String> = if behind.iter().any(|sentence| names_subject(sentence)) {
        behind.iter().collect()
    } else {
        prompt.sentences().collect()
    };
    let sentences = sentences.into_iter().take(MAX_SENTENCES).enumerate();
    let named =
        sentences.filter(|(_, sentence)| names_subject(sentence) && continued(sentence).is_none());
    let weighed = named.map(|(position, sentence)| {
        // What else is asked for tells more than the rules for it.
        let rules = if prompt.prose.is_rule_list(sentence) {
            4.0
        } else {
            0.0
        };
        (weight(position, sentence) - rules, sentence)
    });
    // Of equal sentences the first.
    let best = weighed.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let best = best.map(|(_, sentence)| with_referent(prompt, sentence));
    let continued = || prompt.sentences().find_map(|sentence| continued(sentence));
    best.or_else(continued).map(str::to_owned)
}

/// Returns the sentence before a request that names little itself and asks for something with "it": "The
/// list of owners is gone. Can you restore it?"
fn with_referent<'a>(prompt: &'a TypedPrompt, request: &'a String) -> &'a str {
    const MAX_NAMED: usize = 3;
    const MIN_NAMED: usize = 2;
    let refers = |word: &str| matches!(word, "it" | "them" | "this" | "these" | "those");
    let words = Words::new(request);
    let mut rest = words.iter();
    let named = rest.by_ref().take_while(|word| !refers(word));
    let is_named = named.filter(|word| !is_common(word)).count() > 1;
    let is_referring = words.iter().any(refers) && !words.contain("is it|it is|it's|be it");
    if is_named || !is_referring || naming_words(request).len() > MAX_NAMED {
        return request;
    }
    let sentences = &prompt.prose.sentences;
    let at = sentences.iter().position(|sentence| sentence == request);
    let before = at.and_then(|at| sentences.get(at.checked_sub(1)?));
    before
        .filter(|before| names_subject(before) && naming_words(before).len() >= MIN_NAMED)
        .filter(|before| !Words::new(before).iter().any(refers))
        .unwrap_or(request)
}

/// Returns whether a sentence reports an error instead of asking. What was done about it tells more.
fn is_report(sentence: &str) -> bool {
    let words = Words::new(sentence);
    words.begin(REPORTING)
        && words.contain("error|errors|fails|failed|failing|crash|crashes|broken|exception")
        && !is_question(sentence)
        && !words.contain(ASKING)
}

pub(super) fn weight(position: usize, sentence: &str) -> f32 {
    const MAX_NAMING: usize = 5;
    let words = Words::new(sentence);
    let looks =
        words.contain(LOOKING) && !words.contain("issue|issues|problem|error|bug|wrong|broken");
    let asks = !looks && (is_question(sentence) || words.contain(ASKING));
    let number = |count: usize| f32::from(u8::try_from(count).unwrap_or(u8::MAX));
    let marks = [
        (asks, 1.0),
        (!asks && words.begin(REPORTING), -1.3),
        (words.begin("this|that|it|these|those"), -1.0),
        (sentence.ends_with([':', '：']), -1.0),
        (looks, -1.0),
        // The file is named elsewhere.
        (
            words.contain("this file|this code|this function|this class|this script"),
            -0.5,
        ),
    ];
    sum_of_marks(&marks) + 0.3 * number(naming_words(sentence).len().min(MAX_NAMING))
        - 0.6 * number(position)
}

/// Returns whether a sentence names what it is about, not only that something is to be done.
pub(super) fn names_subject(sentence: &str) -> bool {
    const MIN_DENSE: usize = 7;
    /// How many words name the subject of a sentence that refers to something before it.
    const MANY: usize = 4;
    if is_dense(sentence) {
        return sentence.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_DENSE;
    }
    let words = Words::new(sentence);
    let refers = words.begin(
        "this|that|it|these|then|fix it|fix this|do it|do this|continue|resume|go on|keep going",
    ) || words.contain("this error|this issue|this problem|this message|this warning")
        || matches!(
            words.iter().last(),
            Some("this" | "that" | "these" | "those")
        );
    let naming = naming_words(sentence).len();
    naming >= if refers { MANY } else { 1 }
        && has_words(sentence)
        && sentence.starts_with(|c: char| c.is_alphanumeric() || "`\"'@/#*([".contains(c))
        && !sentence.ends_with(['(', '{', '[', '=', ';'])
}

/// Returns whether a sentence has words besides names of code, paths and options. A line of code has not,
/// and a command only the name of a program.
fn has_words(sentence: &str) -> bool {
    let is_code = |word: &str| {
        let name = word.trim_end_matches(['.', ':', ',']);
        word.starts_with(['@', '-']) || name.contains(['/', '.', '=', '_', '('])
    };
    let words: Vec<&str> = sentence
        .split(' ')
        .filter(|word| word.chars().any(char::is_alphabetic))
        .collect();
    let is_word = |word: &&&str| word.starts_with('`') || !is_code(word);
    let plain: Vec<String> = words
        .iter()
        .filter(is_word)
        .map(|word| word.to_lowercase())
        .collect();
    let is_assignment = sentence.split(' ').any(|word| word == "=");
    words.len() >= 2
        && !is_assignment
        && (plain.len() >= 2 || plain.iter().any(|word| is_common(word)))
}

/// Returns what is continued, if it has a number or a name.
fn continued(sentence: &str) -> Option<&str> {
    let rest = rest_after(sentence, CONTINUING)?;
    let is_named = rest.chars().any(|c| c.is_ascii_digit()) || names_subject(rest);
    is_named.then_some(rest)
}

/// Returns the words of a sentence that name something.
pub(super) fn naming_words(sentence: &str) -> HashSet<String> {
    let words = Words::new(sentence);
    let naming = words
        .iter()
        .filter(|word| !is_common(word) && !word.chars().all(|c| c.is_ascii_digit()));
    naming.map(str::to_owned).collect()
}

fn is_common(word: &str) -> bool {
    static WORDS: WordTable<(), 288, 1024> = WordTable::EMPTY.with(COMMON, b'|', ());
    WORDS.get(word).is_some()
}

/// Returns the first sentence of the first prompt, for want of a better one.
fn vague(prompt: &TypedPrompt) -> Option<String> {
    let sentence = prompt.sentences().find(|sentence| {
        !Words::new(sentence).begin("continue|resume|go on") && !sentence.ends_with([':', '：'])
    })?;
    (!is_dense(sentence) && Words::new(sentence).iter().count() > 1).then(|| sentence.clone())
}

/// Returns the first usable whole sentence of the last answer that has one, and that offers nothing.
fn told(parsed: &ParsedDigest, is_usable: fn(&str) -> bool) -> Option<String> {
    let answers = parsed.answers.iter().rev();
    let mut statements = answers.flatten().filter(|text| {
        (answer::is_whole(text) || answer::is_change(text))
            && names_subject(text)
            && !Words::new(text).begin("if you|if you'd")
            && is_usable(text)
    });
    statements.next().cloned()
}

/// Returns whether a sentence says that tests pass, which names no subject.
fn is_claim(sentence: &str) -> bool {
    Words::new(sentence)
        .contain("tests pass|tests run|all tests|tests passed|builds successfully|no test failures")
}

/// Returns a sentence that is too long from where its request begins, if that names more.
fn without_lead(sentence: &str) -> &str {
    let room = |text: &str| naming_words(&shorten(text, MAX_TITLE - 2)).len();
    let lower = sentence.to_lowercase();
    if sentence.chars().count() <= MAX_TITLE - 2 || lower.len() != sentence.len() {
        return sentence;
    }
    let found = |lead: &&str| {
        let at = lower.rfind(*lead)?;
        (at == 0 || lower[..at].ends_with(' ')).then_some(at)
    };
    let after = LEADS
        .iter()
        .filter_map(|lead| Some(found(lead)? + lead.len()));
    // A question stays one.
    let starts = after.chain(QUESTIONS.iter().filter_map(found));
    let rest = |start: usize| sentence.get(start..).unwrap_or_default();
    let start = starts
        .max()
        .filter(|start| room(rest(*start)) > room(sentence));
    start.map_or(sentence, rest)
}

/// Removes a colon at the end, and the word before a link that stood there: "Add the search using".
fn without_open_end(title: &str) -> &str {
    let title = title.trim_end_matches([':', '：', ' ']);
    let open = [" using", " with", " from", " see", " at", " via", " like"];
    let ended = open.iter().find_map(|word| title.strip_suffix(word));
    ended.filter(|_| !is_question(title)).unwrap_or(title)
}

/// Adds what a file of the session calls a number: "task 016", with `tasks/016-move-the-cart.md`, is
/// "task 016: move the cart".
fn with_name_of_number(title: String, digest: &SessionDigest) -> String {
    let numbers = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let words = || title.split([' ', '#']).filter(|word| !word.is_empty());
    let Some(number) = words().find(|word| numbers(word)) else {
        return title;
    };
    if words().count() > 3 || !naming_words(&title).is_empty() {
        return title;
    }
    let name = digest
        .files
        .iter()
        .chain(&digest.files_read)
        .find_map(|file| {
            let name = file.rsplit(['/', '\\']).next()?;
            let rest = name.strip_prefix(number)?.strip_prefix(['-', '_'])?;
            let name = rest.split('.').next()?.replace(['-', '_'], " ");
            name.contains(char::is_alphabetic).then_some(name)
        });
    match name {
        Some(name) => format!("{title}: {name}"),
        None => title,
    }
}

/// Removes the beginning of a sentence that only ties it to what came before, or that introduces it.
fn without_tie(sentence: &str) -> &str {
    const TIES: [&str; 8] = [
        "then ",
        "and ",
        "but ",
        "so ",
        "so, ",
        "also ",
        "also, ",
        "you are working on ",
    ];
    rest_after(sentence, &TIES).unwrap_or(sentence)
}

/// Removes a file before the question: "@src/cart.ts why are totals rounded?" begins at "why". A file
/// before a verb is the sentence's subject: "src/cart.ts rounds totals down".
fn without_place(title: &str) -> &str {
    let Some((place, rest)) = title.split_once(' ') else {
        return title;
    };
    let is_place = place.starts_with('@') || place.contains('/') && !place.starts_with('/');
    let is_asked = names_subject(rest) && rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let verb = rest.split(' ').next().unwrap_or_default();
    let is_told = verb.ends_with("ed") || verb.ends_with('s') && !verb.ends_with("ss");
    if is_place && is_asked && (!is_told || is_question(rest)) {
        rest
    } else {
        title
    }
}

/// Replaces the folders of paths by "…": of each path in a home folder, and of all paths in a title that
/// is too long, because the file's name would be cut off. An address that ends in a number keeps the name
/// before it: `…/issues/3`. Words that only stand beside each other are no path: "read/write/execute".
fn without_folders(title: &str) -> String {
    let is_long = title.chars().count() > MAX_TITLE - 2;
    let words = title.split(' ').map(|word| {
        let parts: Vec<&str> = word.split('/').collect();
        // A quoted name may be a module or a pattern.
        let is_quoted = word.starts_with(['`', '\'', '"']);
        let is_path = word.starts_with('/') || word.contains(['.', '@', ':']);
        let is_far =
            parts.len() > 2 && (is_long && is_path && !is_quoted || word.starts_with("~/"));
        match parts.as_slice() {
            [.., kind, number] if is_far && number.chars().all(|c| c.is_ascii_digit()) => {
                format!("…/{kind}/{number}")
            }
            [.., name] if is_far && !name.is_empty() => format!("…/{name}"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::{
        session_note::{SessionDigest, note_text},
        turn::Turn,
    };

    fn title_of(prompt: &str) -> String {
        let turn = Turn {
            prompt: Some(prompt.to_owned()),
            answer: Some("The change is in `src/cart.rs` and has tests.".to_owned()),
            ..Turn::default()
        };
        let digest = SessionDigest {
            turns: vec![turn],
            files: vec!["src/cart.rs".to_owned()],
            files_read: vec!["docs/tasks/016-move-the-till.md".to_owned()],
            ..SessionDigest::default()
        };
        note_text(&digest).unwrap().title
    }

    #[test]
    fn a_title_begins_with_what_is_asked() {
        for (prompt, title) in [
            (
                "Read it. Then write a list of the open tasks in PROGRESS.md.",
                "write a list of the open tasks in PROGRESS.md",
            ),
            (
                "You are working on the checkout of the shop.",
                "the checkout of the shop",
            ),
            (
                "Sort the invoices by the date of the order.",
                "Sort the invoices by the date of the order",
            ),
        ] {
            assert_eq!(title_of(prompt).trim_end_matches('.'), title, "{prompt}");
        }
    }

    #[test]
    fn a_title_names_what_it_is_about() {
        for (prompt, title) in [
            (
                "In the last PR we removed the list of owners. can you please restore it in OWNERS.md",
                "In the last PR we removed the list of owners.",
            ),
            (
                "The list of owners is in OWNERS.md. Sort the tills by the date of the order.",
                "Sort the tills by the date of the order.",
            ),
            (
                "Add the search engine `duck` using\nhttps://git.example/duck",
                "Add the search engine `duck`",
            ),
            ("start working on task 016", "task 016: move the till"),
            ("start working on task 017", "task 017"),
            (
                "restore the list of owners\nhttps://git.example/acme/shop/pull/757/changes",
                "restore the list of owners (#757)",
            ),
        ] {
            assert_eq!(title_of(prompt), title, "{prompt}");
        }
    }

    #[test]
    fn the_title_is_what_was_typed_behind_a_pasted_text() {
        const PASTED: [&str; 6] = [
            "error[E0308]: mismatched types\n  --> src/cart.rs:9:5\nexpected `u32`, found `i64`",
            "Hi team,\nthe totals of the March invoices are rounded twice.\nCould you look at them?\nRegards\nAnn",
            "From: Ann <ann@example.org>\nSubject: Invoices\nThe totals of the March invoices are rounded twice.",
            "> The export button should be disabled while a report runs.\n> Otherwise people start it twice.",
            "```\nThe importer finished with 3 retries\n```\nThe importer needs a longer timeout",
            "2026-03-01 10:00:01 INFO importer started\nImporter finished with 3 retries",
        ];
        const TYPED: [&str; 4] = [
            "write a migration that repairs the totals",
            "please make the import of invoices faster",
            "why are invoices imported twice?",
            "Translate the labels of the invoice page",
        ];
        for pasted in PASTED {
            for typed in TYPED {
                assert_eq!(title_of(&format!("{pasted}\n\n{typed}")), typed, "{pasted}");
            }
        }
        let plain = "The quick guide covers Linux and macOS.\nWindows is in another chapter.";
        let translate = "Translate the text above to German";
        assert_eq!(title_of(&format!("{plain}\n\n{translate}")), translate);
        // What comes first was typed, too.
        let first = "Make the import of invoices faster.";
        let prompt =
            format!("{first}\n\nImporter finished with 3 retries\n\nplease explain each step");
        assert_eq!(title_of(&prompt), first);
    }
}
