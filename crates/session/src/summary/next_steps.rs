//! Finds the lines of an answer that name next steps.
//!
//! An answer names them in three ways: a label and a colon (`Next: the cart.`) at the start of a
//! line or sentence; a label or heading with a list below it; an unchecked box (`- [ ] the cart`).
//! All other prose is ignored, because an invented step is worse than none. Code blocks and
//! quotations are skipped.

use crate::{
    directive::specifics,
    phrases::{Words, is_in},
    prose::without_bold,
};
use anamnesis_text::truncate::{first_characters, line};

/// The maximum number of steps.
pub(super) const MAX_STEPS: usize = 5;

/// The maximum length of a step, in characters.
const MAX_STEP: usize = 200;

/// The maximum length of a label with its remark in brackets, in characters.
const MAX_LABEL: usize = 60;

/// Labels of steps in lower case, a line per language or more.
const LABELS: &str = "\
    follow-up|follow-ups|left to do|next|next step|next steps|next up|not done yet|not yet done|open items|\
    open points|outstanding|remaining|remaining steps|remaining tasks|remaining work|still missing|still open|\
    still to do|to do|to-do|todo|todos|up next|what's left|what's next|what’s left|what’s next|\
    als nächstes|nächste schritte|nächster schritt|noch offen|noch zu tun|offen|offene punkte|\
    pendiente|pendientes|próximo paso|próximos pasos|siguiente paso|siguientes pasos|\
    prochaine étape|prochaines étapes|reste à faire|à faire|étape suivante|étapes suivantes|\
    下一步|下一步计划|后续步骤|待办|待办事项|接下来|\
    次|次のステップ|残作業|残りの作業|今後の予定|今後の作業";

/// Words before a label that do not change its meaning.
const QUALIFIERS: &str =
    "a|few|immediate|logical|my|optional|possible|recommended|some|suggested|the|your";

/// Beginnings of answers that name no step.
const NOTHING: &str = "nothing|nichts|nada|rien|n/a";

/// Answers that name no step if they stand alone.
const NONE: &str = "none|keine|keins|ninguno|ninguna|aucun|aucune|无|没有|なし";

/// Words that may follow one of [`NONE`] without making it a step.
const AFTER_NONE: &str = "at|for|left|needed|remain|remaining|required";

/// Beginnings of advice that any work could end with, where it names nothing.
const ADVICE: &str = "\
    review|consider|share|once|feel free|monitor|gather|familiarize|enjoy|celebrate|keep an eye|let me know";

/// Returns the next steps named in an answer: at most 5 lines of at most 200 characters.
pub fn next_steps(text: &str) -> Vec<String> {
    let mut reader = Reader::default();
    for line in text.lines() {
        if reader.steps.len() == MAX_STEPS {
            break;
        }
        reader.take_line(line);
    }
    reader.steps
}

/// The steps found so far, and the position in the answer.
#[derive(Default)]
struct Reader {
    steps: Vec<String>,
    section: Section,
    /// The marker of the open code block.
    fence: Option<(char, usize)>,
}

/// The kind of the lines below a label.
#[derive(Default, Clone, Copy)]
enum Section {
    /// There is no label above.
    #[default]
    None,
    /// A label without a step of its own. An item that is no deeper than `above` is not below it.
    Opened { above: Option<usize> },
    /// A list of steps that starts at this indentation.
    List { above: Option<usize>, indent: usize },
}

impl Reader {
    fn take_line(&mut self, raw: &str) {
        let text = raw.trim();
        if self.is_code(text) || text.is_empty() {
            return;
        }
        let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
        if text.starts_with('>') {
            self.section = Section::None;
            return;
        }
        let item = item(text);
        if let Some(task) = item.and_then(|item| item.strip_prefix("[ ] ")) {
            self.push(task);
            return;
        }
        let heading = heading(text);
        let body = item.or(heading).unwrap_or(text);
        let above = item.map(|_| indent);
        if heading.is_some() && is_label(body.trim_end_matches([':', '：', '*'])) {
            self.section = Section::Opened { above };
        } else if let Some(step) = after_label(body) {
            self.section = Section::None;
            if step.is_empty() || step.ends_with([':', '：']) {
                self.section = Section::Opened { above };
            } else {
                self.push_sentences(step, true);
            }
        } else if heading.is_some() {
            self.section = Section::None;
        } else if !self.take_below_label(item, text, indent) {
            self.push_sentences(body, false);
        }
    }

    /// Handles a line below a label. Returns whether it was one.
    fn take_below_label(&mut self, item: Option<&str>, text: &str, indent: usize) -> bool {
        let (above, list) = match self.section {
            Section::None => return false,
            Section::Opened { above } => (above, None),
            Section::List { above, indent } => (above, Some(indent)),
        };
        match (item, list) {
            (Some(_), _) if above.is_some_and(|above| indent <= above) => {
                self.section = Section::None;
                false
            }
            (Some(item), None) => {
                self.section = Section::List { above, indent };
                self.push_item(item);
                true
            }
            (Some(item), Some(list)) => {
                // A deeper item explains the step above it.
                if indent <= list {
                    self.push_item(item);
                }
                true
            }
            (None, None) => {
                self.section = Section::None;
                self.push(text);
                true
            }
            // An indented line continues the item above.
            (None, Some(_)) if indent > 0 => true,
            (None, Some(_)) => {
                self.section = Section::None;
                false
            }
        }
    }

    /// Returns whether a line belongs to a code block.
    fn is_code(&mut self, text: &str) -> bool {
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let length = mark.map_or(0, |mark| text.chars().take_while(|&c| c == mark).count());
        match (self.fence, mark) {
            (Some((open, least)), Some(mark)) => {
                // The markers are ASCII, so bytes equal characters.
                if mark == open && length >= least && length == text.len() {
                    self.fence = None;
                }
                true
            }
            (Some(_), None) => true,
            (None, Some(mark)) if length >= 3 => {
                // A line that contains the marker again is inline code.
                let opens = !text.get(length..).unwrap_or_default().contains('`');
                self.fence = opens.then_some((mark, length));
                opens
            }
            (None, _) => false,
        }
    }

    /// Adds the steps that sentences within a line name.
    fn push_sentences(&mut self, text: &str, mut is_step: bool) {
        let mut rest = text;
        loop {
            let found = sentence_starts(rest)
                .find_map(|start| Some((start, after_label(rest.get(start..)?)?)));
            if is_step {
                self.push(found.map_or(rest, |(start, _)| rest.get(..start).unwrap_or_default()));
            }
            let Some((_, step)) = found else { return };
            rest = step;
            is_step = true;
        }
    }

    fn push_item(&mut self, item: &str) {
        if !is_done(item) {
            self.push(item);
        }
    }

    fn push(&mut self, text: &str) {
        let step = line(&without_bold(text), MAX_STEP);
        if self.steps.len() < MAX_STEPS && is_step(&step) && !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }
}

/// Returns the text of a list item.
fn item(text: &str) -> Option<&str> {
    let after = match text.strip_prefix(['-', '*', '+', '•']) {
        Some(after) => after,
        None => text
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(['.', ')'])
            .filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))?,
    };
    let item = after.trim_start();
    (item.len() < after.len()).then_some(item)
}

/// Returns the text of a heading: marked as one, or a line entirely in bold.
fn heading(text: &str) -> Option<&str> {
    let marked = text.trim_start_matches('#');
    if marked.len() < text.len() {
        return marked.starts_with(' ').then(|| marked.trim());
    }
    let bold = text.trim_end_matches([':', '：']);
    let inner = bold.strip_prefix("**")?.strip_suffix("**")?;
    (!inner.contains("**")).then_some(inner)
}

/// Returns where the sentences after the first one start.
fn sentence_starts(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(move |(position, end)| {
        let needs_blank = match end {
            '.' | '!' | '?' | ';' => true,
            '。' | '！' | '？' | '；' => false,
            _ => return None,
        };
        let after = text.get(position + end.len_utf8()..)?;
        let start = after.trim_start();
        let is_end = !needs_blank || start.len() < after.len();
        is_end.then_some(text.len() - start.len())
    })
}

/// Returns the text after the label at the start of a text.
fn after_label(text: &str) -> Option<&str> {
    let head = first_characters(text, MAX_LABEL);
    let (position, mark) = head
        .char_indices()
        .find(|(_, c)| matches!(c, ':' | '：' | '—' | '–'))?;
    let name = head.get(..position)?;
    let after = text.get(position + mark.len_utf8()..)?;
    let is_free = |after: &str| after.starts_with(|c: char| c.is_whitespace());
    let parts = match mark {
        // `Next:js` is a name, `下一步:写` is a label.
        ':' => {
            after.is_empty()
                || is_free(after)
                || after.starts_with(['*', '_'])
                || !after.starts_with(|c: char| c.is_ascii())
        }
        '：' => true,
        _ => name.ends_with(' ') && is_free(after),
    };
    (parts && is_label(name)).then(|| after.trim_start_matches(['*', '_']).trim())
}

/// Returns whether a text is only a label.
fn is_label(text: &str) -> bool {
    // In code or quotes it is a word being discussed.
    if text.contains(['`', '"', '\'']) && !text.contains("'s ") {
        return false;
    }
    let text = text.trim_end_matches(['*', '_', ' ']);
    let text = match text.strip_suffix([')', '）']) {
        Some(inner) => inner.rfind(['(', '（']).and_then(|open| text.get(..open)),
        None => Some(text),
    };
    let name = text
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_alphanumeric());
    // A lower-case name is a field or variable.
    if name.is_empty() || name.starts_with(char::is_lowercase) {
        return false;
    }
    let name = name.to_lowercase();
    let mut name = name.as_str();
    while let Some((word, rest)) = name.split_once(' ')
        && is_in(QUALIFIERS, word)
    {
        name = rest;
    }
    is_in(LABELS, name)
}

fn is_done(item: &str) -> bool {
    ["[x]", "[X]", "~~", "✅", "✓", "✔"]
        .iter()
        .any(|mark| item.starts_with(mark))
}

/// Returns whether a text names something to do.
fn is_step(text: &str) -> bool {
    if !text.contains(char::is_alphanumeric) {
        return false;
    }
    let lower = first_characters(text, MAX_LABEL).to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '/');
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let is_alone = second.is_empty() || is_in(AFTER_NONE, second);
    let is_nothing = is_in(NOTHING, first) || (is_in(NONE, first) && is_alone);
    let is_advice = Words::new(text).begin(ADVICE) && specifics(text) < 1.0;
    !is_nothing && !is_advice
}

#[cfg(test)]
mod tests;
