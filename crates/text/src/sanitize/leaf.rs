//! The names, texts and numbers of JSON, in document order.

use serde_json::Value;

use crate::word_list::is_in;

/// Tools whose arguments and responses contain file contents.
const FILE_TOOLS: &str = "Read|Write|Edit|MultiEdit|NotebookRead|NotebookEdit|Update|\
    str_replace_based_edit_tool";

/// Names under which those tools have file contents or parts of them.
const FILE_CONTENTS: &str = "content|originalFile|originalFileContents|original_file|updated_file|\
    file_text|old_string|new_string|oldString|newString|old_str|new_str|old_source|new_source|\
    insert_text|base64|cells";

/// The role of a leaf in its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of an entry of the outermost object.
    Entry,
    /// The name of an inner entry.
    Name,
    Text,
    Number,
}

/// A name, text or number of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) is_file_content: bool,
}

impl Leaf {
    pub(super) fn is_name(&self) -> bool {
        matches!(self.role, Role::Entry | Role::Name)
    }
}

/// Reads the leaves of a tool's arguments or response.
pub(super) fn read(value: Value, tool: &str) -> Vec<Leaf> {
    let is_file_tool = is_in(FILE_TOOLS, tool);
    // A transcript has the text that the model reads; for a tool that reads, the file.
    let is_file = |text: &str| !text.starts_with("<tool_use_error>");
    let is_file_content =
        is_file_tool && tool.ends_with("Read") && value.as_str().is_some_and(is_file);
    let mut reader = Reader {
        leaves: Vec::new(),
        is_file_tool,
    };
    reader.read(value, Role::Entry, is_file_content);
    reader.leaves
}

struct Reader {
    leaves: Vec<Leaf>,
    is_file_tool: bool,
}

impl Reader {
    fn read(&mut self, value: Value, names: Role, is_file_content: bool) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.add(Role::Number, number.to_string(), is_file_content),
            Value::String(text) => self.add(Role::Text, text, is_file_content),
            Value::Array(items) => {
                for item in items {
                    self.read(item, Role::Name, is_file_content);
                }
            }
            Value::Object(object) => {
                for (name, value) in object {
                    let is_file_content =
                        is_file_content || (self.is_file_tool && is_in(FILE_CONTENTS, &name));
                    self.add(names, name, is_file_content);
                    self.read(value, Role::Name, is_file_content);
                }
            }
        }
    }

    fn add(&mut self, role: Role, text: String, is_file_content: bool) {
        self.leaves.push(Leaf {
            role,
            text,
            is_file_content,
        });
    }
}

/// Returns the entries of JSON that is safe already: for each its name, and its texts and numbers
/// joined by line feeds.
pub fn entries(value: Value) -> Vec<(String, String)> {
    joined(read(value, ""))
}

/// Joins the texts and numbers of each entry.
pub(super) fn joined(leaves: Vec<Leaf>) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut name = Some(String::new());
    for leaf in leaves {
        match leaf.role {
            Role::Entry => name = Some(leaf.text),
            Role::Name => {}
            Role::Text | Role::Number => match (name.take(), entries.last_mut()) {
                (None, Some((_, text))) => {
                    text.push('\n');
                    text.push_str(&leaf.text);
                }
                (name, _) => entries.push((name.unwrap_or_default(), leaf.text)),
            },
        }
    }
    entries
}
