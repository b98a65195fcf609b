//! Programs that only run the command in their arguments, such as `nice` and `sudo`.

use crate::word_list::is_in;

/// Programs that run another one, and the required subcommand, if any.
const RUNNERS: [(&str, &str); 12] = [
    ("bundle", "exec"),
    ("bunx", ""),
    ("hatch", "run"),
    ("npx", ""),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("poetry", "run"),
    ("rye", "run"),
    ("uv", "run"),
    ("yarn", "dlx"),
];

/// Programs that run the command in their arguments, and their options that take the next word as their
/// value.
const WRAPPERS: [(&str, &str); 14] = [
    ("builtin", ""),
    ("command", ""),
    ("doas", "-C|-u"),
    ("env", "-C|-u|--chdir|--unset"),
    ("exec", "-a"),
    ("ionice", "-c|-n|--class|--classdata"),
    ("nice", "-n|--adjustment"),
    ("nohup", ""),
    ("setsid", ""),
    ("stdbuf", "-e|-i|-o|--error|--input|--output"),
    (
        "sudo",
        "-C|-D|-R|-T|-U|-g|-h|-p|-r|-t|-u|--chdir|--chroot|--group|--host|--prompt|--user",
    ),
    ("time", "-f|-o|--format|--output"),
    ("timeout", "-k|-s|--kill-after|--signal"),
    (
        "xargs",
        "-E|-I|-L|-P|-a|-d|-n|-s|--arg-file|--delimiter|--max-args|--max-lines|--max-procs|--replace",
    ),
];

/// Returns the number of words of the runner that a command begins with; 0 if there is none.
pub(super) fn runner_length(program: &str, second: &str) -> usize {
    let is_one = |(name, between): &&(&str, &str)| {
        *name == program && (between.is_empty() || *between == second)
    };
    let runner = RUNNERS.iter().find(is_one);
    runner.map_or(0, |(_, between)| 1 + usize::from(!between.is_empty()))
}

/// Returns whether a program only runs the command in its arguments.
pub fn is_wrapper(program: &str) -> bool {
    WRAPPERS.iter().any(|(name, _)| *name == program)
}

/// Returns the number of words before the command inside one or several wrappers of these names; 0 if
/// there is no wrapper.
pub(super) fn wrapped_at(
    command: &[impl AsRef<str>],
    is_one: impl Fn(&str) -> bool,
) -> Option<usize> {
    let word = |place: usize| command.get(place).map(AsRef::as_ref);
    let mut from = 0;
    loop {
        let first = word(from)?;
        let name = name_of(first);
        let mut known = WRAPPERS.iter().filter(|(known, _)| *known == name);
        let Some((_, with_value)) = known.find(|(known, _)| is_one(known)) else {
            if from > 0 && is_assignment(first) {
                from += 1;
                continue;
            }
            return Some(from);
        };
        from += 1;
        while let Some(option) = word(from).filter(|word| word.starts_with('-')) {
            from += 1;
            // `command -v` only locates a program.
            if name == "command" && option.contains(['v', 'V']) {
                return None;
            }
            if is_in(with_value, option) {
                from += 1;
            }
        }
        // The duration comes before the command.
        from += usize::from(name == "timeout");
    }
}

/// Returns whether a word is an assignment: `RUST_LOG=debug`.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns the last component of a path.
pub fn name_of(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}
