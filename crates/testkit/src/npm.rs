//! Installs pinned npm programs, once, each into a folder of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::process::{self, Context, Result};

/// Time limit for a download.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// Installs a version of a package into `folder/node_modules` unless it is there.
///
/// Runs no install scripts. If several processes call it, one installs and the others wait.
///
/// # Errors
/// Returns an error if npm is missing or fails.
pub fn install(folder: &Path, package: &str, version: &str) -> Result<()> {
    fs::create_dir_all(folder).context(folder.display())?;
    let lock = File::create(folder.join("lock")).context("lock")?;
    lock.lock().context("lock")?;
    let installed = folder.join("installed");
    if installed.exists() {
        return Ok(());
    }
    let wanted = json!({ "private": true, "dependencies": { package: version } });
    fs::write(folder.join("package.json"), wanted.to_string()).context("package.json")?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder).args([
        "install",
        "--ignore-scripts",
        "--include=optional",
        "--no-audit",
        "--no-fund",
    ]);
    process::run(&mut npm, INSTALL_LIMIT)?.successful("npm install")?;
    // Written last, so that an interrupted install is repeated.
    fs::write(&installed, "").context("installed")
}
