//! Programs that come by npm, each in one pinned version, installed once into a folder of their own.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::process::{self, Context, Result};

/// How long a download may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// Installs a version of a package into `folder`, below `node_modules`, if it is not there.
///
/// No install script is run. Of several callers at once one installs and the others wait.
///
/// # Errors
/// If `npm` is missing or fails.
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
    // Written last: an install that was broken off is done again.
    fs::write(&installed, "").context("installed")
}
