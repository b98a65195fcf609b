//! Reads stdin for commands.

use std::io::Read as _;

use anamnesis_app::Error;
use anamnesis_session::hook::MAX_PAYLOAD_LENGTH;

use crate::ui;

pub(crate) fn read_input(limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(Error::prefixed("cannot read stdin"))?;
    if bytes.len() > limit {
        return Err(Error::usage(format!("stdin is over {limit} bytes")));
    }
    Ok(bytes)
}

/// Reads stdin as text. Invalid UTF-8 is replaced.
pub(crate) fn read_text() -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&read_input(MAX_TEXT_LENGTH)?).into_owned())
}

/// Returns the words of a command as one text, or stdin.
pub(crate) fn words_or_stdin(words: &[String], is_stdin: bool) -> Result<String, Error> {
    if is_stdin {
        return read_text();
    }
    Ok(words.join(" "))
}

/// The size limit of a text on stdin, in bytes.
pub(crate) const MAX_TEXT_LENGTH: usize = 16 * 1024 * 1024;

/// The fields of the client's JSON that `inject`, `capture` and `statusline` use; empty if stdin is no
/// JSON object.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct HookInput {
    pub(crate) cwd: Option<String>,
    pub(crate) transcript_path: Option<String>,
    pub(crate) session_id: Option<String>,
}

pub(crate) fn hook_input() -> HookInput {
    if ui::stdin_is_terminal() {
        return HookInput::default();
    }
    read_input(MAX_PAYLOAD_LENGTH)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}
