//! Folders that are excluded from everything, by patterns in the settings.
//!
//! - `*` and `?` match characters within a name, `**` between slashes any number of folders, `~` at
//!   the beginning the user's home. Nothing else is special.
//! - A matching folder excludes everything below it. `/**` at the end excludes only what is below.
//! - A pattern that does not begin with `/`, `~` or a drive matches at any depth.
//! - `\` counts as `/` in patterns and folders, and on Windows `/c/` as `C:/` in patterns. Case
//!   matters where the file system distinguishes it.
//! - Folders and patterns are matched both as written and with links resolved; in a pattern, links up
//!   to its first wildcard.
//!
//! In doubt a folder is excluded. The time to match a pattern is bounded by its length times the
//! folder's.

use std::path::{Path, PathBuf};

use anamnesis_text::glob::{ANY_DEPTH, covers};

use crate::fs::home::resolve;

/// Whether file names ignore case.
const IGNORES_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// The maximum path length of any system, in bytes. A longer path is not a folder.
const MAX_FOLDER_LENGTH: usize = 32 * 1024;

/// The patterns of excluded folders.
#[derive(Debug, Clone, Default)]
pub struct Exclusions {
    /// The components of each pattern, as written and with links resolved.
    patterns: Vec<Vec<String>>,
    /// The only folders that are not excluded, if there is such a list.
    only: Option<Box<Exclusions>>,
}

impl Exclusions {
    /// Excludes everything but the folders that match these patterns, unless there are none.
    #[must_use]
    pub fn except_only(mut self, patterns: &[String], home: Option<&Path>) -> Self {
        self.only = (!patterns.is_empty()).then(|| Box::new(Self::new(patterns, home)));
        self
    }

    /// Compiles patterns and resolves their links. Patterns that name nothing are left out.
    ///
    /// Without a home, the part after `~/` matches at any depth.
    pub fn new(patterns: &[String], home: Option<&Path>) -> Self {
        let mut exclusions = Self::default();
        for pattern in patterns {
            exclusions.add(&slashes(pattern), home);
            // White space at the ends is more likely a typo than a part of a name.
            if pattern.trim() != pattern {
                exclusions.add(&slashes(pattern.trim()), home);
            }
        }
        exclusions
    }

    /// Adds a pattern with `/` as the separator.
    fn add(&mut self, pattern: &str, home: Option<&Path>) {
        if names_nothing(pattern) {
            return;
        }
        if cfg!(windows)
            && let Some(named) = with_drive(pattern)
        {
            self.add(&named, home);
        }
        let below_home = below_home(pattern);
        let (mut names, rest) = match (below_home, home) {
            (Some(rest), Some(home)) => (names_of(&slashes(&home.to_string_lossy())), rest),
            (None, _) if is_rooted(pattern) => (Vec::new(), pattern),
            _ => (vec![ANY_DEPTH.to_owned()], below_home.unwrap_or(pattern)),
        };
        push_names(&mut names, rest);
        names.dedup_by(|next, last| next == ANY_DEPTH && last == ANY_DEPTH);
        if let [_, .., last] = &mut names[..]
            && last == ANY_DEPTH
        {
            // A match excludes everything below it, so one more component stands for every depth.
            "*".clone_into(last);
        }
        let literal = names
            .iter()
            .take_while(|name| !name.contains(['*', '?']))
            .count();
        let (head, tail) = names.split_at(literal);
        if !head.is_empty() {
            let mut resolved = resolved_names(&path_of(head));
            resolved.extend_from_slice(tail);
            if resolved != names {
                self.patterns.push(resolved);
            }
        }
        self.patterns.push(names);
    }

    /// Returns whether nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.only.is_none()
    }

    /// Returns whether an absolute folder is excluded, as written or with its links resolved.
    pub fn excludes(&self, folder: &Path) -> bool {
        if self.is_empty() {
            return false;
        }
        if folder.as_os_str().len() > MAX_FOLDER_LENGTH {
            return true;
        }
        let written = names_of(&slashes(&folder.to_string_lossy()));
        let resolved = resolved_names(folder);
        let is_unlisted = |only: &Self| !only.excludes(folder);
        self.only.as_deref().is_some_and(is_unlisted)
            || self
                .patterns
                .iter()
                .any(|pattern| covers(pattern, &written) || covers(pattern, &resolved))
    }
}

/// Returns whether a pattern is empty or means the current folder.
pub(crate) fn names_nothing(pattern: &str) -> bool {
    let pattern = slashes(pattern.trim());
    !is_rooted(&pattern) && below_home(&pattern).is_none() && names_of(&pattern).is_empty()
}

/// Returns the rest of a pattern after `~`.
fn below_home(pattern: &str) -> Option<&str> {
    let rest = pattern.strip_prefix('~')?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Returns a path as text with `/` between its names, without the prefix of Windows' long paths.
fn slashes(path: &str) -> String {
    let path = path.replace('\\', "/");
    match path.strip_prefix("//?/") {
        Some(rest) => match rest.strip_prefix("UNC/") {
            Some(rest) => format!("//{rest}"),
            None => rest.to_owned(),
        },
        None => path,
    }
}

/// Returns a path in the form of git's shell for Windows, such as `/c/keys`, with its drive.
fn with_drive(path: &str) -> Option<String> {
    let (drive, rest) = path.strip_prefix('/')?.split_once('/')?;
    let is_drive = drive.len() == 1 && drive.as_bytes()[0].is_ascii_alphabetic();
    is_drive.then(|| format!("{drive}:/{rest}"))
}

/// Returns whether a path begins at a root or with a drive.
fn is_rooted(path: &str) -> bool {
    let mut start = path.chars();
    match start.next() {
        Some('/') => true,
        Some(drive) if drive.is_ascii_alphabetic() => {
            start.next() == Some(':') && matches!(start.next(), None | Some('/'))
        }
        _ => false,
    }
}

/// Returns the components of a path.
fn names_of(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    push_names(&mut names, path);
    names
}

fn push_names(names: &mut Vec<String>, path: &str) {
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                // `..` above any depth is any depth again.
                names.pop_if(|last| last != ANY_DEPTH);
            }
            _ if IGNORES_CASE => names.push(name.to_lowercase()),
            _ => names.push(name.to_owned()),
        }
    }
}

/// Joins components to a path.
fn path_of(names: &[String]) -> PathBuf {
    // A drive without a slash would be the current folder on that drive.
    let path = names.join("/") + "/";
    PathBuf::from(if is_rooted(&path) {
        path
    } else {
        format!("/{path}")
    })
}

/// Returns the components of a path with its links resolved. The part that does not exist stays as
/// written.
fn resolved_names(path: &Path) -> Vec<String> {
    names_of(&slashes(&resolve(path).to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excludes(pattern: &str, folder: impl AsRef<Path>) -> bool {
        let home = Some(Path::new("/home/ann"));
        Exclusions::new(&[pattern.to_owned()], home).excludes(folder.as_ref())
    }

    /// Patterns, folders that they exclude, and folders that they do not.
    const PATTERNS: &[(&str, &[&str], &[&str])] = &[
        // A folder, what is below it, and neighbours that only begin like it.
        (
            "/a/secret",
            &["/a/secret", "/a/secret/", "/a/secret/b/c", "//a//secret"],
            &[
                "/a",
                "/a/secret2",
                "/a/secre",
                "/a/b/secret",
                "/b/a/secret",
                "/",
            ],
        ),
        ("/a/secret/", &["/a/secret", "/a/secret/b"], &["/a/secret2"]),
        ("/a//secret//", &["/a/secret"], &["/a"]),
        ("/", &["/", "/a"], &[]),
        // The home.
        ("~", &["/home/ann", "/home/ann/a"], &["/home", "/home/anna"]),
        ("~/", &["/home/ann", "/home/ann/a"], &["/home"]),
        (
            "~/a",
            &["/home/ann/a", "/home/ann/a/b"],
            &["/home/ann", "/a"],
        ),
        ("~/..", &["/home", "/home/bob"], &["/"]),
        ("~bob", &["/x/~bob"], &["/home/bob", "/home/ann"]),
        ("/a/~", &["/a/~"], &["/home/ann", "/a"]),
        // One star stays within a name.
        ("/a/*", &["/a/b", "/a/b/c", "/a/.b"], &["/a", "/b"]),
        ("/a/*/c", &["/a/b/c", "/a/b/c/d"], &["/a/c", "/a/b/x/c"]),
        ("/a/s*t", &["/a/st", "/a/secret"], &["/a/secrets", "/a/s/t"]),
        ("/a/*s*t*", &["/a/secret2", "/a/st"], &["/a/ts"]),
        ("/a/b**c", &["/a/bc", "/a/bxc"], &["/a/b/c"]),
        // A question mark is one character.
        ("/a/?", &["/a/b", "/a/\u{e9}", "/a/b/c"], &["/a", "/a/bb"]),
        ("/a/s?t", &["/a/set"], &["/a/st", "/a/seet", "/a/s/t"]),
        // Two stars are any number of folders.
        (
            "/a/**/c",
            &["/a/c", "/a/b/c", "/a/b/b/c/d"],
            &["/a", "/a/b", "/c"],
        ),
        (
            "/a/**/b/**/c",
            &["/a/b/c", "/a/b/b/x/c"],
            &["/a/c", "/a/c/b"],
        ),
        ("**/target", &["/target", "/a/b/target/c"], &["/a/targets"]),
        ("**/a/b", &["/a/b", "/a/a/b"], &["/a/x/b", "/b"]),
        ("/a/**", &["/a/b", "/a/b/c"], &["/a", "/b"]),
        ("/a/**/", &["/a/b"], &["/a"]),
        ("~/**", &["/home/ann/x"], &["/home/ann", "/home"]),
        ("/a/**/**", &["/a/b"], &["/a"]),
        ("/**", &["/", "/a", "/a/b"], &[]),
        ("**", &["/", "/a/b"], &[]),
        ("/**/a", &["/a", "/b/a/c"], &["/b"]),
        // Without a beginning: at any depth.
        ("secret*", &["/secret", "/a/secrets/b"], &["/a/mysecret"]),
        (
            "node_modules",
            &["/a/node_modules/b"],
            &["/a/node_modules2"],
        ),
        (
            "work/keys",
            &["/a/work/keys/b"],
            &["/a/work", "/work/a/keys"],
        ),
        ("./keys", &["/a/keys"], &["/a"]),
        ("../keys", &["/a/keys"], &["/a"]),
        // Dots are resolved, in patterns and in folders.
        ("/a/./b/../secret", &["/a/secret"], &["/a/b"]),
        ("/a/**/../b", &["/a/b", "/a/x/b"], &["/a"]),
        ("/../a", &["/a"], &["/b"]),
        (
            "/a/secret",
            &[
                "/a/./secret",
                "/a/b/../secret",
                "/a/secret/.",
                "/../a/secret",
            ],
            &["/a/secret/..", "/a/secret/../b"],
        ),
        // Nothing else is special.
        ("/a/[bc]", &["/a/[bc]"], &["/a/b"]),
        ("/a/{b,c}", &["/a/{b,c}"], &["/a/b"]),
        ("!/a", &["/x/!/a"], &["/a", "/b"]),
        ("/a/$HOME", &["/a/$HOME"], &["/home/ann"]),
        ("/a/b.c", &["/a/b.c"], &["/a/bxc"]),
        ("/a/#b", &["/a/#b"], &["/a"]),
        // White space, scripts, letter case.
        (
            "/a/my secret",
            &["/a/my secret/b"],
            &["/a/my", "/a/mysecret"],
        ),
        (" ~/a\n", &["/home/ann/a"], &["/home/ann"]),
        ("/a/b ", &["/a/b ", "/a/b"], &["/a/bb"]),
        (
            "/a/\u{79d8}\u{5bc6}*",
            &["/a/\u{79d8}\u{5bc6}1"],
            &["/a/\u{79d8}"],
        ),
        // Windows.
        (
            r"C:\Users\ann\keys",
            &["C:/Users/ann/keys/b", r"C:\Users\ann\keys"],
            &["C:/Users/ann"],
        ),
        ("C:/keys", &[r"\\?\C:\keys\b"], &["D:/keys", "/x/C:/keys"]),
        (
            r"\\server\share",
            &[r"\\server\share\a", r"\\?\UNC\server\share"],
            &["/share"],
        ),
        (r"**\keys", &[r"C:\a\keys"], &[r"C:\a"]),
        // Nothing.
        ("", &[], &["/", "/a"]),
        (" \t", &[], &["/", "/a"]),
        (".", &[], &["/", "/a"]),
        ("./..", &[], &["/", "/a"]),
        ("a/..", &[], &["/", "/a"]),
    ];

    #[test]
    fn patterns_and_folders() {
        for (pattern, inside, outside) in PATTERNS {
            for folder in *inside {
                assert!(excludes(pattern, folder), "{pattern:?} {folder:?}");
            }
            for folder in *outside {
                assert!(!excludes(pattern, folder), "{pattern:?} {folder:?}");
            }
        }
        for (pattern, folder) in [("/a/Secret", "/a/sECRET"), ("/A/?ecret", "/a/Secret")] {
            assert_eq!(excludes(pattern, folder), IGNORES_CASE, "{pattern}");
        }
        for folder in [r"C:\keys", "C:/keys/a"] {
            assert_eq!(excludes("/c/keys", folder), cfg!(windows), "{folder}");
        }
    }

    #[test]
    fn several_patterns_and_none() {
        let patterns = ["/a", "", "b"].map(str::to_owned);
        let exclusions = Exclusions::new(&patterns, None);
        assert!(exclusions.excludes(Path::new("/a")) && exclusions.excludes(Path::new("/c/b")));
        assert!(!exclusions.excludes(Path::new("/c")));
        let none = Exclusions::new(&[String::new()], None);
        assert!(none.is_empty() && !none.excludes(Path::new("/")));
    }

    #[test]
    fn without_a_home_more_is_excluded_rather_than_less() {
        let exclusions = Exclusions::new(&["~/keys".to_owned()], None);
        assert!(exclusions.excludes(Path::new("/home/ann/keys/a")));
        assert!(!exclusions.excludes(Path::new("/home/ann")));
    }

    #[test]
    fn what_is_too_long_for_a_folder_is_excluded() {
        let long = "/a".repeat(MAX_FOLDER_LENGTH);
        assert!(excludes("/b", &long));
        assert!(!Exclusions::default().excludes(Path::new(&long)));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_both_ways() {
        use std::{fs, os::unix::fs::symlink};

        let folder = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(folder.path()).unwrap();
        let at = |path: &str| root.join(path);
        fs::create_dir_all(at("real/secret/deep")).unwrap();
        fs::create_dir_all(at("open")).unwrap();
        symlink(at("real"), at("parent")).unwrap();
        symlink(at("real/secret"), at("open/link")).unwrap();
        symlink(at("open/link"), at("twice")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        let excludes = |pattern: &str, folder: &str| {
            let pattern = at(pattern).to_string_lossy().into_owned();
            Exclusions::new(&[pattern], None).excludes(&at(folder))
        };
        for (pattern, folder, expected) in [
            // The folder is reached by a link to it or above it.
            ("real/secret", "open/link", true),
            ("real/secret", "open/link/deep", true),
            ("real/secret", "twice", true),
            ("real/secret", "parent/secret", true),
            ("real/sec*", "parent/secret/deep", true),
            ("real/secret", "parent", false),
            // It does not exist, but what is above it does.
            ("real/secret", "open/link/none/here", true),
            ("real/none", "parent/none/here", true),
            // The pattern names the link.
            ("open/link", "real/secret", true),
            ("twice", "real/secret/deep", true),
            ("parent/secret", "real/secret", true),
            ("parent/*", "real/secret", true),
            ("parent/none", "real/none", true),
            ("open/link", "open", false),
            ("open/link", "real", false),
            // Both name another one.
            ("twice", "parent/secret", true),
            // Dots after a link lead to what is above its target, or above the link.
            ("real", "open/link/..", true),
            ("open", "open/link/..", true),
            // A link that leads nowhere is the folder itself.
            ("loop", "loop/a", true),
            ("loop", "open", false),
        ] {
            assert_eq!(excludes(pattern, folder), expected, "{pattern} {folder}");
        }
        // A home that is a link.
        symlink(at("real"), at("home")).unwrap();
        let exclusions = Exclusions::new(&["~/secret".to_owned()], Some(&at("home")));
        assert!(exclusions.excludes(&at("real/secret")) && exclusions.excludes(&at("home/secret")));
    }

    #[test]
    fn hostile_patterns_take_no_longer_than_their_length_times_the_folders() {
        let pattern = format!("/{}b", "**/*a*a*a*a*a*a*a*a*a*/".repeat(500));
        let folder = format!("/{}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/".repeat(1_000));
        assert!(!excludes(&pattern, folder));
    }

    proptest! {
        #[test]
        fn a_folder_excludes_itself_and_what_is_below(
            folder in "(/[^/\\\\\\pC]{1,6}){1,5}",
            below in "(/[a-z.]{1,4}x){0,3}",
        ) {
            prop_assume!(!folder.split('/').any(|name| name == ".."));
            prop_assert!(excludes(&folder, format!("{folder}{below}")), "{}", folder);
        }

        #[test]
        fn no_text_makes_it_panic(pattern in any::<String>(), folder in any::<String>()) {
            let _ = excludes(&pattern, &folder);
        }
    }
}
