//! Removes entries from Claude Code's JSON files by their position in the text.
//!
//! Only the entries are removed, each with one comma, and containers that become empty. All other
//! bytes stay, including the order of keys, numbers, indentation and line ends. serde_json parses
//! the text; this module only computes positions.

use std::{fmt, iter, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// A text without the removed entries.
#[derive(Debug)]
pub(crate) struct Removal<T> {
    /// The remaining text.
    pub(crate) text: String,
    /// The removed entries, in text order.
    pub(crate) removed: Vec<T>,
}

/// A hook in Claude Code's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) event: String,
    pub(crate) command: String,
}

/// A server in Claude Code's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// The store that its environment names.
    pub(crate) store: Option<String>,
}

/// Removes the hooks for whose command `goes` returns true.
///
/// # Errors
/// The text is not a JSON object.
pub(crate) fn of_hooks(
    text: &str,
    goes: impl Fn(&str) -> bool,
) -> serde_json::Result<Removal<Hook>> {
    let mut removed = Vec::new();
    let mut hook = |event: &str, hook: &RawValue| match command_of(hook) {
        Some(command) if goes(&command) => {
            let event = event.to_owned();
            removed.push(Hook { event, command });
            Fate::Goes
        }
        _ => Fate::stays(),
    };
    let mut group = |event: &str, group: &RawValue| {
        let mut is_empty = false;
        let fate = member(text, group, "hooks", |hooks| {
            let fate = elements(text, hooks, |value| hook(event, value));
            is_empty |= fate.goes();
            fate
        });
        // A group whose last hook was removed has only its matcher left.
        if is_empty { Fate::Goes } else { fate }
    };
    let text_left = without(text, |root| {
        member(text, root, "hooks", |events| {
            members(text, events, |event, groups| {
                elements(text, groups, |value| group(event, value))
            })
        })
    })?;
    Ok(Removal {
        text: text_left,
        removed,
    })
}

/// Removes the servers for whose name and configuration `goes` returns true.
///
/// # Errors
/// The text is not a JSON object.
pub(crate) fn of_servers(
    text: &str,
    goes: impl Fn(&str, &Value) -> bool,
) -> serde_json::Result<Removal<Server>> {
    let mut removed = Vec::new();
    let text_left = without(text, |root| {
        member(text, root, "mcpServers", |servers| {
            members(text, servers, |name, server| {
                let server: Value = serde_json::from_str(server.get()).unwrap_or_default();
                if !goes(name, &server) {
                    return Fate::stays();
                }
                let store = server.pointer("/env/ANAMNESIS_HOME");
                removed.push(Server {
                    name: name.to_owned(),
                    store: store.and_then(Value::as_str).map(ToOwned::to_owned),
                });
                Fate::Goes
            })
        })
    })?;
    Ok(Removal {
        text: text_left,
        removed,
    })
}

/// Returns a hook's command line, including the arguments in `args`.
fn command_of(hook: &RawValue) -> Option<String> {
    let hook: Value = serde_json::from_str(hook.get()).ok()?;
    let mut command = hook.get("command")?.as_str()?.to_owned();
    let arguments = hook.get("args").and_then(Value::as_array);
    for argument in arguments.into_iter().flatten().filter_map(Value::as_str) {
        command.push(' ');
        command.push_str(argument);
    }
    Some(command)
}

type Span = Range<usize>;

/// What happens to a value.
enum Fate {
    /// The value is removed as a whole.
    Goes,
    /// The value stays, without these spans.
    Stays(Vec<Span>),
}

impl Fate {
    fn stays() -> Self {
        Self::Stays(Vec::new())
    }

    fn goes(&self) -> bool {
        matches!(self, Self::Goes)
    }
}

/// Returns the text of a JSON object without what `fate` removes.
fn without(text: &str, fate: impl FnOnce(&RawValue) -> Fate) -> serde_json::Result<String> {
    let root: &RawValue = serde_json::from_str(text)?;
    let _: Members<'_> = serde_json::from_str(root.get())?;
    let cuts = match fate(root) {
        Fate::Stays(cuts) => cuts,
        // The root's braces stay.
        Fate::Goes => {
            let braces = span(text, root);
            iter::once(braces.start + 1..braces.end - 1).collect()
        }
    };
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        left.push_str(text.get(at..cut.start).unwrap_or_default());
        at = cut.end;
    }
    left.push_str(text.get(at..).unwrap_or_default());
    Ok(left)
}

/// Decides about the members of an object with this name.
fn member(
    text: &str,
    object: &RawValue,
    name: &str,
    mut decide: impl FnMut(&RawValue) -> Fate,
) -> Fate {
    members(text, object, |key, value| {
        if key == name {
            decide(value)
        } else {
            Fate::stays()
        }
    })
}

/// Decides about each member of an object; other values stay.
fn members(text: &str, object: &RawValue, mut decide: impl FnMut(&str, &RawValue) -> Fate) -> Fate {
    let Ok(Members(members)) = serde_json::from_str(object.get()) else {
        return Fate::stays();
    };
    among(members.into_iter().map(|(key, value)| {
        let name: String = serde_json::from_str(key.get()).unwrap_or_default();
        (
            span(text, key).start..span(text, value).end,
            decide(&name, value),
        )
    }))
}

/// Decides about each element of an array; other values stay.
fn elements(text: &str, array: &RawValue, mut decide: impl FnMut(&RawValue) -> Fate) -> Fate {
    let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(array.get()) else {
        return Fate::stays();
    };
    among(
        elements
            .into_iter()
            .map(|value| (span(text, value), decide(value))),
    )
}

/// Combines the fates of a value's parts. The value is removed if it becomes empty, but stays if it
/// was empty before.
fn among(parts: impl Iterator<Item = (Span, Fate)>) -> Fate {
    let mut cuts = Vec::new();
    let mut is_empty = true;
    // The end of the previous part. A removed part takes the comma before it. If nothing before it
    // stays, it takes the comma after it.
    let mut before: Option<usize> = None;
    let mut first = None;
    for (place, fate) in parts {
        let start = *first.get_or_insert(place.start);
        match fate {
            Fate::Stays(inner) => {
                if is_empty && before.is_some() {
                    cuts.push(start..place.start);
                }
                cuts.extend(inner);
                is_empty = false;
            }
            Fate::Goes if !is_empty => cuts.push(before.unwrap_or(place.start)..place.end),
            Fate::Goes => {}
        }
        before = Some(place.end);
    }
    if is_empty && before.is_some() {
        Fate::Goes
    } else {
        Fate::Stays(cuts)
    }
}

/// Returns the position of a part within the text.
fn span(text: &str, part: &RawValue) -> Span {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}

/// The members of an object in text order, including duplicate keys.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn hooks(text: &str) -> Removal<Hook> {
        of_hooks(text, |command| command.starts_with("ours")).unwrap()
    }

    #[test]
    fn only_the_entries_go() {
        // HOOK-07
        for (before, after) in [
            ("{}", "{}"),
            (
                " {\"a\": 1.0e2 , \"hooks\": {}}\r\n",
                " {\"a\": 1.0e2 , \"hooks\": {}}\r\n",
            ),
            // Removing the only hook also removes its empty containers.
            (
                r#"{"a": 1, "hooks": {"Stop": [{"hooks": [{"command": "ours"}]}]}, "b": 2}"#,
                r#"{"a": 1, "b": 2}"#,
            ),
            (
                r#"{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "ours"}]}]}}"#,
                "{}",
            ),
            // The first, the middle and the last entry of a list.
            (
                r#"{"hooks": {"Stop": [{"hooks": [
                    {"command": "ours 1"},
                    {"command": "theirs", "timeout": 5},
                    {"command": "ours 2"} , {"command": "also"},
                    {"command": "ours", "args": ["3"]}
                ]}]}}"#,
                r#"{"hooks": {"Stop": [{"hooks": [
                    {"command": "theirs", "timeout": 5} , {"command": "also"}
                ]}]}}"#,
            ),
            // Groups and events that become empty are removed; those that were empty stay.
            (
                r#"{"hooks":{"A":[{"hooks":[{"command":"ours"}]},{"hooks":[]}],"B":[{"matcher":"m","hooks":[{"command":"ours"}]}],"C":[]}}"#,
                r#"{"hooks":{"A":[{"hooks":[]}],"C":[]}}"#,
            ),
            // An escaped key is the same key. Both members of a duplicate key are checked.
            (
                r#"{"hook\u0073": {"A": [{"hooks": [{"command": "\u006furs"}]}], "A": [{"hooks": [{"command": "ours"}, 5]}]}}"#,
                r#"{"hook\u0073": {"A": [{"hooks": [5]}]}}"#,
            ),
        ] {
            assert_eq!(hooks(before).text, after);
        }
        // Values that are not hooks stay, whatever they contain.
        for text in [
            r#"{"hooks": "ours"}"#,
            r#"{"hooks": ["ours"]}"#,
            r#"{"hooks": {"Stop": {"command": "ours"}}}"#,
            r#"{"hooks": {"Stop": [{"command": "ours"}]}}"#,
            r#"{"hooks": {"Stop": [{"hooks": [["ours"], {"command": 5}, {"command": null}]}]}}"#,
            r#"{"other": {"Stop": [{"hooks": [{"command": "ours"}]}]}}"#,
        ] {
            let found = hooks(text);
            assert_eq!((found.text.as_str(), found.removed.len()), (text, 0));
        }
    }

    #[test]
    fn what_went_is_named_in_order() {
        let found = hooks(
            r#"{"hooks": {"B": [{"hooks": [{"command": "ours b"}]}], "A": [{"hooks": [{"command": "ours", "args": ["a", 1]}]}]}}"#,
        );
        let names: Vec<(&str, &str)> = found
            .removed
            .iter()
            .map(|hook| (hook.event.as_str(), hook.command.as_str()))
            .collect();
        assert_eq!(names, [("B", "ours b"), ("A", "ours a")]);
    }

    #[test]
    fn a_server_goes_by_name_and_configuration() {
        let text = r#"{"n": 1, "mcpServers": {"x": {"command": "x"}, "ours": {"command": "a",  "args": []}}}"#;
        let found = of_servers(text, |name, value| {
            name == "ours" && value["command"] == "a"
        })
        .unwrap();
        assert_eq!(
            found.text,
            r#"{"n": 1, "mcpServers": {"x": {"command": "x"}}}"#
        );
        let name = "ours".to_owned();
        let store = None;
        assert_eq!(found.removed, [Server { name, store }]);
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in [
            "",
            "[]",
            "5",
            "{",
            "{} {}",
            "\u{feff}{}",
            "{\"a\": 1,}",
            "// x\n{}",
        ] {
            assert!(of_hooks(text, |_| true).is_err(), "{text}");
            assert!(of_servers(text, |_, _| true).is_err(), "{text}");
        }
    }

    /// Reference implementation: removes the entries from the parsed value.
    fn pruned(mut root: Value) -> Value {
        let Some(events) = root.get_mut("hooks").and_then(Value::as_object_mut) else {
            return root;
        };
        events.retain(|_, groups| {
            let groups = groups.as_array_mut().unwrap();
            let was_empty = groups.is_empty();
            groups.retain_mut(|group| {
                let hooks = group["hooks"].as_array_mut().unwrap();
                let was_empty = hooks.is_empty();
                hooks.retain(|hook| !hook["command"].as_str().unwrap().starts_with("ours"));
                was_empty || !hooks.is_empty()
            });
            was_empty || !groups.is_empty()
        });
        root
    }

    /// Serialises a value with the given whitespace between its parts.
    fn written(value: &Value, blanks: &mut impl Iterator<Item = &'static str>) -> String {
        let mut text = blanks.next().unwrap_or_default().to_owned();
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| written(item, blanks)).collect();
                text.push_str(&format!("[{}]", items.join(",")));
            }
            Value::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| {
                        let key = written(&key.as_str().into(), blanks);
                        format!("{key}:{}", written(value, blanks))
                    })
                    .collect();
                text.push_str(&format!("{{{}}}", members.join(",")));
            }
            value => text.push_str(&value.to_string()),
        }
        text.push_str(blanks.next().unwrap_or_default());
        text
    }

    fn document() -> impl Strategy<Value = Value> {
        let hook = prop_oneof![Just("ours"), Just("ours x"), Just("theirs"), Just("{\"],")]
            .prop_map(|command| json!({"type": "command", "command": command}));
        let group = (
            proptest::option::of("[a-z|\"]{0,3}"),
            proptest::collection::vec(hook, 0..4),
        )
            .prop_map(|(matcher, hooks)| match matcher {
                Some(matcher) => json!({"matcher": matcher, "hooks": hooks}),
                None => json!({"hooks": hooks}),
            });
        let events =
            proptest::collection::btree_map("[A-C]", proptest::collection::vec(group, 0..3), 0..4);
        (events, any::<bool>(), any::<bool>()).prop_map(|(events, first, last)| {
            let mut root = json!({});
            if first {
                root["a"] = json!([1, {"hooks": "x"}]);
            }
            root["hooks"] = json!(events);
            if last {
                root["z"] = json!(null);
            }
            root
        })
    }

    /// Generates settings with arbitrary whitespace.
    pub(in crate::python_version) fn text() -> impl Strategy<Value = String> {
        let blank = prop_oneof![Just(""), Just(" "), Just("\n  "), Just("\t"), Just("\r\n")];
        (document(), proptest::collection::vec(blank, 1..40))
            .prop_map(|(root, blanks)| written(&root, &mut blanks.into_iter().cycle()))
    }

    proptest! {
        #[test]
        fn the_text_says_what_is_left(text in text()) {
            let root: Value = serde_json::from_str(&text).unwrap();
            let found = hooks(&text);
            let left: Value = serde_json::from_str(&found.text).unwrap();
            let mut expected = pruned(root.clone());
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            if is_empty(&expected["hooks"]) && !is_empty(&root["hooks"]) {
                expected.as_object_mut().unwrap().shift_remove("hooks");
            }
            prop_assert_eq!(left.to_string(), expected.to_string());
            // The result is a subsequence of the input, and equals it if nothing is removed.
            let mut rest = text.chars();
            prop_assert!(found.text.chars().all(|sign| rest.any(|other| other == sign)));
            prop_assert_eq!(found.text == text, found.removed.is_empty());
            let again = hooks(&found.text);
            prop_assert_eq!((again.text, again.removed.len()), (found.text, 0));
        }
    }
}
