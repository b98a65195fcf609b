//! Parses a shell script into the commands that it would run.
//!
//! [`command`] compares commands as typed and needs only their rough structure. This parser knows
//! quotes, here-documents, subshells and `$(…)`. It expands nothing, knows no aliases or functions,
//! and does not read scripts from here-documents, files or variables.
//!
//! Invariants: any text is accepted, time is linear, and nothing recurses with the nesting of the
//! text.

pub mod command;
mod wrapper;

use std::collections::VecDeque;

pub use self::wrapper::{is_wrapper, name_of};
use self::{
    command::RUNNERS,
    wrapper::{is_assignment, wrapped_at},
};

/// The most words of a script that are kept. A longer script is data.
const MAX_WORDS: usize = 20_000;

/// The deepest nesting of quotes, subshells and substitutions. People write three levels.
const MAX_DEPTH: usize = 64;

/// The deepest nesting of commands in arguments, as in `bash -c 'sh -c "…"'`.
const MAX_RUNS: usize = 4;

/// Shell keywords that may precede a command.
const KEYWORDS: [&str; 9] = [
    "!", "{", "do", "elif", "else", "if", "then", "until", "while",
];

/// Programs that run the script given with `-c`.
const SHELLS: [&str; 5] = ["bash", "dash", "ksh", "sh", "zsh"];

/// Options of `find` that take a command.
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Returns the words of every command that a script runs: the program's name without its folder,
/// then its arguments, unquoted, with `--option=value` as two words.
///
/// A command that another one runs is listed separately, after the one that runs it.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut pending: VecDeque<_> = split(script).into_iter().map(|words| (words, 1)).collect();
    while let Some((words, depth)) = pending.pop_front() {
        let Some(command) = without_prefix(words) else {
            continue;
        };
        if depth < MAX_RUNS {
            let scripts = script_of(&command).map(|script| split(&script));
            let run = scripts
                .into_iter()
                .flatten()
                .chain(nested_commands(&command));
            pending.extend(run.map(|words| (words, depth + 1)));
        }
        found.push(split_option_values(command));
    }
    found
}

/// Returns the words of the only command in a text; `None` if there is not exactly one.
///
/// A wrapper is kept in front: `sudo pip install` differs from `pip install`.
pub fn single_command(text: &str) -> Option<Vec<String>> {
    let mut found = split(text);
    let words = found.pop()?;
    if !found.is_empty() {
        return None;
    }
    without_prefix(words).map(split_option_values)
}

/// Returns the value that a script gives to a variable first.
pub fn assigned(script: &str, variable: &str) -> Option<String> {
    let words = split(script).into_iter().flatten();
    let mut values = words.filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        (name == variable).then(|| value.to_owned())
    });
    values.next()
}

/// Removes keywords and assignments before a command, and the folder of its program.
fn without_prefix(words: Vec<String>) -> Option<Vec<String>> {
    let is_before = |word: &String| KEYWORDS.contains(&word.as_str()) || is_assignment(word);
    let mut command: Vec<String> = words.into_iter().skip_while(is_before).collect();
    let program = command.first_mut()?;
    *program = name_of(program).to_owned();
    Some(command)
}

/// Splits `--option=value` into two words, so that it equals `--option value`.
fn split_option_values(command: Vec<String>) -> Vec<String> {
    let mut words = Vec::with_capacity(command.len());
    for word in command {
        match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                words.extend([option.to_owned(), value.to_owned()]);
            }
            _ => words.push(word),
        }
    }
    words
}

/// Returns the commands that are among the words of a command.
fn nested_commands(command: &[String]) -> Vec<Vec<String>> {
    let Some((program, arguments)) = command.split_first() else {
        return Vec::new();
    };
    if is_wrapper(program) {
        let inner = wrapped_at(command, |_| true).map(|from| command[from..].to_vec());
        return inner.into_iter().collect();
    }
    if program == "find" {
        let runs = |word: &String| FIND_RUNS.contains(&word.as_str());
        return arguments
            .split(runs)
            .skip(1)
            .map(<[String]>::to_vec)
            .collect();
    }
    let second = arguments.first().map(String::as_str).unwrap_or_default();
    let runner = RUNNERS
        .iter()
        .find(|(name, between)| name == program && (between.is_empty() || *between == second));
    let Some((_, between)) = runner else {
        return Vec::new();
    };
    let rest = arguments.iter().skip(usize::from(!between.is_empty()));
    vec![
        rest.skip_while(|word| word.starts_with('-'))
            .cloned()
            .collect(),
    ]
}

/// Returns the script among the arguments of a shell.
fn script_of(command: &[String]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    if program == "eval" {
        return Some(arguments.join(" "));
    }
    if !SHELLS.contains(&program.as_str()) {
        return None;
    }
    let mut arguments = arguments.iter();
    let is_script =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    arguments.find(|word| is_script(word))?;
    arguments.find(|word| !word.starts_with('-')).cloned()
}

/// An open construct around the current character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenConstruct {
    /// The script itself, or a list of commands up to this closing character.
    CommandList(Option<char>),
    /// Double quotes.
    Quotes,
    /// `${…}`.
    Braces,
}

/// The role of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWord {
    Argument,
    /// The file of a redirection.
    Target,
    /// The delimiter of a here-document, whose lines may begin with tabs.
    Delimiter {
        with_tabs: bool,
    },
}

/// A list of commands, and the command that is being read.
#[derive(Debug)]
struct CommandList {
    words: Vec<String>,
    word: Option<String>,
    next: NextWord,
    /// Whether it is inside `((…))`, where `<<` is a shift.
    is_arithmetic: bool,
}

impl CommandList {
    fn new(is_arithmetic: bool) -> Self {
        Self {
            words: Vec::new(),
            word: None,
            next: NextWord::Argument,
            is_arithmetic,
        }
    }
}

/// The state of the parser.
struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    open: Vec<OpenConstruct>,
    /// The lists of the enclosing constructs, outermost first.
    outer: Vec<CommandList>,
    list: CommandList,
    /// The delimiters of the here-documents that begin on the next line.
    documents: VecDeque<(String, bool)>,
    found: Vec<Vec<String>>,
    words: usize,
}

/// Splits a script into the words of its commands.
fn split(script: &str) -> Vec<Vec<String>> {
    let mut parser = Parser {
        rest: script.chars().peekable(),
        open: vec![OpenConstruct::CommandList(None)],
        outer: Vec::new(),
        list: CommandList::new(false),
        documents: VecDeque::new(),
        found: Vec::new(),
        words: 0,
    };
    while parser.words < MAX_WORDS && parser.open.len() < MAX_DEPTH {
        let Some(character) = parser.rest.next() else {
            break;
        };
        match parser.open.last() {
            Some(OpenConstruct::Quotes) => parser.take_quoted(character),
            Some(OpenConstruct::Braces) => parser.take_braced(character),
            Some(OpenConstruct::CommandList(_)) | None => parser.take(character),
        }
    }
    // Unclosed constructs end here.
    parser.end_command();
    while let Some(list) = parser.outer.pop() {
        parser.list = list;
        parser.end_command();
    }
    parser.found
}

impl Parser<'_> {
    fn take(&mut self, character: char) {
        match character {
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(escaped) => self.push(escaped),
            },
            '\'' => self.take_until_quote(false),
            '"' => {
                self.word();
                self.open.push(OpenConstruct::Quotes);
            }
            '`' if self.open.last() == Some(&OpenConstruct::CommandList(Some('`'))) => {
                self.close_list()
            }
            '`' => self.open_list('`'),
            '$' => self.take_dollar(true),
            '#' if self.list.word.is_none() => {
                while self.rest.next_if(|next| *next != '\n').is_some() {}
            }
            '\n' => {
                self.end_command();
                self.skip_documents();
            }
            '&' if self.rest.peek() == Some(&'>') => self.end_word(),
            ';' | '|' | '&' => self.end_command(),
            '(' => {
                self.end_command();
                self.open_brackets();
            }
            ')' => {
                self.end_command();
                // Otherwise it ends a pattern of `case`.
                if self.open.last() == Some(&OpenConstruct::CommandList(Some(')'))) {
                    self.close_list();
                }
            }
            '<' | '>' => self.take_redirection(character),
            space if space.is_whitespace() => self.end_word(),
            other => self.push(other),
        }
    }

    fn take_quoted(&mut self, character: char) {
        match character {
            '"' => {
                self.open.pop();
            }
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                Some(other) => {
                    self.push('\\');
                    self.push(other);
                }
            },
            '`' => self.open_list('`'),
            '$' => self.take_dollar(false),
            other => self.push(other),
        }
    }

    fn take_braced(&mut self, character: char) {
        match character {
            '}' => {
                self.open.pop();
                self.push('}');
            }
            '"' => self.open.push(OpenConstruct::Quotes),
            '\\' => {
                if let Some(escaped) = self.rest.next() {
                    self.push(escaped);
                }
            }
            '`' => self.open_list('`'),
            '$' => self.take_dollar(false),
            other => self.push(other),
        }
    }

    fn take_dollar(&mut self, may_quote: bool) {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                self.push('$');
                self.open_brackets();
            }
            Some('{') => {
                self.rest.next();
                self.push('$');
                self.push('{');
                self.open.push(OpenConstruct::Braces);
            }
            Some('\'') if may_quote => {
                self.rest.next();
                self.take_until_quote(true);
            }
            Some('"') if may_quote => {}
            _ => self.push('$'),
        }
    }

    /// Reads a text in single quotes. Only `$'…'` has escapes.
    fn take_until_quote(&mut self, with_escapes: bool) {
        self.word();
        while let Some(character) = self.rest.next() {
            match character {
                '\'' => return,
                '\\' if with_escapes => {
                    if let Some(escaped) = self.rest.next() {
                        self.push(escaped);
                    }
                }
                other => self.push(other),
            }
        }
    }

    fn take_redirection(&mut self, sign: char) {
        let is_descriptor =
            |word: &String| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
        if self.list.word.as_ref().is_some_and(is_descriptor) {
            self.list.word = None;
        }
        self.end_word();
        if self.rest.peek() == Some(&'(') {
            self.rest.next();
            self.push(sign);
            self.open_brackets();
            return;
        }
        self.list.next = NextWord::Target;
        if sign == '<' && self.rest.next_if_eq(&'<').is_some() {
            if self.rest.next_if_eq(&'<').is_none() && !self.list.is_arithmetic {
                let with_tabs = self.rest.next_if_eq(&'-').is_some();
                self.list.next = NextWord::Delimiter { with_tabs };
            }
            return;
        }
        while self
            .rest
            .next_if(|next| ['&', '|', '>'].contains(next))
            .is_some()
        {}
    }

    /// Begins a list in parentheses, after the opening one was read.
    fn open_brackets(&mut self) {
        let is_arithmetic = self.list.is_arithmetic || self.rest.peek() == Some(&'(');
        self.open_list(')');
        self.list.is_arithmetic = is_arithmetic;
    }

    fn open_list(&mut self, close: char) {
        // The substitution is part of a word, which continues after it.
        if close == '`' {
            self.word();
        }
        let is_arithmetic = self.list.is_arithmetic;
        let outer = std::mem::replace(&mut self.list, CommandList::new(is_arithmetic));
        self.outer.push(outer);
        self.open.push(OpenConstruct::CommandList(Some(close)));
    }

    fn close_list(&mut self) {
        self.end_command();
        if let Some(outer) = self.outer.pop() {
            self.open.pop();
            self.list = outer;
        }
    }

    fn word(&mut self) -> &mut String {
        self.list.word.get_or_insert_default()
    }

    fn push(&mut self, character: char) {
        self.word().push(character);
    }

    fn end_word(&mut self) {
        let Some(word) = self.list.word.take() else {
            return;
        };
        self.words += 1;
        match std::mem::replace(&mut self.list.next, NextWord::Argument) {
            NextWord::Argument => self.list.words.push(word),
            NextWord::Target => {}
            NextWord::Delimiter { with_tabs } => self.documents.push_back((word, with_tabs)),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.list.next = NextWord::Argument;
        let words = std::mem::take(&mut self.list.words);
        if !words.is_empty() {
            self.found.push(words);
        }
    }

    /// Skips the here-documents that begin here.
    fn skip_documents(&mut self) {
        while let Some((delimiter, with_tabs)) = self.documents.pop_front() {
            while self.rest.peek().is_some() {
                let mut line = String::new();
                while let Some(character) = self.rest.next_if(|next| *next != '\n') {
                    line.push(character);
                }
                self.rest.next();
                let line = if with_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line.trim_end_matches('\r') == delimiter {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
