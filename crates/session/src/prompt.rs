//! A prompt, made safe once for recall and for the record.

use std::{borrow::Cow, fmt, mem, ops::Range};

use serde::{Deserialize, Serialize};

use crate::event::{MAX_TEXT, Privacy, PromptKind};
use anamnesis_text::{
    hash::{seal, text_hash},
    private_tokens::{Key, PrivateTokens},
    prompt_text::{self, typed_part},
    redact::redact,
    sanitize::{Ends, Sanitized, head, uncut},
};

/// A prompt as the client sent it.
///
/// Its text can only be read by [`SafePrompt::new`], so it can be neither stored nor searched for.
/// The arguments of our own slash commands are the exception: they become notes.
///
/// A prompt counts as typed by a person until it is marked.
#[derive(Clone, PartialEq, Eq)]
pub struct RawPrompt {
    text: String,
    is_untyped: bool,
    is_script: bool,
}

impl RawPrompt {
    /// Wraps a prompt.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_untyped: false,
            is_script: false,
        }
    }

    /// Marks it as sent through `claude -p` or the SDK. It gives no standing instruction then.
    pub fn mark_script(&mut self) {
        self.is_script = true;
    }

    /// Marks it as sent by a program. It is no command then, and nothing of it is a person's words.
    pub fn mark_untyped(&mut self) {
        self.is_untyped = true;
    }

    /// Returns whether a person typed it, as far as it is known.
    pub fn is_typed(&self) -> bool {
        !self.is_untyped
    }

    /// Returns what a person typed after one of our slash commands, not sanitised. The client
    /// passes it to the hook before any model sees it.
    pub fn command(&self, name: &str) -> Option<&str> {
        self.arguments_of(name).filter(|_| self.is_typed())
    }

    /// Returns whether it is one of our slash commands, whoever sent it.
    pub fn names(&self, name: &str) -> bool {
        self.arguments_of(name).is_some()
    }

    fn arguments_of(&self, name: &str) -> Option<&str> {
        let typed = self.text.trim_start().strip_prefix('/')?;
        let typed = typed.strip_prefix("anamnesis:").unwrap_or(typed);
        let rest = typed.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
    }

    /// Returns whether it is the same as a prompt that a program may send. That one may be sanitised
    /// or only a hash, and the client may have changed its spaces.
    pub fn repeats(&self, other: &str) -> bool {
        let hash = other.strip_prefix(HASHED);
        match hash.and_then(|hash| hash.split_once(':')) {
            Some((key, _)) => hashed(&self.text, key) == other,
            None => compared(&self.text) == compared(other),
        }
    }
}

/// The beginning of the hash of a prompt.
const HASHED: &str = "[private] ";

/// Returns a keyed hash by which a prompt is recognised without its text.
pub(crate) fn hash_of(prompt: &str, key: Key) -> String {
    hashed(
        prompt,
        &format!("{:032x}", u128::from_be_bytes(key.to_bytes())),
    )
}

fn hashed(prompt: &str, key: &str) -> String {
    let hash = text_hash(&format!("{key} {}", compared(prompt)));
    format!("{HASHED}{key}:{hash}")
}

/// Returns the part of a prompt that is compared.
fn compared(prompt: &str) -> String {
    let (text, _) = uncut(head(prompt, MAX_COMPARED));
    let words: Vec<&str> = text.split_whitespace().collect();
    redact(&words.join(" ")).text.into_owned()
}

/// The longest text that is held, in bytes.
const MAX_HELD: usize = 256 << 10;

/// How many bytes of two prompts are compared.
const MAX_COMPARED: usize = 4 << 10;

impl fmt::Debug for RawPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawPrompt")
    }
}

/// A prompt that may be stored and searched for.
///
/// In this order: private regions and invisible characters are removed, it is classified, private
/// tokens and credentials are masked, and the middle of a long text is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SafePrompt {
    kind: PromptKind,
    privacy: Privacy,
    text: Option<String>,
    /// The text whose private tokens are not masked yet, see [`SafePrompt::held`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmasked: Vec<u8>,
    many_tags: bool,
    /// The range of the mark that replaces the text's middle.
    #[serde(skip)]
    mark: Range<usize>,
}

impl SafePrompt {
    /// Makes a prompt safe.
    ///
    /// `private_tokens` are those of the session. Without them the prompt may repeat a private
    /// token, so its text is not kept.
    pub fn new(raw: &RawPrompt, private_tokens: Option<&PrivateTokens>) -> Sanitized<Self> {
        let (text, removed) = uncut(&raw.text);
        let is_private = text.is_empty() && !raw.text.trim().is_empty();
        let (kind, typed) = match typed_part(&text) {
            _ if raw.is_untyped => (PromptKind::Notification, ""),
            _ if is_private => (PromptKind::Person, ""),
            (prompt_text::PromptKind::Person | prompt_text::PromptKind::Private, typed) => {
                let kind = if raw.is_script {
                    PromptKind::Script
                } else {
                    PromptKind::Person
                };
                (kind, typed)
            }
            (prompt_text::PromptKind::Command, typed) => (PromptKind::Command, typed),
            (prompt_text::PromptKind::Notification | prompt_text::PromptKind::Local, _) => {
                (PromptKind::Notification, "")
            }
            (prompt_text::PromptKind::Empty, _) => (PromptKind::Media, ""),
        };
        let privacy = match (is_private, removed.private) {
            (true, _) => Privacy::Full,
            (false, true) => Privacy::Part,
            (false, false) => Privacy::None,
        };
        let ends = private_tokens
            .filter(|_| !typed.is_empty())
            .map(|tokens| Ends::masked(typed, tokens, MAX_TEXT));
        let (ends, masked) = ends.unzip();
        let (text, mark) = ends.map(Ends::with_mark).unzip();
        let prompt = Self {
            kind,
            privacy,
            text,
            unmasked: Vec::new(),
            many_tags: removed.is_suspicious(),
            mark: mark.filter(|mark| !mark.is_empty()).unwrap_or_default(),
        };
        Sanitized::new(prompt, removed, masked.unwrap_or_default())
    }

    /// Makes a prompt safe while the session's private tokens cannot be read. Its text can only be used
    /// after [`SafePrompt::settle`], and is [sealed](SafePrompt::seal) until then.
    pub fn held(raw: &RawPrompt) -> Sanitized<Self> {
        let mut held = Self::new(raw, None);
        let (text, _) = uncut(&raw.text);
        let typed = typed_part(&text).1;
        let kind = held.value.kind;
        let is_kept = !matches!(kind, PromptKind::Notification | PromptKind::Media)
            && held.value.privacy != Privacy::Full;
        if is_kept && typed.len() <= MAX_HELD {
            held.value.unmasked = redact(typed).text.into_owned().into_bytes();
        }
        held
    }

    /// Returns whether its private tokens are not masked yet.
    pub fn is_held(&self) -> bool {
        !self.unmasked.is_empty()
    }

    /// Masks the private tokens of a prompt that was [held](SafePrompt::held); without tokens its text
    /// is dropped.
    pub fn settle(&mut self, private_tokens: Option<&PrivateTokens>) {
        let unmasked = mem::take(&mut self.unmasked);
        if let Some(tokens) = private_tokens
            && let Ok(text) = String::from_utf8(unmasked)
        {
            self.text = Some(Ends::masked(&text, tokens, MAX_TEXT).0.with_mark().0);
        }
    }

    /// Makes the text that is not masked yet unreadable without the key, or readable again.
    pub fn seal(&mut self, key: &[u8]) {
        seal(&mut self.unmasked, key);
    }

    /// Returns who sent it, and how.
    pub fn kind(&self) -> PromptKind {
        self.kind
    }

    /// Returns how much of it is private.
    pub fn privacy(&self) -> Privacy {
        self.privacy
    }

    /// Returns the text to store, unless the prompt is private or has no typed text.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns whether it has more private regions than a person would write.
    pub fn many_tags(&self) -> bool {
        self.many_tags
    }

    /// Returns the stored text to search with, if it is a question or an order: without the mark, which would
    /// add words to the search.
    pub fn question(&self) -> Option<Cow<'_, str>> {
        let text = self
            .text()
            .filter(|_| self.kind.is_request())
            .filter(|_| self.privacy != Privacy::Full)?;
        if self.mark.is_empty() {
            return Some(Cow::Borrowed(text));
        }
        let (head, tail) = (text.get(..self.mark.start)?, text.get(self.mark.end..)?);
        Some(Cow::Owned(format!("{head}\n{tail}")))
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_text::private_tokens::{Key, hashes};

    use super::*;

    fn safe(raw: &str) -> SafePrompt {
        SafePrompt::new(&RawPrompt::new(raw), Some(&PrivateTokens::default())).value
    }

    #[test]
    fn a_prompt_is_held_until_the_private_tokens_are_known() {
        // CAP-03
        let key = Key::new([7; 16]);
        let secret = "correct-horse-battery-9";
        let tokens: PrivateTokens = hashes(&key, &[secret.to_owned()])
            .into_iter()
            .map(|hash| (key, hash))
            .collect();
        let raw = RawPrompt::new(format!("Log in with {secret} <private>x</private> there"));
        let mut held = SafePrompt::held(&raw).value;
        assert!(held.is_held() && held.text().is_none() && held.question().is_none());
        held.seal(b"key");
        let stored = serde_json::to_string(&held).unwrap();
        let bytes: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
        assert!(!stored.contains(secret) && !stored.contains(&bytes.join(",")));
        let mut held: SafePrompt = serde_json::from_str(&stored).unwrap();
        held.seal(b"key");
        held.settle(Some(&tokens));
        assert_eq!(held, SafePrompt::new(&raw, Some(&tokens)).value);
        assert_eq!(held.text(), Some("Log in with [private]  there"));
        for raw in [
            "<private>all of it</private>",
            "",
            "<task-notification>x</task-notification>",
        ] {
            assert!(
                !SafePrompt::held(&RawPrompt::new(raw)).value.is_held(),
                "{raw}"
            );
        }
    }

    #[test]
    fn prompts_are_classified() {
        for (prompt, kind, privacy, text) in [
            (
                "Add limits",
                PromptKind::Person,
                Privacy::None,
                Some("Add limits"),
            ),
            (
                "Add <private>x</private> limits",
                PromptKind::Person,
                Privacy::Part,
                Some("Add  limits"),
            ),
            (
                "<private>x</private>",
                PromptKind::Person,
                Privacy::Full,
                None,
            ),
            (" <private>x", PromptKind::Person, Privacy::Full, None),
            ("\u{200b}", PromptKind::Person, Privacy::Full, None),
            (
                "<claude-mem-context>x</claude-mem-context>",
                PromptKind::Person,
                Privacy::Full,
                None,
            ),
            ("", PromptKind::Media, Privacy::None, None),
            ("  ", PromptKind::Media, Privacy::None, None),
            (
                "/review the cart",
                PromptKind::Command,
                Privacy::None,
                Some("/review the cart"),
            ),
            (
                "<task-notification>\n<result>done</result>\n</task-notification>",
                PromptKind::Notification,
                Privacy::None,
                None,
            ),
        ] {
            let safe = safe(prompt);
            let found = (safe.kind(), safe.privacy(), safe.text());
            assert_eq!(found, (kind, privacy, text), "{prompt}");
            let is_question = kind == PromptKind::Person && text.is_some();
            assert_eq!(safe.question().is_some(), is_question, "{prompt}");
            assert!(!safe.many_tags());
        }
        assert!(safe(&"a<private>b</private>".repeat(101)).many_tags());
    }

    #[test]
    fn the_question_of_a_long_prompt_has_no_words_of_ours() {
        let safe = safe(&format!("Why {} not?", "x ".repeat(MAX_TEXT)));
        assert!(safe.text().unwrap().contains(" characters left out …]"));
        let question = safe.question().unwrap();
        assert!(!question.contains("left out"), "{question}");
        assert!(question.starts_with("Why x ") && question.ends_with(" x  not?"));
    }

    #[test]
    fn a_prompt_is_stored_without_text_if_the_private_tokens_are_unknown() {
        // CAP-03
        let secret = "heron-4821-lagoon";
        let raw = RawPrompt::new(format!("use {secret}"));
        let withheld = SafePrompt::new(&raw, None).value;
        assert_eq!((withheld.text(), withheld.question()), (None, None));
        assert_eq!(withheld.privacy(), Privacy::None);
        let key = Key::new([7; 16]);
        let known: PrivateTokens = hashes(&key, &[secret.to_owned()])
            .into_iter()
            .map(|hash| (key, hash))
            .collect();
        let masked = SafePrompt::new(&raw, Some(&known)).value;
        assert_eq!(masked.text(), Some("use [private]"));
        assert_eq!(masked.question().as_deref(), Some("use [private]"));
        assert!(!format!("{raw:?}").contains(secret));
    }

    #[test]
    fn a_prompt_in_the_spool_keeps_its_form() {
        let safe = safe("Add limits");
        let json = serde_json::to_string(&safe).unwrap();
        let expected =
            r#"{"kind":"person","privacy":"none","text":"Add limits","many_tags":false}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<SafePrompt>(&json).unwrap(), safe);
    }

    #[test]
    fn only_the_command_is_a_command() {
        for (prompt, text) in [
            (
                "/memory-remember The key is in vault",
                Some("The key is in vault"),
            ),
            ("  /anamnesis:memory-remember a\nb ", Some("a\nb")),
            ("/memory-remember", Some("")),
            ("/memory-remembering x", None),
            ("please /memory-remember x", None),
            ("/memory-search x", None),
        ] {
            assert_eq!(
                RawPrompt::new(prompt).command("memory-remember"),
                text,
                "{prompt}"
            );
        }
    }
}
