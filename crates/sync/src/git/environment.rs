//! The environment of the user's git: what it needs to reach the remote, and nothing else.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

const PATH: &str = "PATH";

/// The variables that git inherits. All others (`GIT_DIR`, `GIT_SSH_COMMAND`, `LD_PRELOAD`, an API
/// key) are dropped.
const PASSED: &[&str] = &[
    "HOME",
    #[cfg(windows)]
    "USERPROFILE",
    #[cfg(windows)]
    "APPDATA",
    #[cfg(windows)]
    "LOCALAPPDATA",
    #[cfg(windows)]
    "SystemRoot",
    #[cfg(windows)]
    "TEMP",
    #[cfg(windows)]
    "TMP",
];

/// The variables for the user's keys and proxies. git inherits them too, so a process that runs git
/// needs them.
pub const NETWORK_VARIABLES: &[&str] = &[
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Settings that prevent prompts, and a locale whose output can be parsed.
const FIXED: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Set but empty: neither a configured program nor one of the desktop prompts.
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GCM_INTERACTIVE", "never"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// The environment that git runs in.
#[derive(Clone)]
pub struct GitEnvironment {
    variables: Vec<(OsString, OsString)>,
    path: Vec<PathBuf>,
}

impl GitEnvironment {
    /// Selects git's variables from an environment, such as that of the process.
    ///
    /// Relative folders in `PATH` are left out, because they depend on the current folder.
    pub fn choose(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut chosen = Vec::new();
        let mut path = Vec::new();
        for (name, value) in variables {
            if is_named(&name, PATH) {
                path = env::split_paths(&value)
                    .filter(|folder| folder.is_absolute())
                    .collect();
            } else if PASSED
                .iter()
                .chain(NETWORK_VARIABLES)
                .any(|passed| is_named(&name, passed))
            {
                chosen.push((name, value));
            }
        }
        if let Ok(path) = env::join_paths(&path) {
            chosen.push((PATH.into(), path));
        }
        chosen.extend(
            FIXED
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        Self {
            variables: chosen,
            path,
        }
    }

    /// Finds a program in the folders of `PATH`, never in the current folder.
    pub(super) fn find(&self, program: &str) -> Option<PathBuf> {
        let name = format!("{program}{}", env::consts::EXE_SUFFIX);
        self.path
            .iter()
            .map(|folder| folder.join(&name))
            .find(|path| is_program(path))
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for GitEnvironment {
    /// Shows the names only: the address of a proxy may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.variables.iter().map(|(name, _)| name);
        formatter.debug_list().entries(names).finish()
    }
}

/// Returns whether a variable has this name. Names are case-sensitive, except on Windows.
pub fn is_named(name: &OsStr, expected: &str) -> bool {
    if cfg!(windows) {
        name.eq_ignore_ascii_case(expected)
    } else {
        name == expected
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> GitEnvironment {
        GitEnvironment::choose(
            variables
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        )
    }

    /// HOOK-05.
    #[test]
    fn a_poisoned_environment_does_not_reach_git() {
        let environment = environment(&[
            ("HOME", "/home/me"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("https_proxy", "http://proxy:3128"),
            ("GIT_DIR", "/tmp/evil"),
            ("GIT_EXEC_PATH", "/tmp/evil"),
            ("GIT_SSH_COMMAND", "/tmp/evil"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_ASKPASS", "/tmp/evil"),
            ("GIT_TRACE", "/tmp/evil"),
            ("LD_PRELOAD", "/tmp/evil.so"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("ANTHROPIC_API_KEY", "x"),
        ]);
        let mut variables: Vec<String> = environment
            .variables()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        variables.sort();
        assert_eq!(
            variables,
            [
                "GCM_INTERACTIVE=never",
                "GIT_ASKPASS=",
                "GIT_OPTIONAL_LOCKS=0",
                "GIT_TERMINAL_PROMPT=0",
                "HOME=/home/me",
                "LC_ALL=C",
                "PATH=",
                "SSH_ASKPASS=",
                "SSH_ASKPASS_REQUIRE=never",
                "SSH_AUTH_SOCK=/run/agent",
                "https_proxy=http://proxy:3128",
            ]
        );
    }

    /// GIT-11.
    #[test]
    fn values_are_not_shown() {
        let environment = environment(&[("https_proxy", "http://me:s3cret@proxy")]);
        let shown = format!("{environment:?}");
        assert!(shown.contains("https_proxy") && !shown.contains("s3cret"));
    }

    /// HOOK-04.
    #[cfg(unix)]
    #[test]
    fn a_program_is_found_by_an_absolute_folder_only() {
        // The tests of a crate run in its folder, which has `src`.
        assert!(Path::new("src").is_dir());
        for path in ["", ".", "src:./src", ":src:"] {
            let environment = environment(&[("PATH", path)]);
            assert_eq!(environment.find("git"), None);
            assert!(
                environment
                    .variables()
                    .any(|variable| variable == (OsStr::new("PATH"), OsStr::new("")))
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("git");
        std::fs::write(&path, "").unwrap();
        let environment = environment(&[("PATH", &format!(".:{}", folder.path().display()))]);
        assert_eq!(environment.find("git"), None, "not a program yet");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, mode).unwrap();
        assert_eq!(environment.find("git"), Some(path));
    }
}
