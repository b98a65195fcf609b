//! Classifies the names of variables, keys, flags and headers by how sensitive their values are.

use super::scan::{byte, is_same_word};

/// The kind of value that a name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClass {
    /// A password: chosen by people, so it may be any word.
    Password,
    /// A token, key or secret: usually generated.
    Secret,
    /// Probably the same, but also an everyday name (`STORAGE_KEY`, `pass`): a value of words is
    /// kept.
    Likely,
    /// Possibly a secret: only a random-looking value is masked.
    Weak,
    /// `auth` and similar: only the base64 of `user:password` is masked.
    Encoded,
}

/// The longest name, in bytes.
pub(super) const LONGEST: usize = 96;

/// The most words of a name that are read.
const WORDS: usize = 16;

/// Words after a sensitive word that do not change its meaning.
#[rustfmt::skip]
const NEUTRAL: &[&str] = &[
    "value", "default", "base", "data", "text", "plain", "plaintext", "raw", "string", "str",
    "literal", "env", "prod", "production", "dev", "development", "staging", "stage", "test",
    "testing", "live", "local", "sandbox", "old", "new", "current", "previous", "prev", "next",
    "primary", "secondary", "backup", "main", "b", "base64", "encoded", "id_token", "override",
    "input", "seed",
];

/// Words after a sensitive word that mean a property of the secret, not the secret.
#[rustfmt::skip]
const ABOUT: &[&str] = &[
    "count", "counts", "type", "types", "name", "names", "id", "ids", "ttl", "expiry",
    "expires", "expire", "expiration", "expired", "path", "paths", "file", "files", "filename",
    "dir", "folder", "url", "urls", "uri", "endpoint", "length", "len", "size", "limit",
    "limits", "max", "min", "policy", "policies", "hash", "hashes", "hashed", "hint", "field",
    "fields", "label", "placeholder", "prompt", "reset", "required", "enabled", "disabled",
    "provider", "providers", "manager", "store", "service", "ring", "index", "budget", "usage",
    "per", "format", "prefix", "suffix", "pattern", "regex", "validator", "validation",
    "strength", "rotation", "version", "kind", "status", "state", "error", "errors", "message",
    "messages", "help", "description", "title", "header", "headers", "param", "parameter",
    "arg", "option", "options", "callback", "fn", "func", "function", "handler", "helper",
    "helpers", "util", "utils", "factory", "generator", "class", "model", "schema", "config",
    "configuration", "settings", "source", "ref", "refs", "reference", "arn", "scope", "scopes",
    "audience", "issuer", "info", "list", "map", "set", "table", "column", "bytes", "bits",
    "color", "colors", "exchange", "stream", "counter", "window", "price", "cost", "rate", "at",
    "date", "time", "timestamp", "age", "timeout", "interval", "mode", "flag", "algorithm",
    "alg", "cipher", "digest", "check", "checker", "exists", "valid", "invalid", "is", "has",
    "key", "keys", "var", "variable", "attempts", "attempt", "change", "changed", "update",
    "updated", "forgot", "recovery", "vault", "group", "role", "user", "username", "owner",
    "account", "email", "host", "port", "domain", "region", "bucket", "backend", "engine",
    "driver", "plugin", "module", "package", "library", "crate", "test_id", "selector",
    "element", "button", "icon", "image", "page", "form", "dialog", "screen", "view",
    "component", "props", "style", "width", "height", "offset", "position", "start", "end",
    "begin", "span", "range", "kinds", "tree", "parser", "lexer", "scanner", "buffer", "reader",
    "writer", "encoder", "decoder", "serializer", "rules", "rule", "request", "response",
    "result", "event", "binding", "bindings", "mapping", "lookup", "cache", "pool", "queue",
    "auth", "grant", "flow", "method", "methods", "strategy", "verification", "verified",
    "confirmation", "confirmed", "visibility", "visible", "toggle", "show", "hide", "protected",
    "protection", "less", "free", "based", "only", "feature", "features", "supported",
    "support", "present", "missing", "empty", "optional", "mount", "volume", "volumes",
    "template", "environment", "location", "score", "scores", "probability", "probabilities",
    "logits", "embedding", "embeddings", "mask", "masks", "threshold", "quota", "remaining",
    "total", "estimate", "details", "metadata", "properties", "property", "information", "kid",
    "sha", "md", "pair", "salt", "iterations", "rounds", "fingerprint", "thumbprint", "checksum", "signature",
];

/// Words that make a following `key` sensitive.
#[rustfmt::skip]
const SECRET_KEYS: &[&str] = &[
    "api", "access", "secret", "private", "signing", "encryption", "encrypt", "decryption",
    "decrypt", "master", "auth", "authentication", "shared", "webhook", "hmac", "jwt", "consumer",
    "subscription", "deploy", "deployment", "rapidapi", "openai", "anthropic", "gemini", "stripe",
    "sendgrid", "mailgun", "twilio", "datadog", "preshared", "psk", "wireguard", "unseal",
    "instrumentation", "ingestion",
];

/// Words that make a following `key` probably sensitive.
#[rustfmt::skip]
const LIKELY_KEYS: &[&str] = &[
    "signature", "account", "session", "root", "ssh", "storage", "service", "role", "license",
    "licence", "app", "application", "client", "admin", "write", "read", "ingest", "integration",
    "bot", "security", "crypto", "aes", "symmetric", "server", "functions", "function", "host",
    "cookie", "recovery", "pre", "wg", "vault", "insert", "personal", "user",
];

/// Words before a sensitive word that mean an action on the secret or a statement about it.
#[rustfmt::skip]
const ACTIONS: &[&str] = &[
    "forgot", "reset", "show", "hide", "toggle", "has", "is", "no", "use", "require",
    "requires", "without", "ask", "invalid", "wrong", "bad", "incorrect", "missing", "empty",
    "check", "verify", "validate", "generate", "create", "delete", "remove", "rotate", "public",
    "existing",
];

/// Words that make a following `key` or `token` harmless.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "public", "pub", "publishable", "foreign", "primary", "cache", "sort", "partition",
    "idempotency", "hash", "map", "dict", "json", "object", "registry", "row", "shard", "group",
    "lookup", "index", "config", "translation", "i18n", "locale", "label", "setting",
    "settings", "property", "state", "query", "s3", "bucket", "file", "path", "hot", "shortcut",
    "arrow", "any", "no", "which", "page", "next", "pagination", "continuation", "cursor",
    "cancellation", "cancel", "design", "syntax", "eos", "bos", "pad", "unk", "sep", "cls",
    "special", "stop", "max", "min", "num", "change", "update", "list", "host", "known",
    "unique", "natural", "composite", "surrogate", "column", "redis", "local", "storage", "css",
    "color", "theme", "sync", "resume", "etag", "dedupe", "dedup", "routing", "message",
    "record", "entity", "item", "node", "tree", "answer", "lang", "language", "first", "last",
    "start", "end", "current", "lookahead", "peek", "tab", "enter", "escape", "modifier",
    "ctrl", "shift", "alt", "meta", "function", "home", "space", "up", "down", "left", "right",
    "backspace", "return", "sub", "super", "dataset", "metric", "event", "log", "trace", "span",
    "progress", "mask", "image", "audio", "video", "begin", "additional", "comment", "keyword", "expected",
    "unexpected", "separator", "delimiter", "word", "identifier", "operator", "parse", "parsed",
    "trust", "trusted", "turn", "monkey", "don", "hockey", "whis", "tur", "jockey", "donkey",
];

/// Suffixes of words for passwords.
#[rustfmt::skip]
const PASSWORDS: &[&str] = &["password", "passwd", "passphrase", "passcode", "pwd", "passwort"];

/// Suffixes of words for other secrets.
const SECRETS: &[&str] = &["secret", "token", "connectionstring", "connstr"];

/// Prefixes that make a password of `pass`, without a separator.
#[rustfmt::skip]
const PASS_OWNERS: &[&str] = &[
    "db", "user", "root", "mysql", "pg", "postgres", "smtp", "mail", "ftp", "ssh", "admin",
    "login", "my", "proxy", "http", "auth", "ldap", "redis", "vnc", "wifi", "key", "store",
    "sudo", "imap", "mongo", "rabbit", "amqp",
];

/// Prefixes that make a secret of `key`, without a separator.
#[rustfmt::skip]
const GLUED: &[&str] = &[
    "api", "access", "secret", "private", "signing", "encryption", "master", "account", "auth",
    "shared", "license",
];

/// Parts of a dotted key that make it the key of a text on a screen: `form.user.label.password`.
#[rustfmt::skip]
const SCREEN: &[&str] = &[
    "label", "labels", "form", "forms", "placeholder", "placeholders", "i18n", "tooltip",
    "translation", "translations", "button", "buttons", "dialog", "hint", "hints", "title", "titles",
    "field", "fields", "errors", "validation", "lang", "locale", "locales",
];

/// Returns the class of a name; `None` if it is not sensitive.
pub(super) fn classify(name: &[u8]) -> Option<NameClass> {
    let mut parts = name.rsplit(|byte| *byte == b'.').skip(1);
    if parts.any(|part| is_one_of(part, SCREEN)) {
        return None;
    }
    let words = Words::split(name);
    for at in (0..words.count).rev() {
        let Some(class) = words.class_at(at) else {
            continue;
        };
        let (before, word) = (words.get(at.wrapping_sub(1)), words.get(at));
        let counted = is_same_word(word, b"key") || is_same_word(word, b"token");
        let secret = is_one_of(before, SECRET_KEYS) || is_one_of(before, LIKELY_KEYS);
        let harmless = counted && is_one_of(before, HARMLESS) && !secret;
        // `invalid_api_key`: the action comes before the kind of the key.
        let action = |back| is_one_of(words.get(at.wrapping_sub(back)), ACTIONS);
        if harmless || action(1) || secret && action(2) {
            return None;
        }
        let mut known = true;
        for tail in at + 1..words.count {
            let tail = words.get(tail);
            if is_one_of(tail, ABOUT) || class == NameClass::Encoded {
                return None;
            }
            known &= is_one_of(tail, NEUTRAL) || tail.iter().all(u8::is_ascii_digit);
        }
        let shouted = !name.iter().any(u8::is_ascii_lowercase);
        return Some(match (known, shouted) {
            (true, _) => class,
            (false, true) => NameClass::Likely,
            (false, false) => NameClass::Weak,
        });
    }
    None
}

/// Returns the words of a name, at most its last sixteen.
pub(super) fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = Words::split(name);
    words.words.into_iter().take(words.count)
}

/// Returns the class of a key of a kind, as in `API key: …`; `None` if the word names no kind of
/// secret key.
pub(super) fn key_class(kind: &[u8]) -> Option<NameClass> {
    if is_one_of(kind, SECRET_KEYS) {
        return Some(NameClass::Secret);
    }
    is_one_of(kind, LIKELY_KEYS).then_some(NameClass::Likely)
}

/// Returns whether a list contains a word, ignoring case.
pub(super) fn is_one_of(word: &[u8], list: &[&str]) -> bool {
    list.iter()
        .any(|known| is_same_word(word, known.as_bytes()))
}

/// The words of a name.
struct Words<'a> {
    words: [&'a [u8]; WORDS],
    count: usize,
}

impl<'a> Words<'a> {
    fn split(name: &'a [u8]) -> Self {
        let (mut words, mut count) = ([&b""[..]; WORDS], 0);
        let mut start = 0;
        while start < name.len() {
            if !byte(name, start).is_ascii_alphanumeric() {
                start += 1;
                continue;
            }
            let end = word_end(name, start);
            if count == WORDS {
                // Only the last words matter.
                words.rotate_left(1);
                count -= 1;
            }
            if let Some((word, name)) = words.get_mut(count).zip(name.get(start..end)) {
                *word = name;
                count += 1;
            }
            start = end;
        }
        Self { words, count }
    }

    /// Returns the word at a position, or none outside the name.
    fn get(&self, at: usize) -> &'a [u8] {
        self.words.get(at).copied().unwrap_or_default()
    }

    /// Returns the class of the word at a position, given the word before it.
    fn class_at(&self, at: usize) -> Option<NameClass> {
        let (before, word) = (self.get(at.wrapping_sub(1)), self.get(at));
        let is = |known: &str| is_same_word(word, known.as_bytes());
        let ends = |suffix: &str| ends_with(word, suffix);
        let split = (is("word") || is("phrase")) && is_same_word(before, b"pass");
        let is_last = at + 1 == self.count;
        let is_short = is("pw") || is("psk") && is_last;
        if PASSWORDS.iter().any(|suffix| ends(suffix)) || split || is_short {
            return Some(NameClass::Password);
        }
        let owned = word.get(..word.len().saturating_sub(4)).unwrap_or_default();
        if is("pass") || (ends("pass") && is_one_of(owned, PASS_OWNERS)) {
            let is_alone = is("pass") && at == 0;
            return Some(if is_alone {
                NameClass::Likely
            } else {
                NameClass::Password
            });
        }
        let split =
            (is("string") || is("str")) && is_one_of(before, &["connection", "conn", "secure"]);
        if SECRETS.iter().any(|suffix| ends(suffix)) && !is("betoken")
            || is_one_of(word, &["bearer", "creds", "credential", "credentials"])
            || split
        {
            return Some(NameClass::Secret);
        }
        if is("key") {
            return match before {
                b"" => None,
                _ => key_class(before).or(Some(NameClass::Weak)),
            };
        }
        if ends("key") {
            let stem = word.get(..word.len() - 3).unwrap_or_default();
            let is_secret = GLUED.iter().any(|known| ends_with(stem, known));
            return is_secret.then_some(NameClass::Secret);
        }
        if is("pat") && at > 0 {
            return Some(NameClass::Weak);
        }
        is("auth").then_some(NameClass::Encoded)
    }
}

/// Returns whether a word ends with a suffix, ignoring case.
pub(super) fn ends_with(word: &[u8], suffix: &str) -> bool {
    let start = word.len().checked_sub(suffix.len());
    let end = start.and_then(|start| word.get(start..));
    end.is_some_and(|end| is_same_word(end, suffix.as_bytes()))
}

/// Returns the end of the word that begins at a position: before another character class, and
/// before a capital that begins a new word.
fn word_end(name: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    while end < name.len() {
        let (last, here, next) = (byte(name, end - 1), byte(name, end), byte(name, end + 1));
        let same = if last.is_ascii_digit() {
            here.is_ascii_digit()
        } else if last.is_ascii_lowercase() {
            here.is_ascii_lowercase()
        } else {
            // In `HTTPServer`, the capital before a lower-case letter begins the next word.
            here.is_ascii_uppercase() && !next.is_ascii_lowercase()
                || here.is_ascii_lowercase() && end == start + 1
        };
        if !same {
            break;
        }
        end += 1;
    }
    end
}
