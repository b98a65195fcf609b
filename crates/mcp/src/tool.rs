//! A tool: its name, what it is for, what it takes and gives as JSON Schema, and the function behind
//! it, which knows nothing of the protocol.

use std::{any::Any, borrow::Cow, str::FromStr, sync::Arc};

use anamnesis_core::note::{Kind, NoteType, Scope, UnknownWord};
use rmcp::{
    model::{JsonObject, ToolAnnotations},
    schemars::{
        JsonSchema, Schema, SchemaGenerator,
        generate::SchemaSettings,
        json_schema,
        transform::{RecursiveTransform, Transform as _},
    },
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::memory::{Memory, Refusal};

type Run = dyn Fn(&Memory, JsonObject) -> Result<Value, Refusal> + Send + Sync;

/// A tool that reads and changes nothing.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    input: Arc<JsonObject>,
    output: Arc<JsonObject>,
    run: Box<Run>,
}

impl Tool {
    /// Makes a tool of a function.
    pub(crate) fn reading<P, A>(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        run: fn(&Memory, P) -> Result<A, Refusal>,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Any,
        A: Serialize + JsonSchema + Any,
    {
        let input = Arc::new(schema::<P>(SchemaSettings::draft2020_12()));
        let output = Arc::new(schema::<A>(SchemaSettings::draft2020_12().for_serialize()));
        let takes = parameters(&input);
        Self {
            name,
            title,
            description,
            input,
            output,
            run: Box::new(move |memory, arguments| {
                let parameters = serde_json::from_value(Value::Object(arguments))
                    .map_err(|error| Refusal::argument(&error.to_string(), &takes))?;
                let answer = run(memory, parameters)?;
                serde_json::to_value(answer).map_err(|error| Refusal::internal(&error.to_string()))
            }),
        }
    }

    /// Runs it.
    pub(crate) fn run(&self, memory: &Memory, arguments: JsonObject) -> Result<Value, Refusal> {
        (self.run)(memory, arguments)
    }

    /// What a client is told of it.
    pub(crate) fn described(&self) -> rmcp::model::Tool {
        // What else could be said (destructive, idempotent) means something for writing tools only.
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(true)
            .open_world(false);
        rmcp::model::Tool::new(self.name, self.description, Arc::clone(&self.input))
            .with_raw_output_schema(Arc::clone(&self.output))
            .with_annotations(annotations)
    }
}

/// The schema of a type in as few words as it can be said: every one is paid for in a session.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(terse).transform(&mut schema);
    for key in ["title", "description"] {
        schema.remove(key);
    }
    match schema.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Takes away what says nothing: number formats, and `null` where leaving a field out says the same.
fn terse(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|of| of != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// The names of the parameters, for a model that got one wrong.
fn parameters(input: &JsonObject) -> String {
    let properties = input.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(JsonObject::keys);
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// One of the words that a field of a note may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<T>(pub(crate) T);

/// A field of a note that has one of few words.
pub(crate) trait Vocabulary: Sized + Copy + 'static {
    const NAME: &'static str;
    const ALL: &'static [Self];
    /// The word that models are shown.
    fn shown(self) -> &'static str;
    fn read(word: &str) -> Result<Self, UnknownWord>;
}

impl Vocabulary for NoteType {
    const NAME: &'static str = "Type";
    const ALL: &'static [Self] = Self::ALL;
    fn shown(self) -> &'static str {
        self.as_str()
    }
    fn read(word: &str) -> Result<Self, UnknownWord> {
        Self::from_str(word)
    }
}

impl Vocabulary for Scope {
    const NAME: &'static str = "Scope";
    const ALL: &'static [Self] = Self::ALL;
    fn shown(self) -> &'static str {
        self.as_str()
    }
    fn read(word: &str) -> Result<Self, UnknownWord> {
        Self::from_str(word)
    }
}

impl Vocabulary for Kind {
    const NAME: &'static str = "Kind";
    const ALL: &'static [Self] = Self::ALL;
    fn shown(self) -> &'static str {
        Self::shown(self)
    }
    fn read(word: &str) -> Result<Self, UnknownWord> {
        Self::from_word(word)
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        T::read(&word).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T: Vocabulary> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::ALL.iter().map(|value| value.shown()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
