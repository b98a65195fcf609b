//! The enums of the front matter: each value is a word.

use std::str::FromStr as _;

/// Defines an enum whose values are stored as words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stored word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::note::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Self::Err { word: text.to_owned(), known: vec![$($word,)+] }),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// A word that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}, got \"{word}\"", known.join(", "))]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The known words.
    pub known: Vec<&'static str>,
}

words! {
    /// The type of a note: a method, a fact or an event.
    NoteType {
        /// How to do something. Durable.
        Procedural = "procedural",
        /// A fact. Durable.
        Semantic = "semantic",
        /// The work of a session.
        Episodic = "episodic",
    }
}

words! {
    /// Whether a note is synchronized.
    #[derive(Default)]
    Scope {
        /// In `memory/`, which is synchronized.
        #[default]
        Portable = "portable",
        /// In `local/`, which is not.
        MachineLocal = "machine-local",
    }
}

words! {
    /// The origin of a note. A file with another word is unreadable, as for the Python version's
    /// index.
    Source {
        /// A person, or an agent on request (see [`Note::is_by_agent`](super::Note::is_by_agent)).
        Human = "human",
        /// The end of a session.
        SessionEnd = "session-end",
        /// Distilled from session notes.
        Reflection = "reflection",
        /// Imported from another memory.
        Import = "import",
        /// Written by the Python version's merge; we write `reflection` instead.
        Merge = "merge",
    }
}

impl Source {
    /// Returns the word for the author that people and models are shown.
    pub const fn author(self, is_by_agent: bool) -> &'static str {
        match self {
            Self::Human if is_by_agent => "agent",
            Self::Human => "you",
            Self::SessionEnd => "session",
            Self::Reflection | Self::Merge => "reflection",
            Self::Import => "import",
        }
    }
}

words! {
    /// The kind of a note, finer than its type; each kind belongs to one type.
    Kind {
        /// A fact.
        Fact = "fact",
        /// A preference of the person.
        Preference = "preference",
        /// A conclusion from several facts.
        Insight = "insight",
        /// How to do something; shown as `how-to`.
        Skill = "skill",
        /// Something to avoid; shown as `warning`.
        Antipattern = "antipattern",
        /// The work of a session; shown as `session`.
        Experience = "experience",
        /// Something to do.
        Task = "task",
    }
}

impl Kind {
    /// Returns the default kind of a type.
    pub const fn of_type(note_type: NoteType) -> Self {
        match note_type {
            NoteType::Procedural => Self::Skill,
            NoteType::Semantic => Self::Fact,
            NoteType::Episodic => Self::Experience,
        }
    }

    /// Returns the type of the kind.
    pub const fn note_type(self) -> NoteType {
        match self {
            Self::Skill | Self::Antipattern => NoteType::Procedural,
            Self::Fact | Self::Preference | Self::Insight | Self::Task => NoteType::Semantic,
            Self::Experience => NoteType::Episodic,
        }
    }

    /// Returns the word that people are shown.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Skill => "how-to",
            Self::Antipattern => "warning",
            Self::Experience => "session",
            other => other.as_str(),
        }
    }

    /// Returns the tags without the kind's own, which has the stored word and is for other tools.
    pub fn other_tags(self, tags: &[String]) -> Vec<String> {
        let other = tags.iter().filter(|tag| *tag != self.as_str());
        other.cloned().collect()
    }

    /// Parses a kind from the shown or the stored word.
    pub fn from_word(word: &str) -> Result<Self, UnknownWord> {
        let shown = Self::ALL.iter().find(|kind| kind.shown() == word);
        let kind = shown.copied().map_or_else(|| word.parse(), Ok);
        kind.map_err(|error: UnknownWord| UnknownWord {
            known: Self::ALL.iter().map(|kind| kind.shown()).collect(),
            ..error
        })
    }
}

words! {
    /// Whether a note is in use.
    State {
        /// In use; not written to the file.
        Active = "active",
        /// Pending approval by a person; unused until then.
        Proposed = "proposed",
        /// Never injected automatically.
        Muted = "muted",
        /// A tombstone.
        Forgotten = "forgotten",
    }
}

impl State {
    /// Returns whether the note is in use, muted or not.
    pub const fn is_in_use(self) -> bool {
        matches!(self, Self::Active | Self::Muted)
    }
}

words! {
    /// How severe the problem is that a warning is about.
    Severity {
        /// An inconvenience.
        Low = "low",
        /// Costs time.
        Medium = "medium",
        /// Costs work.
        High = "high",
        /// Costs data or safety.
        Critical = "critical",
    }
}

words! {
    /// Whether a note helped.
    Rating {
        /// It helped.
        Good = "good",
        /// It was wrong or in the way.
        Bad = "bad",
    }
}

words! {
    /// Whether a warning may block a tool call.
    #[derive(Default)]
    Enforce {
        /// Never; not written to the file.
        #[default]
        Never = "never",
        /// Once per session, if a person wrote it and it is severe enough.
        Once = "once",
    }
}

words! {
    /// The status of a task. Any transition is allowed.
    Status {
        /// Not begun.
        Pending = "pending",
        /// In progress.
        Active = "active",
        /// Finished.
        Done = "done",
        /// Put away, finished or not.
        Archived = "archived",
    }
}

impl Status {
    /// Returns whether there is still something to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }
}

/// Gives an enum its form in JSON: the words that people are shown.
macro_rules! in_json {
    ($($name:ident, $all:expr, $shown:path, $parse:path;)+) => {$(
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($shown(*self))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $parse(&String::deserialize(deserializer)?).map_err(::serde::de::Error::custom)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let words: Vec<&str> = $all.iter().map(|value| $shown(*value)).collect();
                ::schemars::json_schema!({ "type": "string", "enum": words })
            }
        }
    )+};
}
pub(crate) use in_json;

in_json! {
    NoteType, Self::ALL, Self::as_str, Self::from_str;
    Scope, Self::ALL, Self::as_str, Self::from_str;
    Kind, Self::ALL, Self::shown, Self::from_word;
    State, Self::ALL, Self::as_str, Self::from_str;
    Severity, Self::ALL, Self::as_str, Self::from_str;
    Rating, Self::ALL, Self::as_str, Self::from_str;
    Status, Self::ALL, Self::as_str, Self::from_str;
}
