//! The Python version, which tasks run beside ours.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::target_folder;

/// The package on the Python Package Index.
const PACKAGE: &str = "anamnesis-memory==0.1.3";

/// Installs the Python version unless it is there. Returns its program, or the reason why it is not
/// available.
pub fn install(root: &Path) -> std::result::Result<PathBuf, String> {
    let folder = target_folder(root).join("python-version");
    let program = folder.join("bin/anamnesis");
    if program.exists() {
        return Ok(program);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&folder);
    let mut install = Command::new(folder.join("bin/pip"));
    install.args(["install", "--quiet", PACKAGE]);
    for command in [&mut make, &mut install] {
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{PACKAGE} cannot be installed: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{PACKAGE} cannot be installed: {said}"));
        }
    }
    Ok(program)
}

/// Returns the transcript of a session of the Python version.
pub fn transcript() -> String {
    let asked = json!({ "type": "user", "sessionId": "old", "message": {
        "role": "user", "content": "Let the parser name the lock that it waits for." } });
    let edited = json!({ "type": "assistant", "sessionId": "old", "message": {
        "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Edit",
        "input": { "file_path": "/shop/parser.rs", "old_string": "a", "new_string": "b" } }] } });
    let answered = json!({ "type": "assistant", "sessionId": "old", "message": {
        "role": "assistant", "content": [{ "type": "text", "text": "The parser names the lock now." }] } });
    format!("{asked}\n{edited}\n{answered}\n")
}
