//! Deserialises the client's transcript records.
//!
//! The format changes between versions. A field of an unexpected type counts as missing, the second
//! of duplicate fields wins, and unknown fields are skipped without allocation. Only invalid JSON
//! is an error.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text field; `None` if missing or not text.
pub(super) type Text<'a> = Option<Cow<'a, str>>;

/// One line of a transcript.
#[derive(Debug, Default)]
pub(super) struct TranscriptLine<'a> {
    /// The top-level `type`. Records of other types contain messages, too.
    pub(super) kind: Text<'a>,
    pub(super) subtype: Text<'a>,
    /// The text of a record that has no message.
    pub(super) content: Text<'a>,
    /// The prompt of a scheduled task.
    pub(super) prompt: Text<'a>,
    pub(super) is_sidechain: bool,
    pub(super) is_meta: bool,
    pub(super) is_compact_summary: bool,
    pub(super) is_api_error: bool,
    /// Why the call was denied, if it was.
    pub(super) denial: Text<'a>,
    pub(super) session_id: Text<'a>,
    pub(super) cwd: Text<'a>,
    pub(super) git_branch: Text<'a>,
    pub(super) timestamp: Text<'a>,
    pub(super) prompt_id: Text<'a>,
    pub(super) prompt_source: Text<'a>,
    pub(super) origin: Origin<'a>,
    pub(super) custom_title: Text<'a>,
    pub(super) ai_title: Text<'a>,
    pub(super) message: Message<'a>,
    pub(super) attachment: Attachment<'a>,
}

/// The origin of a prompt.
#[derive(Debug, Default)]
pub(super) struct Origin<'a> {
    pub(super) kind: Text<'a>,
}

/// A message in the format of the model's API.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) id: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) content: Content<'a>,
}

/// The client's attachment to a prompt. A prompt typed while the model works is an attachment.
#[derive(Debug, Default)]
pub(super) struct Attachment<'a> {
    pub(super) kind: Text<'a>,
    pub(super) prompt: Content<'a>,
    pub(super) origin: Origin<'a>,
}

/// The blocks of a message. A plain text counts as one block.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) blocks: Vec<Block<'a>>,
    /// Whether there are blocks of other kinds, such as images.
    pub(super) has_media: bool,
}

#[derive(Debug)]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    ToolUse { name: Cow<'a, str>, path: Text<'a> },
    ToolResult { is_error: bool },
}

impl<'a> TranscriptLine<'a> {
    /// Parses a line.
    ///
    /// # Errors
    /// The line is not a JSON value, or a text has a lone surrogate: see
    /// [`anamnesis_text::surrogates::repair`].
    pub(super) fn parse(line: &'a str) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let record = Tolerant::new().deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(record)
    }
}

/// A type that deserialises from any JSON value; an unexpected value gives the default.
trait FromAny<'de>: Default {
    fn from_text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn from_bool(_: bool) -> Self {
        Self::default()
    }

    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn from_array<A: SeqAccess<'de>>(mut array: A) -> Result<Self, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Deserialises a [`FromAny`] value.
struct Tolerant<T>(PhantomData<T>);

impl<T> Tolerant<T> {
    fn new() -> Self {
        Tolerant(PhantomData)
    }
}

impl<'de, T: FromAny<'de>> DeserializeSeed<'de> for Tolerant<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: FromAny<'de>> Visitor<'de> for Tolerant<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::from_bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::from_bool(value != 0))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::from_bool(value != 0))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::from_bool(value != 0.0))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(value.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<T, A::Error> {
        T::from_array(array)
    }
}

fn next_key<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Text<'de>, A::Error> {
    let key: Option<Text> = object.next_key_seed(Tolerant::new())?;
    Ok(key.flatten())
}

fn next_value<'de, T: FromAny<'de>, A: MapAccess<'de>>(object: &mut A) -> Result<T, A::Error> {
    object.next_value_seed(Tolerant::new())
}

impl<'de> FromAny<'de> for Text<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Some(text)
    }
}

/// Any value that is truthy in JavaScript is `true`.
impl<'de> FromAny<'de> for bool {
    fn from_text(text: Cow<'de, str>) -> Self {
        !text.is_empty()
    }

    fn from_bool(value: bool) -> Self {
        value
    }
}

/// Reads the fields of objects by their names. Other fields are skipped.
macro_rules! fields {
    ($($name:ident { $($key:literal => $field:ident,)+ })+) => {$(
        impl<'de> FromAny<'de> for $name<'de> {
            fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
                let mut fields = Self::default();
                while let Some(key) = next_key(&mut object)? {
                    match key.as_ref() {
                        $($key => fields.$field = next_value(&mut object)?,)+
                        _ => object.next_value::<IgnoredAny>().map(drop)?,
                    }
                }
                Ok(fields)
            }
        }
    )+};
}

fields! {
    TranscriptLine {
        "type" => kind,
        "subtype" => subtype,
        "content" => content,
        "prompt" => prompt,
        "isSidechain" => is_sidechain,
        "isMeta" => is_meta,
        "isCompactSummary" => is_compact_summary,
        "isApiErrorMessage" => is_api_error,
        "toolDenialKind" => denial,
        "sessionId" => session_id,
        "cwd" => cwd,
        "gitBranch" => git_branch,
        "timestamp" => timestamp,
        "promptId" => prompt_id,
        "promptSource" => prompt_source,
        "origin" => origin,
        "customTitle" => custom_title,
        "aiTitle" => ai_title,
        "message" => message,
        "attachment" => attachment,
    }
    Origin {
        "kind" => kind,
    }
    Message {
        "id" => id,
        "model" => model,
        "content" => content,
    }
    Attachment {
        "type" => kind,
        "prompt" => prompt,
        "origin" => origin,
    }
    BlockFields {
        "type" => kind,
        "text" => text,
        "name" => name,
        "input" => input,
        "is_error" => is_error,
    }
    NamedFiles {
        "file_path" => file_path,
        "notebook_path" => notebook_path,
    }
    Tasks {
        "tasks" => prompts,
    }
}

/// A file of scheduled tasks.
#[derive(Default)]
pub(super) struct Tasks<'a> {
    /// The prompt of each.
    pub(super) prompts: Vec<Text<'a>>,
}

impl<'a> Tasks<'a> {
    /// Parses a file. As in JavaScript, numbers may have any size and values any depth.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Tolerant::new().deserialize(&mut deserializer)
    }
}

/// The prompts of a list of tasks.
impl<'de> FromAny<'de> for Vec<Text<'de>> {
    fn from_array<A: SeqAccess<'de>>(mut array: A) -> Result<Self, A::Error> {
        let mut prompts = Vec::new();
        while let Some(task) = array.next_element_seed(Tolerant::<TranscriptLine>::new())? {
            prompts.push(task.prompt);
        }
        Ok(prompts)
    }
}

impl<'de> FromAny<'de> for Content<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Content {
            blocks: vec![Block::Text(text)],
            has_media: false,
        }
    }

    fn from_array<A: SeqAccess<'de>>(mut array: A) -> Result<Self, A::Error> {
        let mut content = Content::default();
        while let Some(fields) = array.next_element_seed(Tolerant::<BlockFields>::new())? {
            match fields.into_block() {
                Some(block) => content.blocks.push(block),
                None => content.has_media = true,
            }
        }
        Ok(content)
    }
}

/// The fields of a block before its kind is known.
#[derive(Default)]
struct BlockFields<'a> {
    kind: Text<'a>,
    text: Text<'a>,
    name: Text<'a>,
    input: NamedFiles<'a>,
    is_error: bool,
}

impl<'a> BlockFields<'a> {
    fn into_block(self) -> Option<Block<'a>> {
        match self.kind.as_deref()? {
            "text" => Some(Block::Text(self.text?)),
            "tool_use" => Some(Block::ToolUse {
                name: self.name?,
                path: self.input.notebook_path.or(self.input.file_path),
            }),
            "tool_result" => Some(Block::ToolResult {
                is_error: self.is_error,
            }),
            _ => None,
        }
    }
}

#[derive(Default)]
struct NamedFiles<'a> {
    file_path: Text<'a>,
    notebook_path: Text<'a>,
}

#[cfg(test)]
mod tests {
    use anamnesis_text::surrogates;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_of_other_types_count_as_missing() {
        let record = TranscriptLine::parse(
            r#"{"type":"user","cwd":7,"gitBranch":null,"customTitle":["2"],"isMeta":"yes",
                "isSidechain":0,"sessionId":{"a":[1]},"origin":"x","message":3,"attachment":[]}"#,
        )
        .unwrap();
        assert_eq!(record.kind.as_deref(), Some("user"));
        assert!(record.is_meta && !record.is_sidechain);
        let texts = [
            record.cwd,
            record.git_branch,
            record.custom_title,
            record.session_id,
        ];
        assert!(texts.iter().all(Option::is_none));
        assert!(record.message.content.blocks.is_empty());
    }

    #[test]
    fn a_field_given_twice_counts_the_second_time() {
        let record = TranscriptLine::parse(r#"{"type":"user","cwd":"/a","cwd":"/b"}"#).unwrap();
        assert_eq!(record.cwd.as_deref(), Some("/b"));
    }

    #[test]
    fn only_the_top_level_type_counts() {
        let line = r#"{"message":{"type":"user","role":"user"},"type":"api-request-blob"}"#;
        let record = TranscriptLine::parse(line).unwrap();
        assert_eq!(record.kind.as_deref(), Some("api-request-blob"));
    }

    /// CAP-07: unknown values may be nested to any depth, and so may a value in place of a text.
    #[test]
    fn depth_is_no_danger() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        for key in ["toolUseResult", "cwd", "message"] {
            let line = format!(r#"{{"{key}":{deep},"type":"user"}}"#);
            let record = TranscriptLine::parse(&line).unwrap();
            assert_eq!(record.kind.as_deref(), Some("user"), "{key}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(line in any::<String>()) {
            let _ = TranscriptLine::parse(&line);
            let _ = surrogates::repair(&line);
        }

        #[test]
        fn repaired_lines_can_be_read(units in prop::collection::vec(any::<u16>(), 0..20)) {
            let escapes: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let line = format!(r#"{{"cwd":"{}"}}"#, escapes.concat());
            let repaired = surrogates::repair(&line).unwrap_or(line);
            let record = TranscriptLine::parse(&repaired).unwrap();
            prop_assert_eq!(record.cwd.unwrap(), String::from_utf16_lossy(&units));
        }
    }
}
