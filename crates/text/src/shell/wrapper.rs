//! Programs that only run the command in their arguments, such as `nice` and `sudo`.

use crate::values::is_in;

/// Programs that run another one, and the required subcommand, if any.
pub(super) const RUNNERS: [(&str, &str); 12] = [
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

/// A program that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word as their value.
    with_value: &'static str,
    /// The number of its own arguments before the command.
    arguments: usize,
}

const fn wrapper(name: &'static str, with_value: &'static str) -> Wrapper {
    Wrapper {
        name,
        with_value,
        arguments: 0,
    }
}

const WRAPPERS: [Wrapper; 14] = [
    wrapper("builtin", ""),
    wrapper("command", ""),
    wrapper("doas", "-C|-u"),
    wrapper("env", "-C|-u|--chdir|--unset"),
    wrapper("exec", "-a"),
    wrapper("ionice", "-c|-n|--class|--classdata"),
    wrapper("nice", "-n|--adjustment"),
    wrapper("nohup", ""),
    wrapper("setsid", ""),
    wrapper("stdbuf", "-e|-i|-o|--error|--input|--output"),
    wrapper(
        "sudo",
        "-C|-D|-R|-T|-U|-g|-h|-p|-r|-t|-u|--chdir|--chroot|--group|--host|--prompt|--user",
    ),
    wrapper("time", "-f|-o|--format|--output"),
    Wrapper {
        name: "timeout",
        with_value: "-k|-s|--kill-after|--signal",
        arguments: 1,
    },
    wrapper(
        "xargs",
        "-E|-I|-L|-P|-a|-d|-n|-s|--arg-file|--delimiter|--max-args|--max-lines|--max-procs|--replace",
    ),
];

/// Returns whether a program only runs the command in its arguments.
pub fn is_wrapper(program: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == program)
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
        let mut known = WRAPPERS.iter().filter(|wrapper| is_one(wrapper.name));
        let Some(wrapper) = known.find(|wrapper| wrapper.name == name) else {
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
            if is_in(wrapper.with_value, option) {
                from += 1;
            }
        }
        from += wrapper.arguments;
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
