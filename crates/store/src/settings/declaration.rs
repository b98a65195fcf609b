//! The declaration of every setting: field, type, default, accepted values, description and variable.
//!
//! The structs, their defaults, [`SETTINGS`], the reader of `config.json`, `anamnesis config` and the
//! table in `docs/reference/settings.md` follow from it.

use anamnesis_note::agent_policy::Review;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Kind, Setting,
    config::{Headless, Paused, SKIPPED_TOOLS, Secret, Semantic, SessionLine},
};

/// Declares the settings in the order in which they are shown. A line in braces of its own declares
/// fields of [`Config`]; a named group is an object in `config.json` and a struct here.
macro_rules! settings {
    ($(
        {
            $($field:ident: $type:ty = $default:expr, $kind:expr,
                $meaning:literal $(, $variable:literal)?;)+
        }
        $(
            $(#[$attribute:meta])*
            $group:ident: $Group:ident {
                $($member:ident: $member_type:ty = $member_default:expr, $member_kind:expr,
                    $member_meaning:literal $(, $member_variable:literal)?;)+
            }
        )*
    )+) => {
        $($(
            $(#[$attribute])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $Group {
                $(#[doc = $member_meaning] pub $member: $member_type,)+
            }

            impl Default for $Group {
                fn default() -> Self {
                    Self { $($member: $member_default,)+ }
                }
            }
        )*)+

        /// The settings in `config.json`.
        #[derive(Debug, Clone)]
        pub struct Config {
            $(
                $(#[doc = $meaning] pub $field: $type,)+
                $($(#[$attribute])* pub $group: $Group,)*
            )+
            /// Whether the file or a setting that restricts recording is invalid. Then nothing is recorded or
            /// injected anywhere.
            pub is_unclear: bool,
            /// Why the file or a part of it is invalid.
            pub problem: Option<String>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $(
                        $($field: $default,)+
                        $($group: $Group::default(),)*
                    )+
                    is_unclear: false,
                    problem: None,
                }
            }
        }

        /// All settings, in the order in which they are shown.
        pub const SETTINGS: &[Setting] = &[
            $(
                $(settings!(@row stringify!($field), [$field], $kind, $meaning $(, $variable)?),)+
                $($(settings!(
                    @row concat!(stringify!($group), ".", stringify!($member)), [$group.$member],
                    $member_kind, $member_meaning $(, $member_variable)?
                ),)+)*
            )+
        ];
    };
    (@row $name:expr, [$($path:ident).+], $kind:expr, $meaning:literal $(, $variable:literal)?) => {
        Setting {
            name: $name,
            kind: $kind,
            variable: settings!(@variable $($variable)?),
            meaning: $meaning,
            value: |config| to_value(&config.$($path).+),
            set: |config, value| set(&mut config.$($path).+, value),
        }
    };
    (@variable) => { None };
    (@variable $variable:literal) => { Some($variable) };
}

settings! {
    {
        machine_id: Option<String> = None, Kind::MachineName, "The name of this machine in notes; by default the host name.", "ANAMNESIS_MACHINE_ID";
        remote: Option<String> = None, Kind::Address, "The git repository that your machines sync with.", "ANAMNESIS_GIT_REMOTE";
    }
    /// Settings of sync.
    sync: Sync {
        auto: bool = true, Kind::Switch, "Whether notes are synced in the background, when sessions start and end.";
        allow_http: bool = false, Kind::Switch, "Whether a remote may be reached over unencrypted HTTP; localhost always may.";
    }
    {
        import_native: bool = true, Kind::Switch, "Whether Claude Code's own memory is copied into notes.", "ANAMNESIS_IMPORT_NATIVE";
    }
    /// Settings of learning from use.
    learn: Learn {
        suggest: bool = true, Kind::Switch, "Whether Claude is told, once a session, that a sentence of yours is a standing instruction and can be kept.";
    }
    /// Settings of automatic injection, besides the working set.
    recall: Recall {
        prompt: bool = true, Kind::Switch, "Whether matching notes are injected with your prompts and the tasks of subagents.";
        tool: bool = true, Kind::Switch, "Whether warnings are injected before a tool call, and an earlier fix when one fails.";
        wide: bool = false, Kind::Switch, "Whether weaker matches are injected too; more of them will be irrelevant.";
        notes: u32 = 3, Kind::Number(20), "The maximum number of notes per prompt, besides one linked note.";
        tokens: u32 = 600, Kind::Number(4_000), "The maximum number of tokens of the notes per prompt.";
        pointers: bool = true, Kind::Switch, "Whether notes that may match come as one line with your prompts and at the files that they name.";
        semantic: Semantic = Semantic::Search, Kind::Choice(&["off", "search", "prompt"]), "Where an added embedding model compares meanings: nowhere, in searches, or with your prompts as well.";
        history: bool = true, Kind::Switch, "Whether this machine indexes the commits of a project's repository, for searches and for prompts that ask why, when or who.";
    }
    /// The model for summaries and reflections, with its limits.
    reflection: Reflection {
        provider: String = "heuristic".to_owned(), Kind::Choice(&["heuristic", "openai", "deepseek", "local", "claude"]), "The provider of the model for summaries; `heuristic` uses none, `claude` runs Claude Code.", "ANAMNESIS_REFLECTION_PROVIDER";
        model: Option<String> = None, Kind::Text, "The model's name. Provider, model and base URL together enable it; for `claude`, the provider does.", "ANAMNESIS_REFLECTION_MODEL";
        base_url: Option<String> = None, Kind::Server, "The URL of the model's API, such as `https://api.openai.com/v1`; `claude` needs none.", "ANAMNESIS_REFLECTION_BASE_URL";
        api_key: Option<Secret> = None, Kind::Secret, "The API key; only its first three and last two characters are shown.", "ANAMNESIS_REFLECTION_API_KEY";
        timeout: u32 = 30, Kind::Number(u32::MAX), "The timeout of a request, in seconds.", "ANAMNESIS_REFLECTION_TIMEOUT";
        max_tokens: u32 = 120_000, Kind::Number(u32::MAX), "The maximum number of tokens per request; the middle of a longer text is left out.", "ANAMNESIS_REFLECTION_MAX_TOKENS";
        tokens_per_day: u32 = 400_000, Kind::Number(u32::MAX), "The maximum number of background tokens per day.";
        auto: bool = false, Kind::Switch, "Whether a project with enough pending sessions is reflected on automatically, once a day.", "ANAMNESIS_REFLECT_AUTO";
    }
    {
        review: Review = Review::Off, Kind::Choice(&["off", "proposals"]), "Whether notes by Claude or a model are used at once (off) or need your approval (proposals).";
        session_line: SessionLine = SessionLine::On, Kind::Choice(&["on", "problems", "off"]), "When a line on your screen says what was injected: at the start of a session and with prompts (on), only about problems at a start, or never.";
        paused: Paused = Paused::default(), Kind::Paused, "Where nothing is recorded or injected; `off` and `on` change it.";
        exclude: Vec<String> = Vec::new(), Kind::Folders, "Folders in which nothing is recorded or injected.";
    }
    /// Settings of what is recorded.
    recording: Recording {
        headless: Headless = Headless::On, Kind::Choice(&["on", "summary", "off"]), "What is recorded of sessions that `claude -p` runs: everything, prompts and answers only, or nothing; with `off`, nothing is injected, either.";
        only: Vec<String> = Vec::new(), Kind::Folders, "If set: the only folders in which something is recorded or injected.";
    }
    /// Settings of redaction.
    redact: Redact {
        patterns: Vec<String> = Vec::new(), Kind::Patterns, "What else is masked like a credential: words with `*` and `?`, such as `*.corp.example`, or phrases.";
    }
    {
        skip_tools: Vec<String> = SKIPPED_TOOLS.map(str::to_owned).to_vec(), Kind::Texts, "Tools whose use is not recorded.";
        trusted_variables: Vec<String> = Vec::new(), Kind::Texts, "Environment variables that sessions ignore unless they are listed here; always read from `~/.anamnesis/config.json`.";
    }
    /// How long records are kept on this machine. 0 keeps them for ever.
    retention: Retention {
        records_days: u32 = 30, Kind::Number(u32::MAX), "Days for which prompts, tool events and answers are kept; 0 is for ever.";
        trash_days: u32 = 30, Kind::Number(u32::MAX), "Days for which texts of forgotten notes are kept.";
        ceiling_mib: u32 = 200, Kind::Number(u32::MAX), "The maximum size of this machine's records, in MiB; 0 is no limit.";
    }
}

fn to_value(field: &impl Serialize) -> Value {
    serde_json::to_value(field).unwrap_or_default()
}

/// Sets a field to a value that its [`Kind`] accepted.
fn set<T: DeserializeOwned>(field: &mut T, value: Value) {
    if let Ok(value) = serde_json::from_value(value) {
        *field = value;
    }
}
