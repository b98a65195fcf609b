//! Measurements of the program for developers, and helpers that `cargo xtask` shares with them.
//!
//! Each measurement is a task of `cargo xtask`. Nothing here is part of the product.

#[cfg(unix)]
pub mod bench;
pub mod eval;
pub mod frequencies;
pub mod masks;
mod mcp_client;
pub mod novelty;
pub mod plugin;
#[cfg(unix)]
pub mod python_version;
pub mod random;
#[cfg(unix)]
pub mod retention;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The error of a task: a sentence for the developer who ran it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of a task.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// Returns the root of the checkout that this program was built from.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .unwrap_or(crate_folder)
        .to_path_buf()
}

/// Returns cargo's target folder: the one that contains the running program.
pub fn target_folder(root: &Path) -> PathBuf {
    let own = std::env::current_exe().ok();
    let target = own.as_deref().and_then(|path| path.ancestors().nth(2));
    target.map_or_else(|| root.join("target"), Path::to_path_buf)
}

/// Prints a line on stderr, as cargo does. Ignores a closed pipe.
pub fn say(line: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "{line}");
}

/// Adds the path to an I/O error, for `map_err`.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |error| format!("{}: {error}", path.display()).into()
}

/// Runs a command to its end.
///
/// # Errors
/// Returns an error if the command cannot be started or exits with a failure.
pub fn run(command: &mut Command) -> Result {
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {status}").into())
    }
}

/// Returns a command for the cargo that started this task, so that all steps use one toolchain.
pub fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Returns what a command prints on stdout, without the space around it.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}
