//! Reads what sentences say about a failure: that it is over, that it was expected, what fixed it.

use anamnesis_text::shell::command::Command;

use super::{MAX_LINE, Observation, failed_tests::names_several};
use crate::{
    directive::{is_question, is_specific},
    phrases::Words,
};

/// Phrases that say that something works.
const WORKS: &str = "\
    pass|passes|passed|passing|fixed|resolved|solved|succeeds|succeeded|green|is clean|are clean|\
    clean now|works again|works now|work again|no longer fails|no longer fail|behoben|grün|gelöst|\
    resuelto|corregido|résolu|corrigé|修复|已解决|通过|修正済み|解決";

/// Phrases that make another statement of one with [`WORKS`].
const NOT_YET: &str = "\
    not|don't|doesn't|didn't|isn't|aren't|won't|cannot|can't|never|except|but|still|unless|until|if|\
    when|once|should|would|will|must|only|need|needs|todo|before|noch nicht|nicht|aber|todavía|\
    pas|mais|pero|没有|未|还";

/// Phrases that say that something was meant to be so.
const EXPECTED: &str = "\
    as expected|is expected|are expected|was expected|were expected|expected failure|\
    expected failures|expected error|expected errors|expected to fail|by design|on purpose|\
    intentional|intentionally|intended|deliberate|deliberately|should fail|supposed to fail|\
    erwartungsgemäß|absichtlich|gewollt|comme prévu|volontairement|a propósito|esperado|预期|\
    意図的|設計通り";

/// Phrases that name a failure.
const FAILS: &str = "\
    fail|fails|failed|failing|failure|failures|error|errors|exit code|exits|red|rejected|rejects|\
    blocked|blocks|warning|warnings|fehler|scheitert|schlägt|échoue|erreur|falla|失败|错误|失敗|エラー";

/// Phrases that tell what was changed.
const CHANGED: &str = "\
    fixed|fix|fixes|replaced|changed|added|removed|restored|renamed|updated|switched|moved|pinned|\
    set|now|was|were|because|since|caused by|root cause|the cause|the problem|the issue|instead of|\
    must be|needs|needed|修复|改为|因为|由于|修正|追加|behoben|geändert|weil|ersetzt|corregido|\
    porque|corrigé|parce que";

/// The minimum length of a name in an error that identifies it, in characters.
const MIN_NAME: usize = 5;

/// Reports of a person, without [`BESIDE`]: that tests pass, that all checks do, that what failed last works.
const TESTS_PASS: &str = "\
    tests pass|tests passed|tests passing|tests green|tests work|test suite passes|test suite passed|test suite green|\
    suite passes|suite green|tests grün|tests laufen durch|tests passent|tests pasan|testy przechodzą|测试 通过";
const CHECKS_PASS: &str = "\
    ci green|ci passes|ci passed|ci works|pipeline green|pipeline passes|everything passes|everything green|\
    everything works|checks pass|checks passed|checks green|ci grün|pipeline grün";
const LAST_WORKS: &str = "\
    it works|works|it's working|it working|it passes|it's fixed|it fixed|that fixed it|this fixed it|that solved it|\
    geht es|es geht|funktioniert es|es funktioniert|ça marche|funciona|działa|好|可以|修好";

/// Words that say that something became so, without which a report may be a demand; and others beside them.
const BECAME: &str = "now|again|finally|passed|that fixed|this fixed|that solved|jetzt|wieder|maintenant|ahora|ya|teraz|现在|了";
const BESIDE: &str = "\
    now|again|finally|all|of|the|our|are|is|here|locally|too|for me|on my machine|thanks|thank you|great|nice|perfect|ok|\
    okay|yes|alle|die|sind|ist|jetzt|wieder|tous|les|sont|maintenant|todos|los|ahora|ya|wszystkie|teraz|现在|所有|都|了";

/// The open failures that a person says are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClosedFailures {
    /// Those of tests.
    Tests,
    /// Those of all checks.
    Checks,
    /// The last one.
    Last,
}

/// Returns which open failures a sentence of a person says are over: its first clause that does more than agree
/// reports it.
pub(super) fn closed_by(sentence: &str) -> Option<ClosedFailures> {
    let words = Words::new(sentence);
    if is_question(sentence) || words.contain(NOT_YET) || !words.contain(BECAME) {
        return None;
    }
    let clauses = sentence.split([',', ';', '.', '!', '—', '–', '，', '。', '！']);
    let mut clauses = clauses.map(|clause| Words::new(clause).without(BESIDE));
    let report = clauses.find(|report| !report.as_str().is_empty())?;
    let says = |reports: &str| {
        let rest = report.after(reports);
        report.begin(reports) && (rest.as_str().is_empty() || rest.begin("and|so|please|und|et|y"))
    };
    let all = [
        (TESTS_PASS, ClosedFailures::Tests),
        (CHECKS_PASS, ClosedFailures::Checks),
        (LAST_WORKS, ClosedFailures::Last),
    ];
    let mut told = all.into_iter().filter(|(reports, _)| says(reports));
    told.next().map(|(_, closed)| closed)
}

/// Returns whether a sentence says that a check passes. `error` is the line that it failed with.
pub fn says_it_passes(sentence: &str, check: &str, error: &str) -> bool {
    says_something_passes(sentence) && names_check(sentence, check, error)
}

/// Returns whether a sentence says of anything that it passes or is fixed.
pub fn says_something_passes(sentence: &str) -> bool {
    let words = Words::new(sentence);
    words.contain(WORKS) && !words.contain(NOT_YET) && !is_question(sentence)
}

/// Returns whether a sentence says that the failure of a check was expected.
pub(crate) fn says_it_is_expected(sentence: &str, check: &str, error: &str) -> bool {
    let words = Words::new(sentence);
    words.contain(EXPECTED)
        && words.contain(FAILS)
        && (!sentence.contains('`') || names_check(sentence, check, error))
}

/// Returns the statement that tells best what fixed a failure: one that tells a change or a reason and
/// names a changed file or something of the error. The latest of equal ones counts.
pub(crate) fn remedy<'a>(
    fix: &Observation,
    statements: impl Iterator<Item = &'a String>,
) -> Option<&'a str> {
    let files = fix.files_modified.iter().filter_map(|path| {
        let name = path.rsplit(['/', '\\']).next()?;
        Some(name.to_lowercase())
    });
    let of_error = fix
        .subtitle
        .split(is_separator)
        .filter(|name| is_name(name));
    let names: Vec<String> = files.chain(of_error.map(str::to_lowercase)).collect();
    let telling = statements.filter_map(|statement| {
        let lower = statement.to_lowercase();
        let matches = names.iter().filter(|name| lower.contains(*name)).count();
        let tells = Words::new(statement).contain(CHANGED) && !is_question(statement);
        (tells && matches > 0 && !statement.ends_with(':')).then_some((matches, statement.as_str()))
    });
    telling
        .max_by_key(|(matches, _)| *matches)
        .map(|(_, text)| text)
}

/// Returns whether a sentence names a check or something of its error.
pub fn names_check(sentence: &str, check: &str, error: &str) -> bool {
    let lower = sentence.to_lowercase();
    if lower.contains(&check.to_lowercase()) {
        return true;
    }
    let command = Command::parse(check);
    let subject = command.iter().flat_map(Command::subject);
    let subject: Vec<Words> = subject.map(Words::new).collect();
    let mut wanted = subject.iter().flat_map(Words::iter);
    // Each form of a word below has its beginning, so most sentences need not be split into words.
    let may_be_named = !subject.is_empty()
        && wanted.all(|word| word.get(..4).is_none_or(|start| lower.contains(start)));
    let words = may_be_named.then(|| Words::new(sentence));
    let is_named = words.is_some_and(|words| {
        let has_word = |wanted: &str| {
            let is_form =
                |word: &str| word.starts_with(wanted) || word.len() > 3 && wanted.starts_with(word);
            words.iter().any(is_form)
        };
        subject.iter().flat_map(Words::iter).all(has_word)
    });
    // Of several tests that failed only one is named.
    let error = if names_several(error) { "" } else { error };
    let mut of_error = error.split(is_separator).filter(|name| is_name(name));
    is_named || of_error.any(|name| lower.contains(&name.to_lowercase()))
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || "`'\"()[]{}<>,;=“”‘’".contains(c)
}

fn is_name(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.chars().count() >= MIN_NAME && is_specific(word)
}

/// Returns whether an error says that the person or the client did not let a command run.
pub(super) fn is_refused(error: &str) -> bool {
    let error = error.trim_start_matches("Error: ");
    error.starts_with("The user doesn't want to") || error.starts_with("Permission to use ")
}

/// Returns whether an error says that a command was stopped, by a limit of time or a signal.
pub(super) fn is_stopped(error: &str) -> bool {
    const CODES: [&str; 4] = ["124", "130", "137", "143"];
    let code = error.strip_prefix("Exit code ");
    let code = code.and_then(|code| code.split_whitespace().next());
    error.contains("timed out after") || code.is_some_and(|code| CODES.contains(&code))
}

/// Returns whether a command ended with the status that tells a difference, as `terraform plan` does.
pub(super) fn is_difference(error: &str, command: &Command<'_>) -> bool {
    error.starts_with("Exit code 2") && command.shown(MAX_LINE).contains("-detailed-exitcode")
}
