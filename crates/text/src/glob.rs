//! Patterns of names and paths, with `*`, `?` and `**`.
//!
//! Nothing else is special. No pattern takes more than its length times that of what it is compared
//! with.

/// Any number of folders, in a pattern of a path.
pub const ANY_DEPTH: &str = "**";

/// Tells whether a pattern covers a path: it matches the whole of it, or a folder that it lies in.
///
/// Both are given as names, from the outermost on; [`ANY_DEPTH`] stands for any number of them.
pub fn covers(pattern: &[String], path: &[String]) -> bool {
    let (mut pattern, mut path) = (pattern, path);
    // The pattern after its last `**`, and the names that this one has not taken yet. An earlier one
    // need not be tried again: what it could take, the last one can.
    let mut retry: Option<(&[String], &[String])> = None;
    loop {
        match (pattern, path) {
            ([], _) => return true,
            ([any, after @ ..], _) if any == ANY_DEPTH => {
                retry = Some((after, path));
                pattern = after;
            }
            ([name, after @ ..], [found, below @ ..]) if matches(name, found) => {
                (pattern, path) = (after, below);
            }
            _ => match retry {
                Some((after, [_, below @ ..])) => {
                    retry = Some((after, below));
                    (pattern, path) = (after, below);
                }
                _ => return false,
            },
        }
    }
}

/// Tells whether a name is of a pattern, in which `*` stands for any characters and `?` for one.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // As in `covers`, with the last `*`.
    let mut retry = None;
    loop {
        let rest = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((pattern.clone(), rest.clone()));
                name = rest;
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((after, from)) = &mut retry else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                (pattern, name) = (after.clone(), from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_patterns_come_to_an_end() {
        assert!(!matches(&("*a".repeat(1_000) + "b"), &"a".repeat(2_000)));
        let pattern = ["**", "*a*a*a"].map(str::to_owned).into_iter().cycle();
        let pattern: Vec<String> = pattern.take(1_000).collect();
        let path = vec!["aaaaaaaaaaaaaab".to_owned(); 1_000];
        assert!(!covers(&pattern, &path));
    }

    /// What `matches` says, told by trying everything.
    fn matches_slowly(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', after @ ..], _) => {
                (0..=name.len()).any(|taken| matches_slowly(after, &name[taken..]))
            }
            (['?', after @ ..], [_, rest @ ..]) => matches_slowly(after, rest),
            ([wanted, after @ ..], [found, rest @ ..]) => {
                wanted == found && matches_slowly(after, rest)
            }
            _ => false,
        }
    }

    /// What `covers` says, told by trying everything.
    fn covers_slowly(pattern: &[String], path: &[String]) -> bool {
        match (pattern, path) {
            ([], _) => true,
            ([any, after @ ..], _) if any == ANY_DEPTH => {
                (0..=path.len()).any(|taken| covers_slowly(after, &path[taken..]))
            }
            ([name, after @ ..], [found, below @ ..]) => {
                matches(name, found) && covers_slowly(after, below)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn names_match_as_they_should(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                matches(&pattern, &name),
                matches_slowly(&characters(&pattern), &characters(&name))
            );
        }

        #[test]
        fn paths_match_as_they_should(
            pattern in prop::collection::vec("[ab]|\\*|\\*\\*|a\\?", 0..7),
            path in prop::collection::vec("[ab]{1,2}", 0..8),
        ) {
            prop_assert_eq!(covers(&pattern, &path), covers_slowly(&pattern, &path));
        }
    }
}
