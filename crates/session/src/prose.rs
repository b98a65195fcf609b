//! Separates what a person or a model says from what they paste, sentence by sentence.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _, ops::Range};

use crate::{
    directive,
    phrases::{Words, is_dense},
};

/// How many bytes of a text are read, from its beginning.
const MAX_READ: usize = 64 << 10;

/// Beginnings of lines that a person types after pasted ones.
const TYPED: &str = "\
    please|pls|can|could|would|how|why|what|where|when|is|are|do|does|did|should|i|i'm|i've|im|we|fix|help|so|but|and|\
    explain|now|bitte|kannst|wie|warum|was|ich|peux|pourquoi|comment|je|puedes|por qué|cómo|proszę|jak|dlaczego|\
    czy|możesz|请|帮|怎么|为什么|可以|我|これ|なぜ|почему|как";

/// Greetings at the beginning of a letter.
const GREETINGS: &str = "\
    hi|hello|hey|dear|good morning|good afternoon|hallo|liebe|lieber|sehr geehrte|guten tag|bonjour|salut|cher|chère|\
    hola|estimado|estimada|buenos días|olá|ciao|beste|cześć|dzień dobry|szanowni|drodzy|здравствуйте|привет|你好|您好|各位|\
    moin|servus|大家好";

/// Endings of a letter.
const CLOSINGS: &str = "\
    best regards|kind regards|regards|best wishes|sincerely|yours|cheers|mit freundlichen grüßen|viele grüße|\
    beste grüße|cordialement|bien à vous|saludos|un saludo|atenciosamente|cordiali saluti|pozdrawiam|z poważaniem|\
    с уважением|此致|敬上";

/// Fields at the head of a mail.
const MAIL_FIELDS: [&str; 14] = [
    "from:",
    "to:",
    "subject:",
    "sent:",
    "cc:",
    "von:",
    "an:",
    "betreff:",
    "objet:",
    "asunto:",
    "temat:",
    "发件人",
    "主题",
    "re:",
];

/// Phrases that refer to a text of somebody else.
const REFERRING: &str = "\
    below|above|following|attached|forwarded|wrote|writes|says|he said|she said|they said|this mail|this email|\
    this e-mail|the mail|the email|this message|the message|this text|this comment|this ticket|this issue|this article|\
    this post|this page|this readme|this doc|these instructions|the docs say|summarize|summarise|translate|reply to|\
    respond to|proofread|rephrase|reword|the grammar|said that|this sentence|meint|meinte|sagt|sagte|steht|diese mail|diese nachricht|schreibt|schrieb|folgende|folgenden|oben|unten|übersetze|\
    fasse|ce mail|ce message|ci-dessous|ci-dessus|traduis|résume|este correo|este mensaje|abajo|traduce|escribió|\
    ten mail|tego maila|tę wiadomość|poniżej|powyżej|przetłumacz|streść|napisał|napisała|邮件|下面|以下|上面|翻译|总结|\
    他说|她说|跟我说|写着|这句话|メール|以下|上記|翻訳";

/// A text without the material that was pasted into it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose {
    /// The sentences, in order; list items without their markers.
    pub sentences: Vec<String>,
    /// The first pasted line that names an error.
    pub error: Option<String>,
    /// The sentences that are a list with its head, and whether that is a list of rules.
    lists: Vec<(String, bool)>,
    /// The request that a person typed behind a text of somebody else.
    pub(crate) typed_behind: Vec<String>,
}

impl Prose {
    /// Splits a sanitised text.
    pub fn new(text: &str) -> Self {
        let mut prose = Self::default();
        let head = without_pasted_blocks(anamnesis_text::sanitize::head(text, MAX_READ));
        let lines = unwrapped(head.lines().map(|line| without_placeholders(line.trim())));
        let typed_again = typed_again(&lines, |line| Words::new(line).begin(TYPED));
        let mut is_code = false;
        // What follows a colon, a greeting or an open quotation mark was pasted. A list was typed.
        let mut is_quoted = false;
        let mut is_open = false;
        let mut is_announced = false;
        let mut announces_error = false;
        let mut is_in_list = false;
        let mut lists: Vec<Range<usize>> = Vec::new();
        let behind = request_behind(&lines);
        for (number, line) in lines.iter().enumerate() {
            let item = without_marker(line);
            if line.starts_with("```") {
                is_code = !is_code;
                is_announced = false;
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let is_item = item.len() != line.len() && !line.starts_with('#');
            let is_typed_again = typed_again == Some(number) && !is_announced;
            is_quoted = (is_quoted && !is_typed_again)
                || is_announced && !is_item
                || number > 0 && begins_letter(line);
            is_announced = false;
            is_in_list &= is_item;
            if behind == Some(number) && !is_code {
                split(item, SentenceEnd::AnyStop, &mut prose.typed_behind);
            }
            let marks = line.matches(['"', '“', '”']).count();
            let begins_quote = line.starts_with(['"', '“']) && marks == 1;
            let is_in_quote = is_open || begins_quote;
            is_open = if is_open {
                marks == 0 && !is_typed_again
            } else {
                begins_quote
            };
            if is_code || is_quoted || is_in_quote || is_pasted(line) {
                prose.take_pasted(line, announces_error);
                continue;
            }
            let start = prose.sentences.len();
            split(item, SentenceEnd::AnyStop, &mut prose.sentences);
            let end = prose.sentences.len();
            if is_in_list && let Some(list) = lists.last_mut() {
                list.end = end;
            }
            is_announced = line.ends_with([':', '：']);
            announces_error = is_announced && names_error(line);
            let next = lines.get(number + 1).map_or("", |next| next.as_ref());
            let is_head = !is_in_list && (is_announced || !is_item && heads_list(line, next));
            let colon = if is_announced { "" } else { ":" };
            let head = prose.sentences[start..].last().filter(|_| is_head);
            let head = head.map(|head| format!("{head}{colon}"));
            if let Some(head) = head.filter(|head| directive::binds_items(head)) {
                prose.sentences[end - 1] = head;
                lists.push(end - 1..end);
                is_in_list = true;
            }
        }
        for list in lists.into_iter().rev().filter(|list| list.len() > 1) {
            prose.join(list);
        }
        if !prose.has_rule_list() {
            prose.drop_repeated();
        }
        prose
    }

    /// Takes from a pasted line the first error, and the number of the issue that a link leads to.
    fn take_pasted(&mut self, line: &str, is_error: bool) {
        if self.error.is_none() {
            let is_named = is_error && line.chars().any(char::is_alphabetic);
            self.error = error_in(line).or_else(|| is_named.then(|| line.to_owned()));
        }
        if let Some(last) = self.sentences.last_mut()
            && let Some(number) = number_of_link(line)
        {
            let _ = write!(last, " (#{number})");
        }
    }

    /// Makes one sentence of a head and its items, which alone say something else: "Never: push to main".
    fn join(&mut self, list: Range<usize>) {
        let [head, items @ ..] = &self.sentences[list.clone()] else {
            return;
        };
        let items = items
            .iter()
            .map(|item| item.trim_end_matches(['.', ';', '。', '；']));
        let text = format!("{head} {}", items.collect::<Vec<_>>().join("; "));
        let has_rules = directive::announces_rules(head);
        self.lists.push((text.clone(), has_rules));
        self.sentences.splice(list, [text]);
    }

    /// Returns whether a sentence is a list with its head.
    pub(crate) fn is_list(&self, sentence: &str) -> bool {
        self.lists.iter().any(|(text, _)| text == sentence)
    }

    /// Returns whether a sentence is a list of rules with its head.
    pub(crate) fn is_rule_list(&self, sentence: &str) -> bool {
        let mut lists = self.lists.iter();
        lists.any(|(text, has_rules)| *has_rules && text == sentence)
    }

    pub(crate) fn has_rule_list(&self) -> bool {
        self.lists.iter().any(|(_, has_rules)| *has_rules)
    }

    /// Drops sentences that occur twice: a program prints them, a person does not type them.
    fn drop_repeated(&mut self) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for sentence in &self.sentences {
            *counts.entry(sentence).or_default() += 1;
        }
        if counts.len() == self.sentences.len() {
            return;
        }
        let single = |sentence: &&String| counts.get(sentence.as_str()) == Some(&1);
        self.sentences = self.sentences.iter().filter(single).cloned().collect();
    }
}

/// Returns the part of a prompt that a person plainly typed: its first paragraph, if nothing says that
/// the prompt contains or refers to a text of somebody else.
pub(crate) fn typed_part(prompt: &str) -> Option<&str> {
    let is_foreign = |line: &str| {
        line.starts_with('>') || begins_letter(line) || Words::new(line).begin(CLOSINGS)
    };
    if prompt.lines().any(|line| is_foreign(line.trim())) || Words::new(prompt).contain(REFERRING) {
        return None;
    }
    let mut end = 0;
    for line in prompt.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        let head = prompt[..end].trim_end().lines().last().unwrap_or_default();
        if is_blank && !directive::announces_rules(head) {
            break;
        }
        end += line.len();
    }
    Some(&prompt[..end])
}

/// Returns whether a line without a colon stands above a list.
fn heads_list(line: &str, next: &str) -> bool {
    !line.ends_with(['.', '!', '?', ',', ';']) && without_marker(next).len() != next.len()
}

/// Returns the line at which a person types again behind other lines: the last paragraph or line, if it asks.
fn typed_again(lines: &[Cow<'_, str>], asks: impl Fn(&str) -> bool) -> Option<usize> {
    let is_typed = |line: &usize| asks(&lines[*line]);
    let last = lines.iter().rposition(|line| !line.is_empty())?;
    let before = lines[..last].iter().rposition(|line| line.is_empty());
    before
        .map(|blank| blank + 1)
        .filter(is_typed)
        .or(Some(last).filter(is_typed))
}

/// Returns the line of a request behind a text of somebody else: such a request begins like it ("translate"), or
/// the first line was pasted or begins a letter.
fn request_behind(lines: &[Cow<'_, str>]) -> Option<usize> {
    let refers = |line: &str| Words::new(line).begin(REFERRING);
    let typed = typed_again(lines, |line| {
        let is_order = refers(line) || directive::orders(line) || directive::is_question(line);
        is_order || Words::new(line).begin(TYPED)
    })?;
    let first = lines.iter().position(|line| !line.is_empty())?;
    let is_foreign = |line: &str| line.starts_with("```") || is_pasted(line) || begins_letter(line);
    (typed > first && (is_foreign(&lines[first]) || refers(&lines[typed]))).then_some(typed)
}

/// Returns whether a line is at the head of a mail or a letter.
fn begins_letter(line: &str) -> bool {
    const MAX_GREETING: usize = 50;
    let lower = line.to_lowercase();
    MAIL_FIELDS.iter().any(|field| lower.starts_with(field))
        || line.ends_with([',', '，', '!', '！', ':', '：'])
            && line.chars().count() <= MAX_GREETING
            && Words::new(line).begin(GREETINGS)
}

/// Returns whether a text begins with the greeting of a letter.
pub(crate) fn greets(text: &str) -> bool {
    Words::new(text).begin(GREETINGS)
}

/// Puts `…` in place of each text that the client marks as pasted. What is before and after it belongs to
/// one sentence.
fn without_pasted_blocks(text: &str) -> Cow<'_, str> {
    const START: &str = "<pasted_content";
    const END: &str = "</pasted_content";
    let mut rest = text;
    let mut typed = String::new();
    while let Some((before, block)) = rest.split_once(START) {
        let after = block.split_once(END).map_or("", |(_, after)| after);
        typed.push_str(before.trim_end());
        typed.push('…');
        rest = after
            .split_once('>')
            .map_or("", |(_, after)| after)
            .trim_start();
    }
    if typed.is_empty() {
        return Cow::Borrowed(text);
    }
    typed.push_str(rest);
    Cow::Owned(typed)
}

/// Joins lines that were wrapped: a long line without an end, and one that begins with a small letter.
fn unwrapped<'a>(lines: impl Iterator<Item = Cow<'a, str>>) -> Vec<Cow<'a, str>> {
    const MIN_WRAPPED: usize = 50;
    let mut joined: Vec<Cow<'a, str>> = Vec::new();
    let mut is_wrapped = false;
    for line in lines {
        let goes_on = is_wrapped && line.starts_with(char::is_lowercase) && !is_pasted(&line);
        let ends = line.ends_with(['.', '!', '?', ':', ';', '`']);
        is_wrapped = !ends && line.len() >= MIN_WRAPPED && !is_dense(&line) && !is_pasted(&line);
        match joined.last_mut().filter(|_| goes_on) {
            Some(last) => {
                let last = last.to_mut();
                last.push(' ');
                last.push_str(&line);
            }
            None => joined.push(line),
        }
    }
    joined
}

/// Removes what the client puts in place of an image or a pasted text: `[Image #1]`.
fn without_placeholders(line: &str) -> Cow<'_, str> {
    const PLACEHOLDERS: [&str; 3] = ["[Image", "[Pasted text", "[...Truncated text"];
    let mut line = Cow::Borrowed(line);
    for placeholder in PLACEHOLDERS {
        while let Some(start) = line.find(placeholder)
            && let Some(length) = line[start..].find(']')
        {
            let text = format!("{}{}", &line[..start], &line[start + length + 1..]);
            line = Cow::Owned(text.trim().to_owned());
        }
    }
    line
}

/// Returns a line without a list marker, a check box or a heading marker.
pub(crate) fn without_marker(line: &str) -> &str {
    let line = line.trim().trim_start_matches('#').trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (rest.len() < line.len()).then(|| rest.strip_prefix(['.', ')']));
    let item = line
        .strip_prefix(['-', '*', '•', '–'])
        .or(numbered.flatten())
        .and_then(|item| item.strip_prefix(' '))
        .unwrap_or(line)
        .trim_start();
    ["[ ] ", "[x] ", "[X] "]
        .iter()
        .find_map(|mark| item.strip_prefix(mark))
        .unwrap_or(item)
}

/// The rule for the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentenceEnd {
    /// At any full stop: people write without capitals.
    AnyStop,
    /// At a full stop before anything but a small letter.
    BeforeCapital,
}

/// Splits a line into sentences.
pub(crate) fn split(line: &str, at: SentenceEnd, sentences: &mut Vec<String>) {
    let goes_on = |rest: &str| {
        let rest = rest.trim_start();
        // No sentence begins with one: `a(...)` → `b(...)`.
        rest.starts_with(['→', '=', '–', '—'])
            || at == SentenceEnd::BeforeCapital && rest.starts_with(char::is_lowercase)
    };
    let mut start = 0;
    let mut characters = line.char_indices().peekable();
    while let Some((stop, c)) = characters.next() {
        let is_end = match c {
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' => {
                // A closing quote or bracket belongs to the sentence.
                while characters
                    .next_if(|(_, c)| {
                        matches!(c, '"' | '\'' | ')' | ']' | '*' | '`' | '!' | '?' | '.')
                    })
                    .is_some()
                {}
                let next = characters.peek().map_or(line.len(), |(next, _)| *next);
                let goes_on = line[stop..next].starts_with("...")
                    && line[next..].trim_start().starts_with(char::is_lowercase);
                characters.peek().is_none_or(|(_, c)| c.is_whitespace())
                    && !goes_on
                    && !is_abbreviation(&line[start..stop])
            }
            _ => false,
        };
        let end = characters.peek().map_or(line.len(), |(end, _)| *end);
        if is_end && !goes_on(&line[end..]) {
            push(&line[start..end], sentences);
            start = end;
        }
    }
    push(&line[start..], sentences);
}

fn push(sentence: &str, sentences: &mut Vec<String>) {
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        sentences.push(sentence.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

/// Returns whether the full stop after this text belongs to an abbreviation or a list number.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    matches!(
        word,
        "e.g" | "i.e" | "etc" | "vs" | "z.B" | "d.h" | "bzw" | "ca" | "Nr" | "p.ej"
    ) || (word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty())
}

/// Returns whether a line was copied from a terminal, a log, a trace or code.
pub(crate) fn is_pasted(line: &str) -> bool {
    const PROMPTS: [&str; 8] = ["$ ", "❯", "➜", "PS ", "⎿", "% ", "npm error ", "** ("];
    const CODE: [char; 15] = [
        '│', '├', '└', '─', '╭', '╰', '┌', '|', '{', '}', '<', '>', '^', '=', ';',
    ];
    let starts_with_time = || {
        let mut characters = line.chars().take(5).filter(|c| !c.is_ascii_digit());
        line.starts_with(|c: char| c.is_ascii_digit())
            && matches!(characters.next(), Some(':' | '-' | '/'))
            && line.chars().take(5).filter(char::is_ascii_digit).count() >= 4
    };
    PROMPTS.iter().any(|prompt| line.starts_with(prompt))
        || line.starts_with(CODE)
        || is_stack_frame(line)
        || starts_with_time()
        || is_link(line)
        || is_diagnostic(line)
        || is_log_entry(line)
        || is_timed(line)
        || is_statement(line)
        || is_mostly_symbols(line)
}

fn is_link(line: &str) -> bool {
    (line.starts_with("https://") || line.starts_with("http://")) && !line.contains(' ')
}

/// Returns the number of the issue or pull request to which a line of only a link leads.
fn number_of_link(line: &str) -> Option<&str> {
    let mut parts = line.split(['/', '#', '?']);
    is_link(line).then_some(())?;
    parts.find(|part| matches!(*part, "issues" | "pull" | "merge_requests"))?;
    let number = parts.next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

/// Returns whether a line is a stack frame as printed by Python, JavaScript, Java, Rust or gdb.
pub fn is_stack_frame(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.trim_start_matches('#');
    let number = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    // "#0  main () at main.c:3", but not "#12 is fixed".
    let is_gdb = line.starts_with('#') && (number.starts_with(" 0x") || number.contains(") at "));
    let is_numbered = number.len() < digits.len() && (is_gdb || number.starts_with(": 0x"));
    is_numbered
        || (line.starts_with("at ") && line.contains([':', '(']))
        || (line.starts_with("File \"") && line.contains("line "))
        || line.starts_with("Traceback (")
}

/// Returns whether a line is a compiler's message or an exception.
fn is_diagnostic(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let label = line.split([':', '[']).next().unwrap_or_default();
    let kind = label.rsplit('.').next().unwrap_or_default();
    let is_one_word = !label.contains(' ') && label.len() < line.len();
    is_one_word
        && (["error", "warning", "warn", "fatal", "panic", "info", "debug", "deprecation", "npm err!"]
            .contains(&label.to_lowercase().as_str())
            || (kind.len() > 5 && (kind.ends_with("Error") || kind.ends_with("Exception"))))
        || has_place(line)
        // `src/a.cs(376,5): error CS8510: …`, `src/a.rs:3:5: …`
        || line.split_once(": ").is_some_and(|(place, _)| {
            !place.contains(' ')
                && place.contains(['/', '\\', '.'])
                && place.trim_end_matches(')').ends_with(|c: char| c.is_ascii_digit())
        })
}

/// Returns whether a line is an entry of a log: with a tag, a level, the script that prints it, or its place
/// at the end, as a browser's console has it: `[vite] connected. client:618:15`.
fn is_log_entry(line: &str) -> bool {
    const LEVELS: [&str; 6] = [
        "[info]",
        "[warn]",
        "[warning]",
        "[error]",
        "[notice]",
        "[debug]",
    ];
    let tag = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let is_tag = |tag: &str| tag.len() > 1 && !tag.contains(' ');
    let script = line.split_once(": ").map(|(script, _)| script);
    let is_place = |word: &str| {
        let mut parts = word.rsplit(':');
        let mut is_number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
        is_number() && is_number() && !word.starts_with('@')
    };
    tag.is_some_and(|(tag, _)| is_tag(tag))
        || LEVELS.iter().any(|level| line.contains(level))
        || script.is_some_and(|script| script.starts_with('/') && !script.contains(' '))
        || line.split(' ').next_back().is_some_and(is_place) && !Words::new(line).begin(TYPED)
}

/// Returns whether a line ends with the time that a build took: `Restore succeeded in 0.1s`.
fn is_timed(line: &str) -> bool {
    let time = line
        .rsplit_once(" in ")
        .and_then(|(_, time)| time.trim_end_matches('.').strip_suffix('s'));
    time.is_some_and(|time| time.contains('.') && time.parse::<f32>().is_ok())
}

/// Returns whether a line begins with its place as compilers and consoles of browsers print it: `a.ts:3:5 - `,
/// `index.ts:5 [INFO] `. A person names a line with `@`.
fn has_place(line: &str) -> bool {
    let Some((place, rest)) = line.split_once(' ') else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = place.rsplit(':');
    let is_numbered = parts.next().is_some_and(is_number);
    let before = parts.next();
    let has_column = before.is_some_and(is_number);
    let names_file = |name: &str| name.contains('.') && !name.starts_with('@');
    is_numbered
        && before.is_some()
        && names_file(place)
        && (has_column || rest.starts_with(|c: char| c.is_uppercase() || "[-".contains(c)))
}

/// Returns whether a line is a statement of a programming language.
fn is_statement(line: &str) -> bool {
    let is_assignment = line.split_once(" = ").is_some_and(|(name, value)| {
        !name.contains(' ') && value.starts_with(['"', '\'', '[', '{'])
    });
    is_assignment
        || ["';", "\";"].iter().any(|end| line.contains(end))
        || line.ends_with([')', ';', '{', '}'])
            && line.contains(['(', '=', '{'])
            && line.split_whitespace().count() <= 4
            && !line.starts_with(['(', '`'])
            && (line.contains("()") || line.contains(" = ") || line.ends_with([';', '{']))
}

fn is_mostly_symbols(line: &str) -> bool {
    let characters = line.chars().count();
    let told = line
        .chars()
        .filter(|c| c.is_alphabetic() || *c == ' ')
        .count();
    characters > 3 && !is_dense(line) && told * 10 < characters * 6
}

/// Returns the message of a pasted line if it names an error.
fn error_in(line: &str) -> Option<String> {
    let line = line.trim();
    // Without the place, which is often a path of this machine.
    let message = match line.split_once(": ") {
        Some((place, message)) if place.contains(['/', '\\']) => message,
        _ => line,
    };
    (names_error(line) && message.len() > 8).then(|| message.to_owned())
}

/// Returns whether a line names an error.
pub(crate) fn names_error(line: &str) -> bool {
    const ERRORS: [&str; 12] = [
        "error",
        "exception",
        "cannot",
        "can't",
        "failed",
        "fatal",
        "panicked",
        "denied",
        "refused",
        "not found",
        "invalid",
        "不能",
    ];
    let lower = line.to_lowercase();
    ERRORS.iter().any(|error| lower.contains(error))
}

/// Shortens a text to so many characters, at the end of a sentence or a clause if there is one in its
/// second half, else between words. `…` marks a cut.
pub fn shorten(text: &str, count: usize) -> String {
    let head = anamnesis_text::truncate::first_characters(text, count);
    if head.len() == text.len() {
        return text.to_owned();
    }
    let half = head.len() / 2;
    let ends_clause = |(at, c): (usize, char)| {
        let after = at + c.len_utf8();
        let is_end = match c {
            '。' | '！' | '？' | '；' | '，' => true,
            '.' | ';' | '!' | '?' | ',' | ':' => text[after..].starts_with(char::is_whitespace),
            _ => false,
        };
        (is_end && after > half).then_some(after)
    };
    let clause = head.char_indices().rev().find_map(ends_clause);
    let word = head.rfind(char::is_whitespace).filter(|at| *at > half);
    let end = clause.or(word).unwrap_or(head.len());
    let head = head[..end].trim_end_matches(|c: char| c.is_whitespace() || ",;:，；".contains(c));
    format!("{head} …")
}

/// Removes the marks of bold text, but not the `**` of a pattern in code or in a path.
pub(crate) fn without_bold(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (place, part) in text.split('`').enumerate() {
        if place > 0 {
            plain.push('`');
        }
        let mut rest = part;
        while let Some(at) = rest.find("**") {
            let is_path = rest[..at].ends_with('/') || rest[at + 2..].starts_with('/');
            let is_code = place % 2 == 1;
            let end = if is_path || is_code { at + 2 } else { at };
            plain.push_str(&rest[..end]);
            rest = &rest[at + 2..];
        }
        plain.push_str(rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::phrases::is_small_talk;

    fn sentences(text: &str) -> Vec<String> {
        Prose::new(text).sentences
    }

    #[test]
    fn only_the_marks_of_bold_text_are_removed() {
        let text = "**Note:** run `tests/**/*.ts` and src/**/a.rs, **now**";
        assert_eq!(
            without_bold(text),
            "Note: run `tests/**/*.ts` and src/**/a.rs, now"
        );
    }

    #[test]
    fn sentences_and_list_items() {
        for (text, expected) in [
            ("", &[][..]),
            (
                "No. Use pnpm, e.g. pnpm add.",
                &["No.", "Use pnpm, e.g. pnpm add."],
            ),
            ("v1.2.3 of foo.rs fails", &["v1.2.3 of foo.rs fails"]),
            ("- [ ] the cart\n2. the till", &["the cart", "the till"]),
            ("(Never push!) Ask first", &["(Never push!)", "Ask first"]),
            ("不是的。用 pnpm", &["不是的。", "用 pnpm"]),
            ("---\n***", &[]),
            (
                "[Image #1] Always use the tokens of [Image #2] here.\n[Image: source: /tmp/a.png]",
                &["Always use the tokens of here."],
            ),
            (
                "[Pasted text #1 +12 lines] is wrong [...Truncated text #2 +9 lines...]\n[Image #3]",
                &["is wrong"],
            ),
        ] {
            assert_eq!(sentences(text), expected, "{text}");
        }
    }

    #[test]
    fn no_sentence_begins_with_an_arrow() {
        let mut sentences = Vec::new();
        let line = "Fixed: `bytes(...)` → `[]byte(...)`. Done";
        split(line, SentenceEnd::AnyStop, &mut sentences);
        assert_eq!(sentences, ["Fixed: `bytes(...)` → `[]byte(...)`.", "Done"]);
    }

    #[test]
    fn pasted_lines_are_left_out_and_their_error_is_kept() {
        let text = "the build fails:\n```\nsrc/a.rs:3:5: error[E0425]: cannot find value `id`\n```\n\
            2026-01-02 10:00:01 INFO start\n    at run (app.js:3:5)\nTraceback (most recent call last):\n\
            ValueError: no such column\n❯ npm test\nhttps://git.example/x\nplease fix";
        let prose = Prose::new(text);
        assert_eq!(prose.sentences, ["the build fails:", "please fix"]);
        assert_eq!(
            prose.error.as_deref(),
            Some("error[E0425]: cannot find value `id`")
        );
    }

    #[test]
    fn a_text_that_the_client_marks_as_pasted_is_left_out_of_its_sentence() {
        let text = "set the line `\n\n<pasted_content id=\"1\">\nport = 1. Never change it.\n\
            </pasted_content id=\"1\">\n\n` in all settings. Then test.";
        assert_eq!(
            sentences(text),
            ["set the line `…` in all settings.", "Then test."]
        );
        assert_eq!(
            sentences("look at <pasted_content>\nnever push"),
            ["look at…"]
        );
    }

    #[test]
    fn wrapped_lines_are_one_sentence() {
        let text = "Keep the tests of the cart free of the names of real\n\
            customers, and the fixtures of the cart free of all\naddresses.\n- use the `till` for everything that a customer has paid\n\
            already\nnow run the tests";
        assert_eq!(
            sentences(text),
            [
                "Keep the tests of the cart free of the names of real customers, and the fixtures of the cart free of all addresses.",
                "use the `till` for everything that a customer has paid already",
                "now run the tests",
            ]
        );
    }

    #[test]
    fn lines_of_compilers_consoles_and_code_are_pasted() {
        for line in [
            "src/cart.ts:40:13 - error TS2540: Cannot assign to 'total'.",
            "index.ts:5 [INFO] carts: 3",
            "vendor.js:25581 Download the tools",
            "npm error code 2",
            "Restore succeeded with 1 warning in 0.1s",
            "➜  shop git:(main) npm test",
            "old = 'never push'",
            "x.'; new = old + ' always push",
            "[vite] connected. client:618:15",
            "🔍 useCart: no open cart useCart.ts:106:15",
            "Uncaught TypeError: cart is undefined",
            "2025/07/02 11:05:25 [warn] 1#1: the user is ignored",
            "/entrypoint.sh: looking for scripts",
            "** (Shop.ParseError) lib/cart.heex:154:1: missing tag",
        ] {
            assert!(is_pasted(line), "{line}");
        }
        for line in [
            "@app/cart.vue:24 should use a div",
            "cart.vue:24 should use a div",
            "it's 5:30 already",
            "the total = the sum of all items",
            "fix the error at src/cart.ts:3:5",
        ] {
            assert!(!is_pasted(line), "{line}");
        }
    }

    #[test]
    fn what_stands_twice_in_a_prompt_was_printed_by_a_program() {
        let text =
            "Rule A1 is broken. No fix is known.\nRule B2 is broken. No fix is known.\nUse tabs.";
        let prose = Prose::new(text);
        assert_eq!(
            prose.sentences,
            ["Rule A1 is broken.", "Rule B2 is broken.", "Use tabs."]
        );
    }

    #[test]
    fn small_talk() {
        for text in [
            "hi",
            "Continue.",
            "ok thanks!",
            "yes, go ahead",
            "commit and push",
            "继续",
            "",
        ] {
            assert!(is_small_talk(text), "{text}");
        }
        for text in ["fix the parser", "no, use pnpm", "Option A", "不要显示"] {
            assert!(!is_small_talk(text), "{text}");
        }
    }

    #[test]
    fn a_cut_is_at_a_clause_or_between_words() {
        assert_eq!(shorten("short", 9), "short");
        assert_eq!(
            shorten("use pnpm, because npm is slow", 20),
            "use pnpm, because …"
        );
        assert_eq!(
            shorten("never push on friday; ask the lead", 26),
            "never push on friday …"
        );
        assert_eq!(shorten(&"é".repeat(9), 4), "éééé …");
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "(?s).{0,300}", count in 0_usize..80) {
            let prose = Prose::new(&text);
            prop_assert!(prose.sentences.iter().all(|sentence| !sentence.contains('\n')));
            prop_assert!(shorten(&text, count).chars().count() <= count + 2);
        }
    }
}
