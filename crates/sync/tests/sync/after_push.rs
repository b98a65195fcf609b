//! A `git` of the test's own, which runs a script after each push: what happens at that moment.

use std::{env, ffi::OsString, path::Path};
#[cfg(unix)]
use std::{fs, process::Command};

/// Returns the environment of a machine. A `bin/git` in the fleet's folder goes before the user's git.
pub(crate) fn variables(fleet: &Path) -> Vec<(OsString, OsString)> {
    let path = env::var_os("PATH").unwrap();
    let folders = env::split_paths(&path);
    let path = env::join_paths([fleet.join("bin")].into_iter().chain(folders)).unwrap();
    let others = env::vars_os().filter(|(name, _)| name != "PATH");
    others.chain([("PATH".into(), path)]).collect()
}

/// Runs a script after each successful push of the fleet's machines.
#[cfg(unix)]
pub(crate) fn after_push(fleet: &Path, script: &str) {
    let real = Command::new("git").arg("--exec-path").output().unwrap();
    let wrapper = format!(
        "#!/bin/sh\n{}/git \"$@\"\ncode=$?\ncase \"$code $* \" in '0 '*' push '*)\n(\n{script}\n) >/dev/null 2>&1\n;; esac\n\
         exit $code\n",
        String::from_utf8_lossy(&real.stdout).trim()
    );
    let git = fleet.join("bin/git");
    fs::create_dir_all(git.parent().unwrap()).unwrap();
    fs::write(&git, wrapper).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&git, mode).unwrap();
}
