//! Glob patterns for names and paths, with `*`, `?` and `**`.
//!
//! No other character is special. Matching takes at most the pattern's length times the input's
//! length.

/// Matches any number of folders in a path pattern.
pub const ANY_DEPTH: &str = "**";

/// Returns whether a pattern matches a path or one of its parent folders.
///
/// Both are lists of names, outermost first. [`ANY_DEPTH`] matches any number of names.
pub fn covers(pattern: &[String], path: &[String]) -> bool {
    let (mut pattern, mut path) = (pattern, path);
    // The pattern after its last `**`, and the names it has not tried yet. Backtracking to an
    // earlier `**` is not needed: the last one can take every name that an earlier one could.
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

/// Returns whether a name matches a pattern: `*` is any number of characters, `?` is one.
pub fn matches(pattern: &str, name: &str) -> bool {
    matches_folded(pattern, name, |letter| letter)
}

/// The same, after folding each letter of the name. The pattern is folded already.
pub(crate) fn matches_folded(pattern: &str, name: &str, fold: fn(char) -> char) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Backtracks to the last `*` only, as `covers` does to the last `**`.
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
            (Some(wanted), Some(found)) if wanted == fold(found) => {}
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
    fn hostile_patterns_terminate() {
        assert!(!matches(&("*a".repeat(1_000) + "b"), &"a".repeat(2_000)));
        let pattern = ["**", "*a*a*a"].map(str::to_owned).into_iter().cycle();
        let pattern: Vec<String> = pattern.take(1_000).collect();
        let path = vec!["aaaaaaaaaaaaaab".to_owned(); 1_000];
        assert!(!covers(&pattern, &path));
    }

    /// Reference implementation of `matches` by exhaustive search.
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

    /// Reference implementation of `covers` by exhaustive search.
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
        fn names_match_the_reference(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                matches(&pattern, &name),
                matches_slowly(&characters(&pattern), &characters(&name))
            );
        }

        #[test]
        fn paths_match_the_reference(
            pattern in prop::collection::vec("[ab]|\\*|\\*\\*|a\\?", 0..7),
            path in prop::collection::vec("[ab]{1,2}", 0..8),
        ) {
            prop_assert_eq!(covers(&pattern, &path), covers_slowly(&pattern, &path));
        }
    }
}
