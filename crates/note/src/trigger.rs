//! Triggers: the lines under `when` of a warning, and the tool calls that they match.
//!
//! ```text
//! cmd: git push --force        a command of this program with these words, in this order
//! path: migrations/*.sql       a file that is written, or one of its folders
//! tool: mcp__github__*         a tool
//! text: "drop table"           words that are written or run
//! ```
//!
//! A warning that comes up too often is ignored, so a trigger that would match everywhere is
//! rejected when it is written ([`InvalidTrigger`]), and a call that only mentions the text or
//! makes a dry run does not match.
//!
//! Invariants: any call is accepted, and matching takes linear time in the length of the call.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use anamnesis_text::{
    clean::one_line,
    glob::{self, ANY_DEPTH, covers},
    shell::{
        self,
        command::{REPORTERS, SETUP_PROGRAMS, VIEWERS},
    },
    truncate::first_characters,
};

/// The longest trigger, in characters.
const MAX_LENGTH: usize = 200;

/// The most characters of a call's text that are searched.
const MAX_TEXT: usize = 256 * 1024;

/// The longest path, in bytes. No system supports longer ones.
const MAX_PATH: usize = 32 * 1024;

/// The most letters of combined short options: `-f` is found in `-rf`.
const MAX_LETTERS: usize = 4;

/// Options of a dry run.
const DRY_RUN_OPTIONS: [&str; 3] = ["--dry-run", "--dryrun", "--help"];

/// Values that disable such an option.
const DISABLED_VALUES: [&str; 2] = ["false", "none"];

/// Programs with the subcommands that only show or describe something.
const DESCRIBERS: [(&str, &[&str]); 2] = [
    (
        "git",
        &[
            "blame", "commit", "diff", "grep", "log", "shortlog", "show", "tag",
        ],
    ),
    ("gh", &["issue", "pr", "release", "search"]),
];

/// A line under `when`: a pattern of tool calls for which a note comes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The line in canonical form.
    line: String,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// The program and the following words.
    Command(Vec<String>),
    /// The names of the path, outermost first.
    Path(Vec<String>),
    Tool(String),
    /// In lower case, with single blanks.
    Text(String),
}

/// Why a line is not a valid trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrigger {
    /// It does not begin with a kind.
    #[error("a trigger is `cmd: …`, `path: …`, `tool: …` or `text: …`")]
    NoKind,
    /// The pattern after the kind is empty.
    #[error("`{0}:` needs a pattern")]
    Empty(&'static str),
    /// It is over 200 characters.
    #[error("a trigger has at most {MAX_LENGTH} characters")]
    TooLong,
    /// It is only a program without another word.
    #[error(
        "`cmd: {0}` would come up at every run of it; add a further word, as in `cmd: git push --force`"
    )]
    BareProgram(String),
    /// It has shell operators.
    #[error("`cmd:` takes the words of one command; write a trigger for each, without operators")]
    NotSingleCommand,
    /// The pattern matches every path.
    #[error(
        "`path: {0}` would come up at every file; name a folder or an ending, as in `migrations/*.sql`"
    )]
    AnyPath(String),
    /// The pattern matches every tool.
    #[error(
        "`tool: {0}` would come up at every call; name a tool, as in `Write` or `mcp__github__*`"
    )]
    AnyTool(String),
    /// It has too few letters.
    #[error("`text: {0}` would come up everywhere; it needs at least three letters or digits")]
    ShortText(String),
}

/// How specific a trigger is; a greater one matches fewer calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity(u8, usize);

impl FromStr for Trigger {
    type Err = InvalidTrigger;

    fn from_str(line: &str) -> Result<Self, InvalidTrigger> {
        let line = one_line(line);
        if line.chars().count() > MAX_LENGTH {
            return Err(InvalidTrigger::TooLong);
        }
        let (kind, written) = line.split_once(':').ok_or(InvalidTrigger::NoKind)?;
        let kind = [COMMAND, PATH, TOOL, TEXT]
            .into_iter()
            .find(|known| kind.trim() == *known)
            .ok_or(InvalidTrigger::NoKind)?;
        let written = written.trim();
        if written.is_empty() {
            return Err(InvalidTrigger::Empty(kind));
        }
        let pattern = match kind {
            COMMAND => command_pattern(written)?,
            PATH => path_pattern(written)?,
            TOOL => tool_pattern(written)?,
            _ => text_pattern(written)?,
        };
        Ok(Self {
            line: format!("{kind}: {written}"),
            pattern,
        })
    }
}

fn command_pattern(written: &str) -> Result<Pattern, InvalidTrigger> {
    let words = shell::single_command(unquoted(written)).ok_or(InvalidTrigger::NotSingleCommand)?;
    if words.len() < 2 {
        return Err(InvalidTrigger::BareProgram(written.to_owned()));
    }
    Ok(Pattern::Command(words))
}

fn path_pattern(written: &str) -> Result<Pattern, InvalidTrigger> {
    let mut names = names(unquoted(written));
    if !names
        .iter()
        .any(|name| name.contains(char::is_alphanumeric))
    {
        return Err(InvalidTrigger::AnyPath(written.to_owned()));
    }
    if !is_rooted(unquoted(written)) {
        names.insert(0, ANY_DEPTH.to_owned());
    }
    // A folder also matches everything in it, so a trailing `**` is redundant.
    while names.last().is_some_and(|last| last == ANY_DEPTH) {
        names.pop();
    }
    Ok(Pattern::Path(names))
}

fn tool_pattern(written: &str) -> Result<Pattern, InvalidTrigger> {
    if written.contains(char::is_alphanumeric) {
        Ok(Pattern::Tool(unquoted(written).to_owned()))
    } else {
        Err(InvalidTrigger::AnyTool(written.to_owned()))
    }
}

fn text_pattern(written: &str) -> Result<Pattern, InvalidTrigger> {
    let text = folded(unquoted(written));
    let (ascii, others): (Vec<char>, Vec<char>) = text
        .chars()
        .filter(|c| c.is_alphanumeric())
        .partition(char::is_ascii);
    // A CJK character carries as much information as three letters.
    if ascii.len() + 3 * others.len() < 3 {
        return Err(InvalidTrigger::ShortText(written.to_owned()));
    }
    Ok(Pattern::Text(text))
}

impl fmt::Display for Trigger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.line)
    }
}

impl Trigger {
    /// Returns the line in canonical form.
    pub fn as_str(&self) -> &str {
        &self.line
    }

    /// Returns whether a call matches.
    pub fn matches(&self, call: &Call) -> bool {
        match &self.pattern {
            Pattern::Command(words) => call.commands.iter().any(|command| runs(command, words)),
            Pattern::Path(pattern) => !call.path.is_empty() && covers(pattern, &call.path),
            Pattern::Tool(pattern) => glob::matches(pattern, &call.tool),
            Pattern::Text(text) => contains_words(&call.text, text),
        }
    }

    /// Returns its specificity: commands before paths, texts and tools, longer ones before shorter
    /// ones.
    pub fn specificity(&self) -> Specificity {
        let literal = |text: &str| text.chars().filter(|c| !matches!(c, '*' | '?')).count();
        match &self.pattern {
            Pattern::Command(words) => Specificity(3, words.len()),
            Pattern::Path(names) => Specificity(2, names.iter().map(|name| literal(name)).sum()),
            Pattern::Text(text) => Specificity(1, literal(text)),
            Pattern::Tool(tool) => Specificity(0, literal(tool)),
        }
    }

    /// Returns its index key. A call that matches has this key, see [`Call::keys`].
    pub fn key(&self) -> String {
        match &self.pattern {
            Pattern::Command(words) => key(COMMAND, words.first().map_or("", String::as_str)),
            Pattern::Path(names) => key(PATH, path_key(names)),
            Pattern::Tool(tool) => key(TOOL, if is_literal(tool) { tool } else { "" }),
            Pattern::Text(text) => {
                let longest = words_of(text).max_by_key(|word| word.len());
                key(TEXT, longest.unwrap_or_default())
            }
        }
    }
}

/// The kinds of triggers.
const COMMAND: &str = "cmd";
const PATH: &str = "path";
const TOOL: &str = "tool";
const TEXT: &str = "text";

/// The prefix of the keys of text triggers.
pub const TEXT_KEY: &str = "text ";

fn key(kind: &str, word: &str) -> String {
    format!("{kind} {word}")
}

/// Returns the longest literal name of a path pattern, or its longest literal extension.
fn path_key(names: &[String]) -> &str {
    let literal = names.iter().filter(|name| is_literal(name));
    if let Some(name) = literal.max_by_key(|name| name.len()) {
        return name;
    }
    let endings = names.iter().filter_map(|name| ending(name));
    let mut literal = endings.filter(|ending| is_literal(ending));
    literal.next_back().unwrap_or_default()
}

fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?'])
}

fn ending(name: &str) -> Option<&str> {
    name.rfind('.').and_then(|dot| name.get(dot..))
}

/// A pending tool call, reduced to what triggers match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    tool: String,
    /// The commands that it runs.
    commands: Vec<Vec<String>>,
    /// The names of the path that it writes to, outermost first.
    path: Vec<String>,
    /// The text that it writes or runs, in lower case, with single blanks.
    text: String,
}

impl Call {
    /// Reads a call from the tool's name and input.
    pub fn new(tool: &str, input: &Value) -> Self {
        let field = |name: &str| input.get(name).and_then(Value::as_str);
        let mut call = Self {
            tool: tool.to_owned(),
            ..Self::default()
        };
        if let Some(path) = field("file_path").or_else(|| field("notebook_path"))
            && path.len() <= MAX_PATH
        {
            call.path = names(path);
        }
        match tool {
            "Bash" => {
                let script = field("command").unwrap_or_default();
                call.commands = shell::commands(script);
                if !call.commands.iter().all(|command| only_describes(command)) {
                    call.text = folded(script);
                }
            }
            "Write" => call.text = folded(field("content").unwrap_or_default()),
            "Edit" => call.text = folded(field("new_string").unwrap_or_default()),
            "NotebookEdit" => call.text = folded(field("new_source").unwrap_or_default()),
            "MultiEdit" => {
                let edits = input.get("edits").and_then(Value::as_array);
                let edits = edits.into_iter().flatten();
                let texts = edits.filter_map(|edit| edit.get("new_string")?.as_str());
                call.text = folded_all(texts);
            }
            // Any string of an unknown tool may be what it does.
            tool if tool.starts_with("mcp__") => {
                let fields = input.as_object().into_iter().flatten();
                call.text = folded_all(fields.filter_map(|(_, value)| value.as_str()));
            }
            // Other tools read, or take prose.
            _ => {}
        }
        call
    }

    /// Returns what the call does, as text: for each command its arguments, or the written text
    /// with the file and its folder.
    ///
    /// Commands that only show something and dry runs are left out.
    pub fn acts(&self) -> Vec<String> {
        if self.tool != "Bash" {
            let file = self.path.len().saturating_sub(2);
            let names = self.path.iter().skip(file).map(String::as_str);
            let act: Vec<&str> = names.chain([self.text.as_str()]).collect();
            return Vec::from_iter((!self.text.is_empty()).then(|| act.join(" ")));
        }
        let commands = self.commands.iter();
        commands
            .filter(|command| !only_describes(command) && !is_dry_run(command, &[]))
            .filter_map(|command| Some(command.split_first()?.1.join(" ")))
            .collect()
    }

    /// Returns the keys of the triggers that may match it, sorted and unique.
    ///
    /// A text has too many words to look up each, so `texts` returns the known keys of text
    /// triggers ([`TEXT_KEY`]). It is called only if the call has a text.
    pub fn keys<E>(
        &self,
        texts: impl FnOnce() -> Result<Vec<String>, E>,
    ) -> Result<Vec<String>, E> {
        let mut keys = vec![key(TOOL, ""), key(TOOL, &self.tool)];
        let programs = self.commands.iter().filter_map(|command| command.first());
        keys.extend(programs.map(|program| key(COMMAND, program)));
        if !self.path.is_empty() {
            keys.push(key(PATH, ""));
        }
        for name in &self.path {
            keys.push(key(PATH, name));
            keys.extend(ending(name).map(|ending| key(PATH, ending)));
        }
        if !self.text.is_empty() {
            let texts = texts()?;
            if !texts.is_empty() {
                let words: HashSet<&str> = words_of(&self.text).collect();
                let is_there = |word: &str| word.is_empty() || words.contains(word);
                keys.extend(
                    texts
                        .into_iter()
                        .filter(|key| key.strip_prefix(TEXT_KEY).is_some_and(is_there)),
                );
            }
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }
}

/// Returns whether a command runs a trigger's program with its words in order.
fn runs(command: &[String], trigger: &[String]) -> bool {
    if command.first() != trigger.first() || is_dry_run(command, trigger) {
        return false;
    }
    let mut words = command.iter().skip(1);
    trigger.iter().skip(1).all(|wanted| {
        let Some(letters) = letters(wanted) else {
            return words.any(|word| word == wanted);
        };
        let mut missing: Vec<char> = letters.chars().collect();
        words.any(|word| {
            if word == wanted {
                return true;
            }
            if let Some(letters) = self::letters(word) {
                missing.retain(|letter| !letters.contains(*letter));
            }
            missing.is_empty()
        })
    })
}

/// Returns the letters of combined short options: `-rf` is `-r -f` and `-fr`. A longer word after
/// one dash is a single option: `-auto`.
fn letters(word: &str) -> Option<&str> {
    let letters = word.strip_prefix('-')?;
    let are_options = (1..=MAX_LETTERS).contains(&letters.len())
        && letters.chars().all(|c| c.is_ascii_alphabetic());
    are_options.then_some(letters)
}

/// Returns the options in a text: `--force`, and each letter of `-rf`.
pub fn options(text: &str) -> BTreeSet<String> {
    let is_end = |c: char| c.is_whitespace() || "`'\"()[]{},;:.=|".contains(c);
    let mut options = BTreeSet::new();
    for word in text.split(is_end) {
        if let Some(letters) = letters(word) {
            options.extend(letters.chars().map(|letter| format!("-{letter}")));
        } else if word
            .strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            options.insert(word.to_owned());
        }
    }
    options
}

/// Returns whether a command is a dry run that the trigger does not ask for.
fn is_dry_run(command: &[String], trigger: &[String]) -> bool {
    command.iter().enumerate().any(|(index, word)| {
        let value = command
            .get(index + 1)
            .map(String::as_str)
            .unwrap_or_default();
        DRY_RUN_OPTIONS.contains(&word.as_str())
            && !DISABLED_VALUES.contains(&value)
            && !trigger.contains(word)
    })
}

/// Returns whether a command only shows, prints or describes something. A wrapper counts as the
/// command that it runs.
fn only_describes(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return true;
    };
    let program = program.as_str();
    let describes = |(name, verbs): &(&str, &[&str])| {
        *name == program && arguments.iter().any(|word| verbs.contains(&word.as_str()))
    };
    [&VIEWERS[..], &REPORTERS, &SETUP_PROGRAMS]
        .iter()
        .any(|list| list.contains(&program))
        || DESCRIBERS.iter().any(describes)
        || shell::is_wrapper(program)
}

/// Returns whether a text contains another one at word boundaries.
fn contains_words(text: &str, wanted: &str) -> bool {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(wanted)) {
        let start = from + found;
        let end = start + wanted.len();
        let before = text
            .get(..start)
            .and_then(|before| before.chars().next_back());
        let after = text.get(end..).and_then(|after| after.chars().next());
        let parts = |outside: Option<char>, inside: Option<char>| {
            !(outside.is_some_and(is_word_character) && inside.is_some_and(is_word_character))
        };
        if parts(before, wanted.chars().next()) && parts(after, wanted.chars().next_back()) {
            return true;
        }
        from = start
            + text
                .get(start..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8);
    }
    false
}

/// Returns whether a character is part of a word. Other scripts do not separate words by blanks.
fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word_character(c))
        .filter(|word| !word.is_empty())
}

/// Returns a text in lower case, with white space collapsed to single blanks.
fn folded(text: &str) -> String {
    folded_all(std::iter::once(text))
}

/// Does the same as [`folded`] for several separate texts.
fn folded_all<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut folded = String::new();
    for text in texts {
        let room = MAX_TEXT.saturating_sub(folded.len());
        if !folded.is_empty() {
            folded.push('\n');
        }
        let start = folded.len();
        for word in first_characters(text, room).split_whitespace() {
            if folded.len() > start {
                folded.push(' ');
            }
            folded.extend(word.chars().flat_map(char::to_lowercase));
        }
    }
    folded
}

/// Removes the quotes around a text.
fn unquoted(text: &str) -> &str {
    ['"', '\'', '`']
        .into_iter()
        .find_map(|quote| {
            text.strip_prefix(quote)?
                .strip_suffix(quote)
                .filter(|inner| !inner.contains(quote))
        })
        .unwrap_or(text)
}

/// Returns whether a path begins at a root or a drive.
fn is_rooted(path: &str) -> bool {
    path.starts_with(['/', '\\']) || path.get(1..2) == Some(":")
}

/// Returns the names of a path. `\` counts as `/`; `.` and `..` are resolved.
fn names(path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in path.split(['/', '\\']) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name.to_owned()),
        }
    }
    names
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        (String::deserialize(deserializer)?.parse()).map_err(D::Error::custom)
    }
}

crate::schema_as!(Trigger, String);

#[cfg(test)]
mod tests;
