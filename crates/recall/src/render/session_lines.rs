//! Shortens the text of a session's note to its telling lines.
//!
//! A session's note has parts with labels: see `anamnesis_session::session_note`. A block has no room
//! for all of them, so the lines that match the prompt, and those that tell most, are shown whole.

use std::{collections::BTreeSet, fmt::Write as _};

use anamnesis_session::{
    declared::is_hash,
    directive::{Directive, directive, is_question, is_reaction, stands_alone},
    session_note::{PLAN, announces, labelled_lines, part_of, says_nothing, tells_result},
};
use anamnesis_text::{
    statement::Statement,
    terms::terms,
    values::{Token, tokens},
};

/// How much a line of each part tells without a prompt; a line of any other part tells 1.
const WORTH: [(&str, f32); 14] = [
    ("Rules", 3.2),
    ("Said", 3.0),
    ("Still failing", 2.8),
    ("Decided", 2.2),
    ("Outcome", 2.0),
    ("Failed and fixed", 1.8),
    ("Next steps", 1.8),
    ("Committed", 1.9),
    ("Found", 1.3),
    ("Ask", 1.2),
    ("Asked", 1.1),
    ("Files", 0.6),
    ("Branch", 0.4),
    ("Passed", 0.3),
];

/// How much a request tells that has no word of the prompt.
const UNMATCHED_REQUEST: f32 = 0.2;

/// How much a matched word of the prompt adds to a line.
const MATCHED_WORD: f32 = 1.5;

/// The maximum number of files named in a block.
const MAX_FILES: usize = 4;

/// The requests of a session. What came of them is in other parts.
const REQUESTS: [&str; 2] = ["Ask", "Asked"];

/// Parts that a session's start does not show, besides requests: what the session itself dealt with,
/// checks that passed, and files, which the commits have.
const NOT_AT_START: [&str; 4] = ["Found", "Failed and fixed", "Passed", "Files"];

/// Parts that a start shows of the last session only. Of 13 lines of earlier outcomes, a reader found none
/// useful, and their next steps may have been taken since.
const OF_LAST_SESSION: [&str; 2] = ["Outcome", "Next steps"];

/// The parts that an answer of the agent supplies, and the length in characters up to which a line of
/// them has to name something.
const ANSWERED: [&str; 2] = ["Outcome", "Found"];
const MAX_REMARK: usize = 60;

/// From this length in bytes, a sentence that points to something tells enough besides.
const MIN_POINTING: usize = 70;

/// With fewer words, only a line with equal words says the same.
const MIN_REPEATED: usize = 4;

/// The purpose for which the lines of a session are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// A prompt that has these terms.
    Prompt(&'a BTreeSet<String>),
    /// A session's start, for the last session.
    LastSession,
    /// A session's start, for an earlier session.
    EarlierSession,
}

impl Purpose<'_> {
    /// Returns how many words of a line are wanted.
    fn matched(self, line: &BTreeSet<String>) -> usize {
        match self {
            Self::Prompt(wanted) => wanted.intersection(line).count(),
            Self::LastSession | Self::EarlierSession => 0,
        }
    }

    /// Returns whether a part may be shown.
    fn shows(self, label: &str) -> bool {
        let is_for_start = || !REQUESTS.contains(&label) && !NOT_AT_START.contains(&label);
        match self {
            Self::Prompt(_) => true,
            Self::LastSession => is_for_start(),
            Self::EarlierSession => is_for_start() && !OF_LAST_SESSION.contains(&label),
        }
    }
}

/// Returns whether a line of a part can be understood without what it refers to. Items of a list and
/// offers of the agent cannot.
fn is_understood_alone(label: &str, text: &str) -> bool {
    match label {
        "Outcome" => tells_result(text),
        "Said" => {
            // "That's not correct": a reaction to a lost answer.
            if is_reaction(text) {
                return false;
            }
            // A pair of sentences was kept because the second needs the first.
            let is_pair = [". ", "! ", "? "].iter().any(|end| text.contains(end));
            is_pair
                || stands_alone(text)
                || directive(text) == Some(Directive::Rule)
                || text.len() >= MIN_POINTING
        }
        _ => true,
    }
}

/// A text with its terms, which are computed once.
pub(super) struct Told {
    text: String,
    terms: BTreeSet<String>,
}

impl From<String> for Told {
    fn from(text: String) -> Self {
        let terms = terms(&text).into_iter().collect();
        Self { text, terms }
    }
}

/// A line of a note.
struct Line {
    label: Option<String>,
    told: Told,
    worth: f32,
    /// It names nothing, or is not understood alone.
    is_weak: bool,
}

/// The lines of a session's note that may serve a purpose.
///
/// Left out are what the title or another line says, known lines, announcements of a list, absolute paths,
/// parts without a line, and unless there are no others, remarks that name nothing and, at a start, lines
/// that are not understood alone.
pub(super) struct Lines {
    lines: Vec<Line>,
}

impl Lines {
    pub(super) fn new(title: &str, body: &str, purpose: Purpose<'_>, known: &[&Told]) -> Self {
        Self {
            lines: lines(title, body, purpose, known),
        }
    }

    /// Returns the lines that serve the purpose best, in the order of the note, within a length in
    /// characters. Empty if not even one line fits.
    pub(super) fn within(&self, length: usize) -> String {
        let Self { lines } = self;
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by(|a, b| lines[*b].worth.total_cmp(&lines[*a].worth).then(a.cmp(b)));
        let mut labels: Vec<Option<&str>> = Vec::new();
        let mut chosen = BTreeSet::new();
        let mut used = 0;
        for index in order {
            let line = &lines[index];
            let label = line.label.as_deref();
            let is_new = label.is_some() && !labels.contains(&label);
            // `**`, `:**`, the marker and line ends.
            let of_label = label.filter(|_| is_new).map_or(0, |label| label.len() + 6);
            let cost = of_label + line.told.text.chars().count() + 3;
            let mut said = chosen.iter().map(|other: &usize| &lines[*other].told);
            let is_repeated = said.any(|other| says(other, &line.told));
            if used + cost <= length && !is_repeated {
                used += cost;
                labels.push(label);
                chosen.insert(index);
            }
        }
        let chosen: Vec<&Line> = chosen.into_iter().map(|index| &lines[index]).collect();
        written(&chosen)
    }
}

/// Returns the terms of words.
pub(super) fn wanted(words: &[String]) -> BTreeSet<String> {
    words.iter().flat_map(|word| terms(word)).collect()
}

fn lines(title: &str, body: &str, purpose: Purpose<'_>, known: &[&Told]) -> Vec<Line> {
    let mut lines = Vec::new();
    let of_title = (!title.is_empty()).then(|| Told::from(title.to_owned()));
    // A plan that was carried out is in the commits.
    let has_commits = part_of(body, "Committed").next().is_some();
    let is_earlier = matches!(purpose, Purpose::EarlierSession);
    for (of, text) in labelled_lines(body) {
        let text = match of {
            Some("Ask") => without_title(text, title).to_owned(),
            Some("Outcome") if ends_sentence(title) => without_title(text, title).to_owned(),
            Some("Files") => files(text),
            _ => text.to_owned(),
        };
        let told = Told::from(text);
        let text = told.text.as_str();
        // What the title says is not told again, and what follows it is.
        let mut known = known.iter().copied().chain(&of_title);
        let is_known = known.any(|known| says(known, &told));
        if text.is_empty() || is_known {
            continue;
        }
        let own = WORTH.iter().find(|(label, _)| of == Some(label));
        let mut worth = own.map_or(1.0, |(_, worth)| *worth);
        let matched = purpose.matched(&told.terms);
        let is_request = of.is_some_and(|of| REQUESTS.contains(&of));
        let is_answer = of.is_some_and(|of| ANSWERED.contains(&of));
        // A question without its answer tells nothing.
        let is_answered = || of == Some("Outcome") && is_question(title);
        // So does the title of a session that left nothing else: see below.
        let is_only = || is_earlier && of == Some("Outcome") && !has_commits && text.contains('`');
        let is_shown = of.is_none_or(|of| purpose.shows(of) || is_answered() || is_only());
        let is_empty_answer = || is_code_alone(text) || repeats_commit(text) || announces(text);
        let tells_nothing = text.ends_with([':', '：']) || is_answer && is_empty_answer();
        if !is_shown || tells_nothing && matched == 0 {
            continue;
        }
        if is_request && matched == 0 {
            worth = UNMATCHED_REQUEST;
        }
        for _ in 0..matched {
            worth += MATCHED_WORD;
        }
        let is_alone = || match (purpose, of) {
            (Purpose::Prompt(_), _) | (_, None) => true,
            (_, Some("Decided")) => !has_commits || !text.starts_with(PLAN),
            (_, Some(of)) => is_understood_alone(of, text),
        };
        lines.push(Line {
            is_weak: matched == 0 && (is_answer && is_remark(text) || !is_alone()),
            label: of.map(str::to_owned),
            told,
            worth,
        });
    }
    let is_outcome = |line: &Line| line.label.as_deref() == Some("Outcome");
    let is_start = !matches!(purpose, Purpose::Prompt(_));
    // Of the last session and at a prompt, a weak line is better than a title alone.
    let has_others = lines.iter().any(|line| !line.is_weak);
    let may_stand_in = |line: &Line| {
        let tells = !is_start || !is_outcome(line) || !says_nothing(&line.told.text);
        tells && !is_earlier && !has_others
    };
    lines.retain(|line| !line.is_weak || may_stand_in(line));
    if is_earlier && !is_question(title) && !lines.iter().all(is_outcome) {
        lines.retain(|line| !is_outcome(line));
    }
    if is_start {
        // A reader found what an answer tells first useful, and of the rest only failures.
        let mut is_told = false;
        lines.retain(|line| {
            let is_outcome = is_outcome(line);
            let is_failure = line.told.text.starts_with('`') && line.told.text.contains("`: ");
            !is_outcome || is_failure || !std::mem::replace(&mut is_told, true)
        });
    }
    lines
}

/// Returns whether a line is short and names nothing: "Glad it works now!"
fn is_remark(text: &str) -> bool {
    let names = |text: &str| tokens(text).iter().any(Token::is_value);
    let is_dense = text.chars().any(|character| character >= '\u{2e80}');
    text.chars().count() <= MAX_REMARK && !is_dense && !text.contains(['`', '→']) && !names(text)
}

/// Returns whether a line is code without a word about it.
fn is_code_alone(text: &str) -> bool {
    let code = text
        .strip_prefix('`')
        .and_then(|text| text.strip_suffix('`'));
    code.is_some_and(|code| !code.contains('`'))
}

/// Returns whether a line says of a commit what git prints, which is in another part.
fn repeats_commit(text: &str) -> bool {
    let first = text.strip_prefix('`').and_then(|text| text.split_once('`'));
    first.is_some_and(|(name, _)| is_hash(name))
        || text.starts_with("Committed as ")
        || text.contains(" files changed, ")
}

/// Returns whether a known line says the same as another one: it has all of its words but one in five,
/// and every number, name and negation.
fn says(known: &Told, line: &Told) -> bool {
    if known.text == line.text {
        return true;
    }
    let common = line.terms.intersection(&known.terms).count();
    (5 * common >= 4 * line.terms.len().max(MIN_REPEATED) || line.terms == known.terms)
        && !Statement::parse(&line.text).differs(&Statement::parse(&known.text))
}

/// Returns the lines of a note, without their labels.
pub(super) fn texts(body: &str) -> impl Iterator<Item = Told> {
    let lines = lines("", body, Purpose::LastSession, &[]);
    lines.into_iter().map(|line| line.told)
}

/// Returns whether a title, as far as it goes, is whole sentences.
fn ends_sentence(title: &str) -> bool {
    title
        .trim_end_matches(['…', ' '])
        .ends_with(['.', '!', '?', '。'])
}

/// Removes the title, and a file before it, from the beginning of the request.
fn without_title<'a>(ask: &'a str, title: &str) -> &'a str {
    let title = title.trim_end_matches(['…', ' ']);
    match ask.split_once(title) {
        Some((file, _)) if file.trim().contains(' ') => ask,
        Some((_, rest)) if !title.is_empty() => rest.trim_start_matches([' ', '.', ':', '—', '…']),
        _ => ask,
    }
}

/// Returns the first of the files, without absolute paths.
fn files(text: &str) -> String {
    let is_absolute = |file: &&str| file.starts_with(['/', '~', '\\']) || file.contains(":\\");
    let files = text.split(", ").filter(|file| !is_absolute(file));
    let named: Vec<&str> = files.take(MAX_FILES).collect();
    named.join(", ")
}

/// Writes lines with their labels, a single line of a part behind its label.
fn written(lines: &[&Line]) -> String {
    let mut text = String::new();
    for part in lines.chunk_by(|a, b| a.label == b.label) {
        match (part, part.first().and_then(|line| line.label.as_deref())) {
            ([only], Some(label)) => {
                let _ = writeln!(text, "**{label}:** {}", only.told.text);
            }
            (lines, Some(label)) => {
                let _ = writeln!(text, "**{label}:**");
                for line in lines {
                    let _ = writeln!(text, "- {}", line.told.text);
                }
            }
            (lines, None) => {
                for line in lines {
                    let _ = writeln!(text, "{}", line.told.text);
                }
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(
        title: &str,
        body: &str,
        length: usize,
        purpose: Purpose<'_>,
        known: &[&Told],
    ) -> String {
        Lines::new(title, body, purpose, known).within(length)
    }

    const BODY: &str = "\
        **Ask:** Deploy the app. to staging, please\n\n**Said:**\n- use `make deploy-staging`\n\
        - never touch the login\n\n**Decided:**\n- the port is 9090 because 8080 is taken\n\n\
        **Outcome:** The version of staging is 2 now.\n\n**Files:** /home/ann/x.rs, a.rs, b.rs, c.rs, d.rs, e.rs";

    /// Returns the last session's purpose without words.
    fn purpose(wanted: &BTreeSet<String>) -> Purpose<'_> {
        if wanted.is_empty() {
            Purpose::LastSession
        } else {
            Purpose::Prompt(wanted)
        }
    }

    fn short(length: usize, words: &[&str], known: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let known = known.iter().map(|line| Told::from((*line).to_owned()));
        let known: Vec<Told> = known.collect();
        let known: Vec<&Told> = known.iter().collect();
        let wanted = wanted(&words);
        shortened("Deploy the app.", BODY, length, purpose(&wanted), &known)
    }

    #[test]
    fn the_request_is_not_repeated_and_no_path_is_absolute() {
        assert_eq!(
            short(1000, &[], &["never touch the login"]),
            "**Said:** use `make deploy-staging`\n\
             **Decided:** the port is 9090 because 8080 is taken\n\
             **Outcome:** The version of staging is 2 now."
        );
        let files = short(1000, &["rust"], &[]);
        assert!(
            files.ends_with("**Files:** a.rs, b.rs, c.rs, d.rs"),
            "{files}"
        );
    }

    #[test]
    fn requests_remarks_announcements_and_repetitions_are_left_out() {
        let body = "**Asked:**\n- make the header blue\n- keep the footer as it is\n\n**Said:** use `tabs`\n\n\
             **Outcome:**\n- Glad it works now!\n- The header of `app.css` is blue.\n- This changes:\n\
             - The header is 40 px high.\n- `npm run build`\n- Committed as `1a2b3c4`.\n\
             - `1a2b3c4` adds a header to the page.\n- use `tabs`";
        let short = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let wanted = wanted(&words);
            shortened("Blue header", body, 1000, purpose(&wanted), &[])
        };
        let first = "**Said:** use `tabs`\n**Outcome:** The header of `app.css` is blue.";
        assert_eq!(short(&[]), first);
        let told = "**Said:** use `tabs`\n**Outcome:**\n- The header of `app.css` is blue.\n\
             - The header is 40 px high.";
        // A prompt brings them; those that have a word of it come first.
        let asked = "**Asked:**\n- make the header blue\n- keep the footer as it is\n";
        assert_eq!(short(&["footer"]), format!("{asked}{told}"));
    }

    #[test]
    fn what_follows_a_line_that_the_title_says_is_shown() {
        let body =
            "**Outcome:**\n- Fixed the conversion.\n- The name `bytes` is the package, not a type.";
        let none = BTreeSet::new();
        assert_eq!(
            shortened("Fixed the conversion.", body, 1000, purpose(&none), &[]),
            "**Outcome:** The name `bytes` is the package, not a type."
        );
    }

    #[test]
    fn lines_that_match_the_prompt_are_shown_whole_before_others() {
        assert_eq!(
            short(60, &["port"], &[]),
            "**Decided:** the port is 9090 because 8080 is taken"
        );
        assert_eq!(
            short(70, &[], &[]),
            "**Said:**\n- use `make deploy-staging`\n- never touch the login"
        );
        assert_eq!(short(10, &[], &[]), "");
    }

    #[test]
    fn the_outcome_and_next_steps_are_shown_of_the_last_session_only() {
        let body = "**Said:** never use 8080\n\n**Failed and fixed:** `make`: port 8080 is in use\n\n\
             **Committed:** 1a2b3c4 Move the api\n\n**Outcome:** The port of `api` is 9090.\n\n\
             **Next steps:** deploy it";
        let short = |purpose| shortened("Ports", body, 500, purpose, &[]);
        let of_earlier = "**Said:** never use 8080\n**Committed:** 1a2b3c4 Move the api";
        assert_eq!(short(Purpose::EarlierSession), of_earlier);
        let answered = shortened("Where is the api?", body, 500, Purpose::EarlierSession, &[]);
        assert!(
            answered.contains("**Outcome:** The port of `api` is 9090."),
            "{answered}"
        );
        assert_eq!(
            short(Purpose::LastSession),
            format!(
                "{of_earlier}\n**Outcome:** The port of `api` is 9090.\n**Next steps:** deploy it"
            )
        );
    }

    #[test]
    fn a_start_shows_no_line_that_needs_another_one_or_offers_something() {
        let body = "**Said:**\n- No, we simply don't support this notation\n- So the till closes\n- use tabs in `Makefile`\n\n\
            **Outcome:**\n- `staging` — `preview` — Preview\n- Try restarting the app, it should be found now.\n\
            - Stash the unrelated changes first\n- All 1309 tests passed in the end.\n- Checks: `make lint`.\n\
            - If the cart is empty, the till closes.\n- The api reads its port from `app.toml`.";
        let wanted = wanted(&["notation".to_owned(), "preview".to_owned()]);
        let short = |purpose| shortened("x", body, 500, purpose, &[]);
        assert_eq!(
            short(Purpose::LastSession),
            "**Said:** use tabs in `Makefile`\n**Outcome:** The api reads its port from `app.toml`."
        );
        let matched = short(Purpose::Prompt(&wanted));
        assert!(
            matched.contains("this notation") && matched.contains("Preview"),
            "{matched}"
        );
        let body = "**Outcome:** I need to look at `cart.html` for the missing tag.";
        assert_eq!(shortened("x", body, 500, Purpose::LastSession, &[]), "");
    }

    #[test]
    fn the_outcome_of_an_earlier_session_is_shown_where_it_left_nothing_else() {
        let outcome = "**Outcome:** `cart.toml` sets the port of the till.";
        let short = |before: &str| {
            let body = format!("{before}{outcome}");
            shortened("x", &body, 500, Purpose::EarlierSession, &[])
        };
        assert_eq!(short(""), outcome);
        // What only reacts to a lost answer is not shown.
        assert_eq!(
            short(
                "**Said:** That's not correct, the port was the same as before in every shop.\n\n"
            ),
            outcome
        );
        assert_eq!(
            short("**Said:** use tabs in `Makefile`\n\n"),
            "**Said:** use tabs in `Makefile`"
        );
        let done = "**Committed:** 1a2b3c4 Set the port";
        assert_eq!(short(&format!("{done}\n\n")), done);
    }

    #[test]
    fn praise_is_no_result() {
        let body = "**Outcome:**\n- The folder `assets` is much more organized and professional now.\n\
             - The PR of `cart.rs` is ready for review.";
        assert_eq!(shortened("x", body, 500, Purpose::LastSession, &[]), "");
    }

    #[test]
    fn a_start_repeats_no_plan_that_was_carried_out() {
        let plan = "**Decided:** Plan: move the cart; drop the till\n\n";
        let done = format!("{plan}**Committed:** 1a2b3c4 Move the cart");
        let short = |body: &str| shortened("x", body, 500, Purpose::LastSession, &[]);
        assert!(short(plan).contains("drop the till"));
        assert_eq!(short(&done), "**Committed:** 1a2b3c4 Move the cart");
    }

    #[test]
    fn a_line_that_says_what_is_known_is_left_out() {
        let body = "**Said:**\n- Use tabs in the generated files, never spaces.\n\
            - Never use tabs in the generated makefiles.\n\n**Outcome:** Done.";
        let known = "In generated files, always use tabs and never spaces.".to_owned();
        let known = Told::from(known);
        assert_eq!(
            shortened("x", body, 500, Purpose::LastSession, &[&known]),
            "**Said:** Never use tabs in the generated makefiles."
        );
    }
}
