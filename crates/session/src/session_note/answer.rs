//! Takes from the model's answers what a later session would want to know.

use super::expiring::is_expiring;
use crate::{
    directive::{is_question, specifics, unquoted},
    observe::ARROW,
    phrases::{Words, is_dense, length, sum_of_marks},
    prose::{SentenceEnd, is_pasted, split, without_bold, without_marker},
};

/// How many statements of an answer are read, from its beginning and from its end.
const MAX_STATEMENTS: usize = 80;

/// The maximum length of an item with the one that it belongs to, in bytes.
const MAX_JOINED: usize = 160;

/// The minimum length of a statement, in characters.
const MIN_STATEMENT: usize = 12;

/// Phrases that give a reason or a decision.
const REASON: &str = "\
    because|since|so that|due to|root cause|caused by|the issue|the problem|the reason|\
    the bug|the cause|issue was|in order to|instead of|rather than|which means|turns out|\
    otherwise|to avoid|to prevent|to ensure|decided|going with|→|因为|由于|导致|改为|而不是|ため|ので|代わりに|\
    porque|para evitar|en lugar de|la causa|parce que|afin de|au lieu de|weil|damit|da|\
    statt|ursache";

/// Phrases that say why something is done.
const WHY: &str = "\
    because|since|so that|due to|in order to|to avoid|to prevent|to ensure|otherwise|因为|由于|为了|避免|ため|ので|\
    porque|para evitar|para que|parce que|afin de|pour éviter|weil|damit|um zu";

/// Beginnings of sentences that cannot be understood without the one before.
const REFERRING: &str = "\
    this|that|these|those|it|they|both|he|she|its|their|so|then|and|but|also|because|since|otherwise|in other words|\
    however|instead|therefore|thus|hence|as a result|related|dies|das|es|cela|ça|esto|eso";

/// Phrases that tell what was done.
const DONE: &str = "\
    fixed|fix|fixes|replaced|changed|now|added|removed|restored|excluded|moved|renamed|\
    updated|switched|converted|disabled|enabled|uses|use|set|pushed|committed|修复|已|修正|追加|削除|\
    corregido|añadido|eliminado|corrigé|ajouté|supprimé|behoben|hinzugefügt|entfernt|\
    geändert|ersetzt";

/// Phrases that tell what does not work.
const FAILING: &str = "\
    fail|fails|failed|failing|failure|failures|error|errors|cannot|can't|couldn't|unable|\
    not found|missing|blocked|blocks|requires|required|doesn't exist|does not exist|\
    doesn't work|does not work|not yet|not set|not supported|not available|not possible|\
    not in the|not be in|not configured|still fails|still failing|still have|still has|\
    timed out|timing out|timeout|pre-existing|preexisting|unrelated|warning|warnings|\
    orphaned|broken|denied|needs to be|inconsistency|no output|失败|错误|无法|缺少|失敗|エラー|できません|\
    falla|no se puede|falta|échoue|erreur|impossible|manque|fehler|schlägt fehl|fehlt";

/// Phrases of [`FAILING`] and others that say that it is open.
const OPEN: &str = "\
    still|cannot|can't|couldn't|unable|blocked|not yet|remaining|remains|unrelated|\
    pre-existing|not found|missing|might not|does not exist|doesn't exist|requires|\
    needs to be|no output|not configured|not set|无法|还没|まだ|できません|todavía|falta|pas encore|\
    manque|noch nicht|fehlt|inconsistency";

/// Phrases that deny a failure.
const NO_FAILURE: &str = "\
    no errors|no error|no failures|0 failures|0 errors|0 fail|no warnings|without errors|\
    without error|all errors|fixed|resolved|handles|error handling|error message|\
    error messages|now works|now pass|now passes|works now|错误处理|没有错误|sin errores|\
    sans erreur|keine fehler|behoben|no longer|without any|any failures|any errors|\
    succeeded|now handles|would|in case";

/// Phrases of a recommendation, which is not a decision by itself.
const RECOMMENDING: &str = "\
    should|could|would|recommend|recommended|suggest|propose|i'd|sollte|sollten|könnte|könnten|empfehle|devrait|\
    debería|deberíamos|建议|应该";

/// Labels of a prompt and its answer that change an earlier answer: "Changed: 30 seconds → Set."
pub(super) const CORRECTED: &str = "Corrected: ";
pub(super) const CHANGED: &str = "Changed: ";

/// Beginnings of remarks that tell nothing.
const REMARKS: &str = "\
    perfect|great|excellent|good question|good idea|good point|you're right|\
    you're absolutely|you are right|you are correct|you're welcome|you're correct|ah|i see|\
    let me|now let me|now i|i'll|i will|i'm|i've|i can|i understand|i apologize|let's|sure|\
    thank|thanks|here's|here is|here are|would you|do you want|all done|all clean|all set|\
    summary|hello|glad|committed|looking at|is there|the changes are|我将|我来|我先|我会|让我|现在我";

/// Beginnings of statements that announce what is done next.
const ANNOUNCING: &str = "\
    let me|now let me|let's|now let's|i'll|now i'll|i will|now i will|i need to|i'm going to|now that i|\
    我将|我来|我先|我会|让我|我將|讓我";

/// Verbs that begin the name of a step: "Removing the old file."
const STEP: &str = "\
    adding|adjusting|changing|checking|cleaning|converting|creating|deleting|fixing|implementing|installing|\
    making|moving|refactoring|removing|renaming|replacing|running|setting|switching|testing|updating|using|writing";

/// Phrases that praise.
const PRAISE: &str = "\
    much more|much better|more maintainable|professional|production ready|well organized|better organized|\
    properly organized|properly updated|consistent and|ready for review|ready for use|ready to use|ready whenever|complete documentation";

/// Words of which a sentence has one that tells something of a step: "Running it twice fails."
const VERBS: &str = "\
    is|are|was|were|isn't|aren't|wasn't|weren't|has|have|had|does|doesn't|did|didn't|can|can't|cannot|will|won't|\
    would|should|must|may|might|need|needs|require|requires|fail|fails|failed|work|works|worked|pass|passes|passed|\
    makes|made|causes|caused|breaks|broke|fixes|fixed|takes|took|gives|gave|avoids|means|lets|keeps|returns|→";

/// Beginnings of lines that offer what the items of the list below them say.
const OFFERING: &str = "\
    if you|if you'd|would you|do you|should i|shall i|let me know|you could|you can|i can|i could|we could|try|\
    you should|next steps|options|如果|需要|要不要|si quieres|si vous|wenn du|falls du";

/// Returns the statements of an answer: sentences and list items, without code and offers.
pub(super) fn statements(answer: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let (mut is_code, mut is_offered) = (false, false);
    let mut parent = String::new();
    for line in answer.lines() {
        let is_nested = line.starts_with(['\t', ' ']) && line.len() - line.trim_start().len() > 1;
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let is_table = line.starts_with('|');
        let is_item = without_marker(line).len() < line.len() && !line.starts_with('#');
        if !line.is_empty() && !is_item {
            let is_announced = line.ends_with([':', '：', '?', '？']);
            let plain = without_bold(line);
            let words = Words::new(&plain);
            is_offered = is_announced
                && (is_question(line) || words.begin(OFFERING) || words.contain("options"));
        }
        if is_code
            || is_offered && is_item
            || line.starts_with('#')
            || (!is_table && is_pasted(line) && !line.starts_with(['-', '*']))
        {
            continue;
        }
        let cells = without_bold(line.trim_matches('|'));
        let cells = if is_table {
            cells.replace('|', "—")
        } else {
            cells
        };
        let text = without_marker(&cells);
        let text =
            text.trim_start_matches(|c: char| !c.is_alphanumeric() && !"`\"'(@-#/.[".contains(c));
        if is_item && is_nested && !parent.is_empty() && parent.len() + text.len() < MAX_JOINED {
            let joined = format!("{}: {text}", parent.trim_end_matches(['.', ':', '：']));
            split(&joined, SentenceEnd::BeforeCapital, &mut sentences);
            continue;
        }
        if !is_nested && !line.is_empty() {
            parent = if is_item {
                text.to_owned()
            } else {
                String::new()
            };
        }
        split(text, SentenceEnd::BeforeCapital, &mut sentences);
    }
    sentences.retain(|text| {
        (is_dense(text) || text.chars().count() >= MIN_STATEMENT) && !is_expiring(text)
    });
    if sentences.len() > MAX_STATEMENTS {
        let end = sentences.len() - MAX_STATEMENTS / 2;
        sentences.drain(MAX_STATEMENTS / 2..end);
    }
    sentences
}

/// Returns how much a statement tells a later session.
pub(super) fn weight(statement: &str) -> f32 {
    let words = Words::new(statement);
    let marks = [
        (words.contain(REASON), 2.0),
        (words.contain(DONE), 1.0),
        (words.contain(FAILING), 1.3),
        (words.begin(REMARKS), -2.2),
        (statement.ends_with(':'), -1.0),
        (is_question(statement), -1.5),
        // "I found the issue."
        (
            length(statement) < 20.0 && specifics(statement) < 1.0 && !is_dense(statement),
            -1.5,
        ),
    ];
    sum_of_marks(&marks) + (0.8 * specifics(statement)).min(2.4) - length(statement) / 400.0
}

/// Returns whether a statement is one whole sentence that can be understood alone.
pub(super) fn is_whole(statement: &str) -> bool {
    const MIN_WORDS: usize = 5;
    let words = Words::new(statement);
    let text = statement.trim_end_matches([')', '`', '"', '*', '\'']);
    let begins = statement.trim_start_matches(['`', '"', '(', '@', '.', '/', '-']);
    // A cut through code leaves a fragment.
    let is_cut = statement.matches('`').count() % 2 == 1;
    text.ends_with(['.', '!', '。', '！'])
        && !is_cut
        && !begins.starts_with(char::is_lowercase) | statement.starts_with('`')
        && !begins.starts_with('→')
        && (is_dense(statement) || words.iter().count() >= MIN_WORDS)
        && !refers(statement)
        && !is_remark(statement)
}

/// Returns whether a statement tells a result that can be understood alone: a whole sentence that offers
/// nothing, a command with its failure, or a change of an earlier answer.
pub fn tells_result(statement: &str) -> bool {
    is_whole(statement) && !says_nothing(statement)
        || statement.starts_with('`') && failure_weight(statement) > 0.0
        || [CORRECTED, CHANGED]
            .iter()
            .any(|label| statement.starts_with(label))
            && statement.contains(ARROW)
}

/// Returns whether a statement praises a result without naming it: "The folder is much more organized now."
fn praises(statement: &str) -> bool {
    let words = Words::new(statement);
    words.contain(PRAISE) && !words.contain(WHY)
}

/// Returns whether a statement only offers something, praises, or says that something passes.
pub fn says_nothing(statement: &str) -> bool {
    Words::new(statement).begin(OFFERING) || is_status(statement) || praises(statement)
}

/// Returns whether a statement announces what is done next: "I'll fix the test.", "Removing the old
/// file."
pub fn announces(statement: &str) -> bool {
    let words = Words::new(statement);
    words.begin(ANNOUNCING) || words.begin(STEP) && !words.contain(VERBS)
}

/// Returns whether a statement says only that something passes, or names a command: "Lint: `make lint`."
fn is_status(statement: &str) -> bool {
    const STATUS: &str = "passed|pass|passes|succeeded|is clean|are green|no errors|no failures";
    let words = Words::new(statement);
    let command = statement.trim_end_matches('.').strip_suffix('`');
    let label = command.and_then(|text| text.split_once(": `"));
    // "All tests pass (1309)": a count names nothing.
    let unnumbered = statement.replace(|c: char| c.is_ascii_digit(), "");
    words.contain(STATUS) && specifics(&unnumbered) < 1.0
        || label.is_some_and(|(_, command)| !command.contains('`'))
        || words.begin("if|when|wenn|si|如果")
}

/// Returns whether a statement begins with what was done to something with a name.
pub(super) fn is_change(statement: &str) -> bool {
    Words::new(statement).begin(DONE) && specifics(statement) >= 1.0
}

/// Returns whether a statement needs the one before it to be understood.
pub(super) fn refers(statement: &str) -> bool {
    Words::new(statement).begin(REFERRING)
}

/// Returns whether a whole sentence says what is done, and why. Names in code say neither.
pub(super) fn decides(statement: &str) -> bool {
    let words = Words::new(&unquoted(statement));
    words.contain(WHY)
        && !words.contain("i will|i'll|failed|fails|failing|mistake")
        && (words.contain(DONE)
            || words.contain("keep|kept|chose|should|must|instead of|rather than"))
}

/// Returns whether a sentence recommends something.
pub(super) fn recommends(statement: &str) -> bool {
    Words::new(&unquoted(statement)).contain(RECOMMENDING)
}

/// Returns how much a statement tells of something that does not work.
pub(super) fn failure_weight(statement: &str) -> f32 {
    let words = Words::new(statement);
    if !words.contain(FAILING) || words.contain(NO_FAILURE) || is_question(statement) {
        return 0.0;
    }
    let marks = [
        (words.contain(OPEN), 0.8),
        (words.contain(DONE), -1.2),
        (words.begin(REMARKS), -1.0),
        // A condition or an instruction is no report.
        (
            words.begin("if|when|line|adjusting|added|wenn|si|如果"),
            -1.5,
        ),
    ];
    0.6 + sum_of_marks(&marks) + (0.8 * specifics(statement)).min(1.6) - length(statement) / 400.0
}

/// Returns whether a statement says that something does not work and why it stays so.
pub(super) fn tells_open_failure(statement: &str) -> bool {
    Words::new(statement).contain(OPEN) && failure_weight(statement) > 0.0
}

/// Returns whether the statements of an answer say more than "done".
pub(super) fn is_substantial(statements: &[String]) -> bool {
    const MIN_ANSWER: usize = 80;
    let told: usize = statements
        .iter()
        .filter(|statement| !Words::new(statement).begin(REMARKS))
        .map(|statement| statement.chars().count() * if is_dense(statement) { 3 } else { 1 })
        .sum();
    told >= MIN_ANSWER
}

/// Returns whether a statement only accompanies what was done.
pub(super) fn is_remark(statement: &str) -> bool {
    Words::new(statement).begin(REMARKS) || is_question(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_an_offer_are_no_statements() {
        let answer = "The parser reads dates now.\n\nIf you want, I can add:\n\n- a test for leap years\n\
            - a benchmark of the parser\n\nThe old format stays. You have a few options:\n\n1. Keep a benchmark of it\n\n\
            The changes are:\n- `dates.rs` reads ISO dates";
        let told = statements(answer);
        assert!(
            told.iter().any(|text| text.contains("ISO dates")),
            "{told:?}"
        );
        assert!(
            told.iter()
                .all(|text| !text.contains("leap") && !text.contains("benchmark")),
            "{told:?}"
        );
    }

    #[test]
    fn statements_are_sentences_and_items_without_code() {
        let answer = "## Fixed\n\n**Root cause:** the cache was stale. Done!\n- ✅ `a.rs` uses the new key\n\
            ```rust\nlet x = 1;\n```\n| File | Change |\n| --- | --- |\n| b.rs | renamed to c.rs |";
        assert_eq!(
            statements(answer),
            [
                "Root cause: the cache was stale.",
                "`a.rs` uses the new key",
                "File — Change",
                "b.rs — renamed to c.rs"
            ]
        );
    }

    #[test]
    fn an_item_below_another_one_comes_with_it() {
        let answer = "- Changes to `User`:\n  - `name` is optional\n  - `id` is a number\n- The cart has tests\n\n\
            The rest stays as it is.\n  - a lone item of it";
        assert_eq!(
            statements(answer),
            [
                "Changes to `User`:",
                "Changes to `User`: `name` is optional",
                "Changes to `User`: `id` is a number",
                "The cart has tests",
                "The rest stays as it is.",
                "a lone item of it"
            ]
        );
    }

    #[test]
    fn reasons_weigh_more_than_remarks() {
        let reason = weight("It failed because `bytes` is the imported package.");
        let remark = weight("Perfect, I have updated everything for you.");
        assert!(reason > 2.0 && remark < 0.0, "{reason} {remark}");
    }

    #[test]
    fn open_failures() {
        assert!(failure_weight("The push is still blocked by secret scanning.") > 0.5);
        for fine in [
            "All tests pass, no errors.",
            "Fixed the failing test.",
            "Does it fail?",
            "Added a menu.",
        ] {
            assert!(failure_weight(fine) <= 0.0, "{fine}");
        }
    }

    #[test]
    fn decisions_say_what_is_done_and_why() {
        let decides = |text: &str| is_whole(text) && decides(text);
        assert!(decides(
            "The queue uses Redis because two workers share it."
        ));
        for other in [
            "Otherwise, this page is now ready for use.",
            "The hook matched on `fix.py` because it is too careful.",
            "From now on I will always use the program to avoid that.",
            "The install failed because it set no terminal.",
            "cart/total` will now work because the files have one folder.",
        ] {
            assert!(!decides(other), "{other}");
        }
    }

    #[test]
    fn what_is_done_next_is_announced() {
        for (statement, expected) in [
            ("Now I'll fix the search, which ignores the limit.", true),
            ("Let's fix the linter error in the engine.", true),
            ("Now that I know the system, I'll write the task.", true),
            (
                "Removing the rule file as it duplicates the workflow.",
                true,
            ),
            ("Adding a pull request to the command", true),
            ("Running it twice fails with a lock.", false),
            ("Using one key for both is wrong.", false),
            ("During the run the port changed", false),
            ("Now both messages are the same.", false),
        ] {
            assert_eq!(announces(statement), expected, "{statement}");
        }
    }

    #[test]
    fn short_answers_are_not_substantial() {
        let long = "The port is read from the settings of the gateway. ".repeat(3);
        for (answer, expected) in [
            (
                "You're welcome! Let me know if you need anything else.",
                false,
            ),
            ("Hello! How can I help you today?", false),
            (&long, true),
        ] {
            assert_eq!(is_substantial(&statements(answer)), expected, "{answer}");
        }
    }
}
