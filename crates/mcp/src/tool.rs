//! A tool: name, description, JSON Schema of input and output, and a function that does not depend
//! on the protocol.

use std::{any::Any, sync::Arc};

use anamnesis_app::{
    Error,
    context::{self, Context},
};
use anamnesis_recall::render::inert_value;
use anamnesis_store::index::Index;
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform as _},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::error::ToolError;

pub(crate) type Run = dyn Fn(&Context, JsonObject) -> Result<Value, ToolError> + Send + Sync;

/// The effect of a tool, as announced to clients, which may ask the person first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Read-only.
    Reads,
    /// Adds something on every call.
    Adds,
    /// Adds something; repeating the call adds nothing.
    AddsOnce,
    /// May replace something; repeating the call changes nothing more.
    Replaces,
    /// Uses the network and deletes nothing.
    UsesNetwork,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let annotations = ToolAnnotations::with_title(title)
            .read_only(self == Self::Reads)
            .open_world(self == Self::UsesNetwork);
        match self {
            // The other annotations are meaningful only for tools that change something.
            Self::Reads => annotations,
            Self::Adds => annotations.destructive(false).idempotent(false),
            Self::AddsOnce | Self::UsesNetwork => annotations.destructive(false).idempotent(true),
            Self::Replaces => annotations.destructive(true).idempotent(true),
        }
    }
}

/// Fields that a note's origin or a person determines. A model that passes one as an argument gets
/// a specific error instead of "unknown parameter".
const NOT_FOR_TOOLS: &[&str] = &[
    "prov_source",
    "prov_actor",
    "prov_model",
    "prov_session",
    "prov_host",
    "provenance",
    "source",
    "actor",
    "author",
    "model",
    "session",
    "machine_id",
    "created_at",
    "updated_at",
    "confidence",
    "state",
    "approved",
    "pinned",
    "enforce",
    "hard",
];

/// A tool with its handler.
pub(crate) struct Tool {
    /// The description for clients.
    pub(crate) described: rmcp::model::Tool,
    effect: Effect,
    /// The handler.
    pub(crate) run: Arc<Run>,
}

impl Tool {
    /// Creates a tool.
    pub(crate) fn new<P, A>(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        effect: Effect,
        run: fn(&Context, P) -> Result<A, Error>,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Any,
        A: Serialize + JsonSchema + Any,
    {
        let input = Arc::new(schema::<P>(SchemaSettings::draft2020_12()));
        let output = Arc::new(schema::<A>(SchemaSettings::draft2020_12().for_serialize()));
        let (takes, known) = (parameters(&input), Arc::clone(&input));
        Self {
            described: rmcp::model::Tool::new(name, description, input)
                .with_raw_output_schema(output)
                .with_annotations(effect.annotations(title)),
            effect,
            run: Arc::new(move |context, arguments| {
                if effect != Effect::Reads
                    && let Some(name) = not_for_tools(&arguments, &known)
                {
                    return Err(ToolError::not_for_tools(name, &takes));
                }
                let context = context.at_present();
                let answer = || {
                    let parameters = serde_json::from_value(Value::Object(arguments.clone()))
                        .map_err(|error| ToolError::argument(&error.to_string(), &takes))?;
                    run(&context, parameters).map_err(ToolError::from)
                };
                let answer = match answer() {
                    Err(error) if error.is_index_damage && has_rebuilt_index(&context) => {
                        // A tool with side effects is not retried.
                        if effect == Effect::Reads {
                            answer()
                        } else {
                            Err(error)
                        }
                    }
                    answered => answered,
                };
                let answer = serde_json::to_value(answer?);
                let answer = answer.map_err(|error| ToolError::internal(&error.to_string()))?;
                Ok(inert_value(answer))
            }),
        }
    }

    /// Whether it may block other requests for too long.
    pub(crate) fn is_slow(&self) -> bool {
        self.effect == Effect::UsesNetwork
    }
}

/// Rebuilds the index, which is damaged. Returns whether there is a new one.
fn has_rebuilt_index(context: &Context) -> bool {
    Index::rebuild(&context.home, &context.notes, context::TIMEOUT).is_ok()
}

/// Returns the first argument that this tool does not take and that no tool may set.
fn not_for_tools<'a>(arguments: &'a JsonObject, input: &JsonObject) -> Option<&'a str> {
    let taken = input.get("properties").and_then(Value::as_object);
    let is_taken = |name: &str| taken.is_some_and(|taken| taken.contains_key(name));
    let mut names = arguments.keys().map(String::as_str);
    names.find(|name| NOT_FOR_TOOLS.contains(name) && !is_taken(name))
}

/// Generates the schema of a type in as few words as possible, because every session pays for it in
/// tokens.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let is_input = settings.contract.is_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(terse).transform(&mut schema);
    if is_input {
        RecursiveTransform(without_null).transform(&mut schema);
    }
    for key in ["title", "description"] {
        schema.remove(key);
    }
    match schema.to_value() {
        Value::Object(object) => joined(object),
        _ => JsonObject::new(),
    }
}

/// Joins the parameters of a tool with several actions in one object, because clients drop a tool whose
/// root schema has alternatives.
fn joined(mut schema: JsonObject) -> JsonObject {
    let Some(Value::Array(alternatives)) = schema.remove("oneOf") else {
        return schema;
    };
    let mut actions = Vec::new();
    let mut properties = JsonObject::new();
    properties.insert("action".to_owned(), Value::Null);
    for mut alternative in alternatives {
        let fields = alternative["properties"].as_object_mut();
        for (name, mut property) in fields.map(std::mem::take).unwrap_or_default() {
            if name == "action" {
                actions.push(property["const"].take());
            } else {
                properties.entry(name).or_insert(property);
            }
        }
    }
    properties["action"] = json!({ "type": "string", "enum": actions });
    let joined = json!({
        "type": "object",
        "properties": properties,
        "required": ["action"],
        "additionalProperties": false,
    });
    match joined {
        Value::Object(object) => object,
        _ => schema,
    }
}

/// Removes formats and bounds of integer types and empty descriptions, which tell a model nothing.
fn terse(schema: &mut Schema) {
    schema.remove("format");
    if schema.get("description").is_some_and(|text| *text == "") {
        schema.remove("description");
    }
    if schema.get("minimum").is_some_and(|minimum| *minimum == 0) {
        schema.remove("minimum");
    }
}

/// Removes `null` from optional parameters, which can be left out. Output schemas keep it, because
/// clients validate answers against them.
fn without_null(schema: &mut Schema) {
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

/// Lists the parameter names, for an error message.
fn parameters(input: &JsonObject) -> String {
    let properties = input.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(JsonObject::keys);
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}
