//! Parses a shell script into the commands that it would run.
//!
//! The parser knows quotes, here-documents, subshells and `$(…)`. It expands nothing, knows no aliases
//! or functions, and does not read scripts from here-documents, files or variables. [`command`]
//! compares the commands that it finds, as they were typed.
//!
//! Invariants: any text is accepted, time is linear, and nothing recurses with the nesting of the
//! text.

pub mod command;
mod wrapper;

use std::collections::VecDeque;

use self::wrapper::{is_assignment, runner_length, wrapped_at};
pub use self::wrapper::{is_wrapper, name_of};

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
    let mut pending: VecDeque<_> = unquoted(script).map(|words| (words, 1)).collect();
    while let Some((words, depth)) = pending.pop_front() {
        let Some(command) = without_prefix(words) else {
            continue;
        };
        if depth < MAX_RUNS {
            let script = script_of(&command).unwrap_or_default();
            let run = unquoted(&script).chain(nested_commands(&command));
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
    let mut found = unquoted(text);
    let words = found.next().filter(|_| found.next().is_none())?;
    without_prefix(words).map(split_option_values)
}

/// Returns the value that a script gives to a variable first.
pub fn assigned(script: &str, variable: &str) -> Option<String> {
    let words = unquoted(script).flatten();
    let mut values = words.filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        (name == variable).then(|| value.to_owned())
    });
    values.next()
}

/// Returns whether a path is certainly not in a project's folder, nor above it, nor in one that is named
/// like it, as another worktree of the project is.
pub fn is_outside(path: &str, project: &str) -> bool {
    let path = path.trim_matches(['"', '\'']);
    let folder = project.trim_end_matches(['/', '\\']);
    let name = format!("/{}", name_of(folder)).to_lowercase();
    !folder.is_empty()
        && path.starts_with(['/', '~'])
        && !path.starts_with(folder)
        && !folder.starts_with(path.trim_end_matches('/'))
        && !path.to_lowercase().contains(&name)
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
    let length = runner_length(program, second);
    if length == 0 {
        return Vec::new();
    }
    let rest = command.iter().skip(length);
    let run = rest.skip_while(|word| word.starts_with('-')).cloned();
    vec![run.collect()]
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
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum NextWord {
    #[default]
    Argument,
    /// The file of a redirection.
    Target,
    /// The delimiter of a here-document, whose lines may begin with tabs.
    Delimiter { with_tabs: bool },
}

/// The operator before a command.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Operator {
    And,
    Or,
    Pipe,
    #[default]
    Then,
    Background,
}

/// A word of a command.
#[derive(Debug)]
struct Word<'a> {
    unquoted: String,
    typed: &'a str,
    /// Its offset in the script.
    start: usize,
}

/// A command of a script.
#[derive(Debug)]
struct Step<'a> {
    before: Operator,
    words: Vec<Word<'a>>,
    /// Whether it is in a substitution.
    is_substituted: bool,
}

/// A list of commands, and the command that is being read.
#[derive(Debug, Default)]
struct CommandList<'a> {
    before: Operator,
    words: Vec<Word<'a>>,
    /// The word that is being read, and where it begins.
    word: Option<(String, usize)>,
    next: NextWord,
    /// Whether it is inside `((…))`, where `<<` is a shift.
    is_arithmetic: bool,
    is_substituted: bool,
}

/// The state of the parser.
struct Parser<'a> {
    script: &'a str,
    rest: std::str::Chars<'a>,
    /// The position of the current character.
    at: usize,
    open: Vec<OpenConstruct>,
    /// The lists of the enclosing constructs, outermost first.
    outer: Vec<CommandList<'a>>,
    list: CommandList<'a>,
    /// Whether a here-document is read as a word, with all that follows it.
    as_typed: bool,
    /// The delimiters of the here-documents that begin on the next line.
    documents: VecDeque<(String, bool)>,
    found: Vec<Step<'a>>,
    words: usize,
}

/// Returns the unquoted words of the commands of a script.
fn unquoted(script: &str) -> impl Iterator<Item = Vec<String>> {
    let words = |step: Step<'_>| step.words.into_iter().map(|word| word.unquoted).collect();
    split(script, false).into_iter().map(words)
}

/// Splits a script into its commands. As typed, an empty one follows a `&` at the end.
fn split(script: &str, as_typed: bool) -> Vec<Step<'_>> {
    let mut parser = Parser {
        script,
        rest: script.chars(),
        at: 0,
        open: vec![OpenConstruct::CommandList(None)],
        outer: Vec::new(),
        list: CommandList::default(),
        as_typed,
        documents: VecDeque::new(),
        found: Vec::new(),
        words: 0,
    };
    while parser.words < MAX_WORDS && parser.open.len() < MAX_DEPTH {
        parser.at = script.len() - parser.rest.as_str().len();
        let Some(character) = parser.rest.next() else {
            break;
        };
        match parser.open.last() {
            Some(OpenConstruct::Quotes) => parser.take_nested(character, true),
            Some(OpenConstruct::Braces) => parser.take_nested(character, false),
            Some(OpenConstruct::CommandList(_)) | None => parser.take(character),
        }
    }
    // Unclosed constructs end here.
    parser.end_command(Operator::Then);
    while let Some(list) = parser.outer.pop() {
        parser.list = list;
        parser.end_command(Operator::Then);
    }
    parser.found
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// Takes the next character if it is one of these.
    fn next_if(&mut self, is_wanted: impl Fn(char) -> bool) -> bool {
        let is_next = self.peek().is_some_and(is_wanted);
        if is_next {
            self.rest.next();
        }
        is_next
    }

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
            '`' => self.open_list('`', true),
            '$' => self.take_dollar(true),
            '#' if self.list.word.is_none() => while self.next_if(|next| next != '\n') {},
            '\n' => {
                self.end_command(Operator::Then);
                self.skip_documents();
            }
            '&' if self.peek() == Some('>') => self.end_word(),
            '&' if self.next_if(|next| next == '&') => self.end_command(Operator::And),
            '|' if self.next_if(|next| next == '|') => self.end_command(Operator::Or),
            '|' => {
                self.next_if(|next| next == '&');
                self.end_command(Operator::Pipe);
            }
            ';' => self.end_command(Operator::Then),
            '&' => self.end_command(Operator::Background),
            '(' => {
                self.end_command(self.list.before);
                self.open_list(')', false);
            }
            ')' => {
                self.end_command(Operator::Then);
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

    /// Takes a character in double quotes or braces.
    fn take_nested(&mut self, character: char, is_quoted: bool) {
        match character {
            '"' if is_quoted => {
                self.open.pop();
            }
            '"' => self.open.push(OpenConstruct::Quotes),
            '}' if !is_quoted => {
                self.open.pop();
                self.push('}');
            }
            '\\' => match self.rest.next() {
                Some('\n') if is_quoted => {}
                Some(escaped) => {
                    if is_quoted && !"\"\\$`".contains(escaped) {
                        self.push('\\');
                    }
                    self.push(escaped);
                }
                None => {}
            },
            '`' => self.open_list('`', true),
            '$' => self.take_dollar(false),
            other => self.push(other),
        }
    }

    fn take_dollar(&mut self, may_quote: bool) {
        match self.peek() {
            Some('(') => {
                self.rest.next();
                self.push('$');
                self.open_list(')', true);
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
        let is_descriptor = |word: &(String, usize)| {
            !word.0.is_empty() && word.0.chars().all(|c| c.is_ascii_digit())
        };
        if self.list.word.as_ref().is_some_and(is_descriptor) {
            self.list.word = None;
        }
        self.end_word();
        if self.next_if(|next| next == '(') {
            self.push(sign);
            self.open_list(')', true);
            return;
        }
        self.list.next = NextWord::Target;
        if sign == '<' && self.next_if(|next| next == '<') {
            if self.as_typed {
                self.list.next = NextWord::Argument;
                self.word();
                self.rest = "".chars();
            } else if !self.next_if(|next| next == '<') && !self.list.is_arithmetic {
                let with_tabs = self.next_if(|next| next == '-');
                self.list.next = NextWord::Delimiter { with_tabs };
            }
            return;
        }
        while self.next_if(|next| ['&', '|', '>'].contains(&next)) {}
    }

    /// Begins a list in parentheses or backticks, after the opening one was read.
    fn open_list(&mut self, close: char, is_substituted: bool) {
        // The substitution is part of a word, which continues after it.
        if close == '`' {
            self.word();
        }
        let list = CommandList {
            before: self.list.before,
            is_arithmetic: self.list.is_arithmetic || close == ')' && self.peek() == Some('('),
            is_substituted: self.list.is_substituted || is_substituted,
            ..CommandList::default()
        };
        self.outer.push(std::mem::replace(&mut self.list, list));
        self.open.push(OpenConstruct::CommandList(Some(close)));
    }

    fn close_list(&mut self) {
        self.end_command(Operator::Then);
        if let Some(outer) = self.outer.pop() {
            self.open.pop();
            self.list = outer;
        }
    }

    fn word(&mut self) -> &mut String {
        let start = self.at;
        &mut self
            .list
            .word
            .get_or_insert_with(|| (String::new(), start))
            .0
    }

    fn push(&mut self, character: char) {
        self.word().push(character);
    }

    fn end_word(&mut self) {
        let Some((unquoted, start)) = self.list.word.take() else {
            return;
        };
        self.words += 1;
        match std::mem::replace(&mut self.list.next, NextWord::Argument) {
            NextWord::Argument => self.list.words.push(Word {
                unquoted,
                typed: self.script.get(start..self.at).unwrap_or_default(),
                start,
            }),
            NextWord::Target => {}
            NextWord::Delimiter { with_tabs } => self.documents.push_back((unquoted, with_tabs)),
        }
    }

    /// Ends a command before an operator.
    fn end_command(&mut self, operator: Operator) {
        self.end_word();
        self.list.next = NextWord::Argument;
        let words = std::mem::take(&mut self.list.words);
        let before = std::mem::replace(&mut self.list.before, operator);
        if !words.is_empty() || self.as_typed && before == Operator::Background {
            let is_substituted = self.list.is_substituted;
            self.found.push(Step {
                before,
                words,
                is_substituted,
            });
        }
    }

    /// Skips the here-documents that begin here.
    fn skip_documents(&mut self) {
        while let Some((delimiter, with_tabs)) = self.documents.pop_front() {
            while !self.rest.as_str().is_empty() {
                let (line, rest) = self
                    .rest
                    .as_str()
                    .split_once('\n')
                    .unwrap_or((self.rest.as_str(), ""));
                self.rest = rest.chars();
                let line = if with_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
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
