//! Takes a shell script apart into the commands that would run.
//!
//! `observe::command` compares commands as they were typed, and gives up where it does not
//! understand; this says what would run, so it knows quotes, here-documents, subshells and `$(…)`.
//! It is no shell: nothing is expanded, no alias and no function is known, and a script that comes
//! from a here-document, a file or a variable is not looked into.
//!
//! Invariants: any text is taken, each character is looked at a fixed number of times, nothing
//! recurses as deep as the text is nested.

pub mod command;

use std::collections::VecDeque;

use crate::shell::command::{RUNNERS, is_assignment, name_of};

/// How many words of a script are kept. A script of more is data.
const MAX_WORDS: usize = 20_000;

/// How deep quotes, subshells and substitutions may lie in each other. People write three.
const MAX_DEPTH: usize = 64;

/// How deep commands may lie in the arguments of others, as in `bash -c 'sh -c "…"'`.
const MAX_RUNS: usize = 4;

/// Words of the shell's own that stand before a command.
const KEYWORDS: [&str; 9] = [
    "!", "{", "do", "elif", "else", "if", "then", "until", "while",
];

/// Programs that run the script behind their option `-c`.
const SHELLS: [&str; 5] = ["bash", "dash", "ksh", "sh", "zsh"];

/// Options of `find` behind which a command stands.
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// A program that runs the command behind it.
struct Wrapper {
    name: &'static str,
    /// Options whose value is a word of its own.
    with_value: &'static [&'static str],
    /// How many arguments of its own stand before the command.
    arguments: usize,
}

const fn wrapper(name: &'static str, with_value: &'static [&'static str]) -> Wrapper {
    Wrapper {
        name,
        with_value,
        arguments: 0,
    }
}

const WRAPPERS: [Wrapper; 14] = [
    wrapper("builtin", &[]),
    wrapper("command", &[]),
    wrapper("doas", &["-C", "-u"]),
    wrapper("env", &["-C", "-u", "--chdir", "--unset"]),
    wrapper("exec", &["-a"]),
    wrapper("ionice", &["-c", "-n", "--class", "--classdata"]),
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("nohup", &[]),
    wrapper("setsid", &[]),
    wrapper(
        "stdbuf",
        &["-e", "-i", "-o", "--error", "--input", "--output"],
    ),
    wrapper(
        "sudo",
        &[
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u", "--chdir",
            "--chroot", "--group", "--host", "--prompt", "--user",
        ],
    ),
    wrapper("time", &["-f", "-o", "--format", "--output"]),
    Wrapper {
        name: "timeout",
        with_value: &["-k", "-s", "--kill-after", "--signal"],
        arguments: 1,
    },
    wrapper(
        "xargs",
        &[
            "-E",
            "-I",
            "-L",
            "-P",
            "-a",
            "-d",
            "-n",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--replace",
        ],
    ),
];

/// Returns the words of every command that a script runs: the program's name without its folder,
/// then what it is given, quotes taken off and `--option=value` as two words.
///
/// A command that another one runs is there by itself, behind the one that runs it.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut pending: VecDeque<_> = split(script).into_iter().map(|words| (words, 1)).collect();
    while let Some((words, depth)) = pending.pop_front() {
        let Some(command) = bare(words) else {
            continue;
        };
        if depth < MAX_RUNS {
            let scripts = script_of(&command).map(|script| split(&script));
            let run = scripts.into_iter().flatten().chain(run_by(&command));
            pending.extend(run.map(|words| (words, depth + 1)));
        }
        found.push(parted(command));
    }
    found
}

/// Returns the words of a command that is the whole of a text; none where it is no single command.
///
/// A program that runs another one stays in front of it: `sudo pip install` is not `pip install`.
pub fn single_command(text: &str) -> Option<Vec<String>> {
    let mut found = split(text);
    let words = found.pop()?;
    if !found.is_empty() {
        return None;
    }
    bare(words).map(parted)
}

/// Tells whether a program only runs the command behind it.
pub fn is_wrapper(program: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == program)
}

/// Takes away what stands before a command and is not of it.
fn bare(words: Vec<String>) -> Option<Vec<String>> {
    let is_before = |word: &String| KEYWORDS.contains(&word.as_str()) || is_assignment(word);
    let mut command: Vec<String> = words.into_iter().skip_while(is_before).collect();
    let program = command.first_mut()?;
    *program = name_of(program).to_owned();
    Some(command)
}

/// Returns the command behind wrappers, of which there may be several.
fn wrapped(command: &[String]) -> Option<Vec<String>> {
    let mut from = 0;
    loop {
        let first = command.get(from)?;
        let name = name_of(first);
        let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) else {
            if from > 0 && is_assignment(first) {
                from += 1;
                continue;
            }
            break;
        };
        from += 1;
        while let Some(option) = command.get(from).filter(|word| word.starts_with('-')) {
            from += 1;
            // `command -v` only says where a program lies.
            if name == "command" && option.contains(['v', 'V']) {
                return None;
            }
            if wrapper.with_value.contains(&option.as_str()) {
                from += 1;
            }
        }
        from += wrapper.arguments;
    }
    command
        .get(from..)
        .filter(|_| from > 0)
        .map(<[String]>::to_vec)
}

/// Makes two words of `--option=value`, so that it is the same as `--option value`.
fn parted(command: Vec<String>) -> Vec<String> {
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

/// Returns the commands that a command runs, of those that are words of it.
fn run_by(command: &[String]) -> Vec<Vec<String>> {
    let Some((program, arguments)) = command.split_first() else {
        return Vec::new();
    };
    if is_wrapper(program) {
        return wrapped(command).into_iter().collect();
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

/// What is open around the character that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// The script itself, or a list of commands up to a bracket or a backtick.
    List(Option<char>),
    /// Double quotes.
    Quotes,
    /// `${…}`.
    Braces,
}

/// What the next word is, if it is not an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Argument,
    /// A file that is read or written.
    Target,
    /// The word that ends a here-document, whose lines may begin with tabs.
    Delimiter {
        with_tabs: bool,
    },
}

/// A list of commands and what is known of the one that is read.
#[derive(Debug)]
struct List {
    words: Vec<String>,
    word: Option<String>,
    next: Next,
    /// Whether it is in `((…))`, where `<<` shifts.
    is_arithmetic: bool,
}

impl List {
    fn new(is_arithmetic: bool) -> Self {
        Self {
            words: Vec::new(),
            word: None,
            next: Next::Argument,
            is_arithmetic,
        }
    }
}

/// The state of the walk over a script.
struct Walk<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    open: Vec<Open>,
    /// The lists among `open`; the innermost is `list`.
    outer: Vec<List>,
    list: List,
    /// The ends of the here-documents that begin on the next line.
    documents: VecDeque<(String, bool)>,
    found: Vec<Vec<String>>,
    words: usize,
}

/// Splits a script into the words of its commands.
fn split(script: &str) -> Vec<Vec<String>> {
    let mut walk = Walk {
        rest: script.chars().peekable(),
        open: vec![Open::List(None)],
        outer: Vec::new(),
        list: List::new(false),
        documents: VecDeque::new(),
        found: Vec::new(),
        words: 0,
    };
    while walk.words < MAX_WORDS && walk.open.len() < MAX_DEPTH {
        let Some(character) = walk.rest.next() else {
            break;
        };
        match walk.open.last() {
            Some(Open::Quotes) => walk.take_quoted(character),
            Some(Open::Braces) => walk.take_braced(character),
            Some(Open::List(_)) | None => walk.take(character),
        }
    }
    // What was never closed ends here.
    walk.end_command();
    while let Some(list) = walk.outer.pop() {
        walk.list = list;
        walk.end_command();
    }
    walk.found
}

impl Walk<'_> {
    fn take(&mut self, character: char) {
        match character {
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(escaped) => self.push(escaped),
            },
            '\'' => self.take_until_quote(false),
            '"' => {
                self.word();
                self.open.push(Open::Quotes);
            }
            '`' if self.open.last() == Some(&Open::List(Some('`'))) => self.close_list(),
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
                // Elsewhere it ends a pattern of `case`.
                if self.open.last() == Some(&Open::List(Some(')'))) {
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
            '"' => self.open.push(Open::Quotes),
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
                self.open.push(Open::Braces);
            }
            Some('\'') if may_quote => {
                self.rest.next();
                self.take_until_quote(true);
            }
            Some('"') if may_quote => {}
            _ => self.push('$'),
        }
    }

    /// Takes what stands in single quotes, in which only `$'…'` knows escapes.
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
        self.list.next = Next::Target;
        if sign == '<' && self.rest.next_if_eq(&'<').is_some() {
            if self.rest.next_if_eq(&'<').is_none() && !self.list.is_arithmetic {
                let with_tabs = self.rest.next_if_eq(&'-').is_some();
                self.list.next = Next::Delimiter { with_tabs };
            }
            return;
        }
        while self
            .rest
            .next_if(|next| ['&', '|', '>'].contains(next))
            .is_some()
        {}
    }

    /// Begins a list in round brackets, of which the opening one was read.
    fn open_brackets(&mut self) {
        let is_arithmetic = self.list.is_arithmetic || self.rest.peek() == Some(&'(');
        self.open_list(')');
        self.list.is_arithmetic = is_arithmetic;
    }

    fn open_list(&mut self, close: char) {
        // In quotes the word goes on behind the list, in any case it is one.
        if close == '`' {
            self.word();
        }
        let is_arithmetic = self.list.is_arithmetic;
        let outer = std::mem::replace(&mut self.list, List::new(is_arithmetic));
        self.outer.push(outer);
        self.open.push(Open::List(Some(close)));
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
        match std::mem::replace(&mut self.list.next, Next::Argument) {
            Next::Argument => self.list.words.push(word),
            Next::Target => {}
            Next::Delimiter { with_tabs } => self.documents.push_back((word, with_tabs)),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.list.next = Next::Argument;
        let words = std::mem::take(&mut self.list.words);
        if !words.is_empty() {
            self.found.push(words);
        }
    }

    /// Passes over the here-documents that begin here.
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
