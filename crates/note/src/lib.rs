//! The note: its file, id, links, triggers, citations and merge.
//!
//! Nothing here touches a disk, a clock, the environment or the network.

/// Gives a type the JSON schema of another one.
#[macro_export]
macro_rules! schema_as {
    ($name:ident, $other:ty) => {
        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                <$other>::json_schema(generator)
            }
        }
    };
}

pub mod agent_policy;
pub mod citation;
pub mod draft;
pub mod front_matter;
pub mod id;
pub mod link;
pub mod merge;
pub mod note;
pub mod project_key;
pub mod purge_pattern;
pub mod synced_lines;
pub mod trigger;
