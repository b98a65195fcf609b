//! Files of Claude Code's own memory that the client added to a session.

use serde_json::Value;

/// The attachment with the memories that match a prompt.
const RELEVANT: &str = "relevant_memories";

/// The mark of a compaction, which removes earlier attachments from the context.
const COMPACTED: &str = "compact_boundary";

/// Returns the paths of the files that the end of a transcript carries.
pub fn carried(end: &[u8]) -> Vec<String> {
    let end = String::from_utf8_lossy(end);
    let mut paths = Vec::new();
    for line in end.lines() {
        if line.contains(COMPACTED) {
            paths.clear();
        }
        if !line.contains(RELEVANT) {
            continue;
        }
        let record: Value = serde_json::from_str(line).unwrap_or_default();
        let attachment = &record["attachment"];
        if record["type"] == "attachment" && attachment["type"] == RELEVANT {
            let memories = attachment["memories"].as_array().into_iter().flatten();
            paths.extend(memories.filter_map(|memory| memory["path"].as_str().map(str::to_owned)));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_attachments_since_the_last_compaction_count() {
        let attachment = |path: &str| {
            format!(
                r#"{{"type":"attachment","attachment":{{"type":"relevant_memories","memories":[{{"path":"{path}","content":"x"}}]}}}}"#
            )
        };
        let said = r#"{"type":"user","message":{"role":"user","content":"relevant_memories"}}"#;
        let compacted = r#"{"type":"system","subtype":"compact_boundary"}"#;
        let first = attachment("/m/a.md");
        let end = [first.as_str(), said, &attachment("/m/b.md"), "{half"].join("\n");
        assert_eq!(carried(end.as_bytes()), ["/m/a.md", "/m/b.md"]);
        let end = [first.as_str(), compacted, &attachment("/m/b.md")].join("\n");
        assert_eq!(carried(end.as_bytes()), ["/m/b.md"]);
    }
}
