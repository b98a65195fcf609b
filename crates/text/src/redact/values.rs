//! Decides whether the value of a sensitive name is a secret. The precision of redaction depends on
//! it.
//!
//! A value is judged by its characters and its context, not by a list of secrets. The main measure
//! is the share of letters in words: names and prose have a high share, tokens have a low one.

use self::ValueSyntax::{Bare, Config, Line, Loose, Quoted};
use super::names::{
    NameClass::{self, Encoded, Likely, Password, Secret, Weak},
    is_one_of, words,
};
use super::scan::{MASK, byte, find};
use super::tokens::Alphabet;

/// The syntax of a value and its relation to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSyntax {
    /// A literal in quotation marks.
    Quoted,
    /// Bare, where only data can be: an environment file, a query, a flag with `=`.
    Config,
    /// Bare and alone on its line after `name: ` in YAML or after `name = ` in a settings file.
    Line,
    /// Bare, where it could also be code or prose.
    Bare,
    /// Not directly after the name: after a comma, a parenthesis, `==`, ` is `, a blank.
    Loose,
}

impl ValueSyntax {
    /// Returns [`ValueSyntax::Loose`] if a value is loose, else this.
    pub(super) fn or_loose(self, is_loose: bool) -> Self {
        if is_loose { Self::Loose } else { self }
    }
}

/// The most bytes of a value that are judged.
pub(super) const JUDGED: usize = 512;

/// Types, keywords and placeholders, in lower case.
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "string", "str", "text", "bool", "boolean", "bytes", "number", "integer", "float", "double",
    "object", "any", "unknown", "never", "void", "char", "varchar", "blob", "uuid", "null",
    "none", "nil", "undefined", "true", "false", "yes", "no", "on", "off", "empty", "disabled",
    "enabled", "required", "optional", "default", "hidden", "masked", "redacted", "removed",
    "omitted", "secret", "password", "passwd", "token", "apikey", "key", "value", "changeme",
    "placeholder", "dummy", "todo", "tbd", "fixme", "example", "sample", "xxx", "foo", "bar",
    "baz", "username", "user", "login", "field", "input", "body", "form", "props", "data",
    "prompt", "auto", "manual", "basic", "bearer", "digest", "plain", "plaintext", "hashed",
    "encrypted", "encoded", "valid", "invalid", "expired", "missing", "wrong", "incorrect",
    "correct", "ok", "failed", "error", "passed", "the", "a", "an", "is", "and", "or", "not",
    "for", "from", "with", "this", "self", "new", "await", "async", "function", "return", "let",
    "const", "var", "fn", "pub", "static", "type", "impl", "struct", "enum", "secretstr",
    "secretstring", "option", "readonly", "import", "export", "lambda", "get", "set", "post",
    "settings", "config", "env", "environment", "credentials", "credential", "authorization",
    "jwt", "oauth", "oauth2", "opaque", "hex", "base64", "test", "tests", "testing", "unset",
    "unused", "reset", "sensitive", "write", "read", "admin:admin", "pass", "pwd", "tokens",
    "scheme", "header", "headers", "authentication", "include", "same-origin", "omit", "ident",
    "identifier", "keyword", "operator", "literal", "comment", "whitespace", "eof", "comma",
    "passwort", "kennwort", "contraseña", "clave", "senha", "mot de passe", "wachtwoord",
    "files", "compat", "lösenord", "parola", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호",
    "heslo", "salasana", "passord", "adgangskode", "adgangstoken", "jelszó", "geslo", "lozinka",
    "parool", "şifre", "palavra-passe", "contrasenya", "kata sandi", "mật khẩu", "zaporka", "סיסמה",
    "كلمة المرور", "κωδικός", "парола", "токен", "令牌", "权杖", "토큰", "トークン",
    "forgotten", "lost", "mandatory", "unchanged", "changed", "rejected", "vergessen", "falsch", "ungültig",
    "pflichtfeld", "erforderlich", "abgelaufen", "geändert", "fehlt", "oublié", "incorrecte", "obligatoire",
    "requis", "invalide", "olvidada", "incorrecta", "obligatoria", "requerida", "esquecida", "incorreta",
    "obrigatória", "inválida", "dimenticata", "errata", "obbligatoria", "vergeten", "onjuist", "verplicht",
    "wymagane", "nieprawidłowe", "zapomniane", "unuttum", "yanlış", "hatalı", "gerekli", "zorunlu", "glömt", "krävs",
];

/// Words of messages about secrets, in lower case. A passphrase does not contain them.
#[rustfmt::skip]
const MESSAGE_WORDS: &[&str] = &[
    "must", "least", "your", "please", "enter", "invalid", "wrong", "required", "incorrect",
    "missing", "confirm", "current", "forgot", "password", "passwords", "passphrase", "secret",
    "token", "tokens", "key", "keys", "api", "credential", "credentials", "login", "user",
    "username", "characters", "cannot", "reset", "change", "update", "should", "expected",
    "unexpected", "choose", "does", "string", "value", "default", "optional", "failed", "error",
];

/// Words of any sentence, in lower case. A passphrase has few of them.
#[rustfmt::skip]
const SENTENCE_WORDS: &[&str] = &[
    "be", "at", "is", "are", "was", "the", "a", "an", "my", "to", "of", "for", "not", "do", "and",
    "or", "in", "on", "with", "no", "if", "from", "has", "have", "can", "new", "long", "too",
    "short", "this", "that", "it", "you", "set", "used", "use", "when", "will", "may", "by", "as",
    "into", "access",
];

/// Words of the names of types and variables, in lower case: `SecretString`, `newPassword`.
#[rustfmt::skip]
const IDENTIFIER_WORDS: &[&str] = &[
    "string", "str", "text", "bool", "int", "float", "option", "optional", "type", "token",
    "tokens", "tok", "secret", "secrets", "key", "keys", "password", "passwd", "pwd",
    "pass", "passphrase", "credential", "credentials", "creds", "cred", "auth", "value", "field",
    "node", "kind", "data", "bytes", "buffer", "any", "object", "char", "list", "vec", "array",
    "map", "dict", "result", "error", "provider", "manager", "service", "handler", "config",
    "settings", "param", "arg", "input", "output", "name", "user", "request", "response",
    "callback", "function", "stream", "source", "ref", "hash", "hashed", "plaintext", "encrypted",
    "env", "var", "const", "uuid", "number", "literal", "placeholder",
];

/// Prefixes of references.
#[rustfmt::skip]
const REFERENCES: &[&str] = &[
    "process.env", "os.", "env.", "env:", "env(", "import.meta", "vault:", "op://", "ssm:",
    "arn:", "ref+", "secret://", "secrets.", "keyring:", "file:", "projects/", "enc[", "self.",
    "this.", "deno.", "http://", "https://", "data:", "sha1-", "sha256-", "sha384-", "sha512-",
    "sha256:", "sha1:", "sha512:", "md5:", "ssh-rsa", "ssh-ed25519", "ecdsa-sha2", "aaaab3nza",
    "aaaac3nza", "aaaae2vj", "-----begin", "urn:", "git@", "./", "../", "~/", "s3://", "gs://", "x-",
];

/// Prefixes of placeholders, in lower case.
#[rustfmt::skip]
const PLACEHOLDERS: &[&str] = &[
    "your-", "your_", "your ", "yourapi", "yoursecret", "yourtoken", "yourpassword", "<",
    "xxxx", "****", "....", "change-me", "change_me", "changeme", "replace-", "replace_",
    "insert-", "insert_", "enter-", "enter_", "example-", "example_", "dummy-", "dummy_",
    "fake-", "fake_", "placeholder", "redacted", "todo", "put-", "put_", "add-your",
];

/// Parts of regular expressions and of elided values.
#[rustfmt::skip]
const PATTERN_SYNTAX: &[&[u8]] = &[
    b".*", b"\\.", b"\\(", b"(?", b"\\w", b"\\d", b"\\s", b"\\x", b"[^", b"[a-z", b"[A-Z", b"****", b"...",
    "…".as_bytes(),
];

/// File name extensions.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "json", "pem", "key", "txt", "rs", "py", "js", "ts", "tsx", "jsx", "yaml", "yml", "toml",
    "md", "go", "java", "env", "crt", "cer", "p12", "pfx", "html", "css", "xml", "conf", "cfg",
    "ini", "sh", "rb", "php", "pub", "gpg", "asc", "log",
];

/// Prefixes of types, algorithms and numbered names, before their number.
#[rustfmt::skip]
const STEMS: &[&str] = &[
    "u", "i", "f", "b", "ulong", "pulong", "dword", "int", "uint", "float", "sha", "md", "base", "utf", "aes", "rsa", "hs",
    "rs", "es", "ps", "ed", "x", "oauth", "arg", "args", "argv", "param", "token", "tok", "key",
    "pass", "password", "pwd", "secret", "str", "string", "tmp", "var", "val", "value", "field",
    "user", "v", "p", "s", "t", "k", "http", "ipv", "ec", "step", "pbkdf", "bcrypt", "argon",
    "scrypt", "blake", "ripemd", "keccak", "vec", "bytes", "hex", "level", "option", "line",
    "col", "node", "service",
];

/// Suffixes of numbers in code.
#[rustfmt::skip]
const UNITS: &[&str] = &[
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize", "isize", "f32", "f64", "ul",
    "ll", "ull", "l", "u", "n", "s", "ms", "px", "rem", "em", "h", "d",
];

/// Returns whether a value is a secret, given the class of its name and its context.
pub(super) fn is_secret(value: &[u8], class: NameClass, syntax: ValueSyntax) -> bool {
    let value = value.get(..JUDGED.min(value.len())).unwrap_or(value);
    if value.len() < 4
        || (is_reference(value) && !is_unbalanced(value, syntax))
        || is_filler(value)
        || is_in_other_script(value)
        || has(value, MASK.as_bytes())
    {
        return false;
    }
    if value.iter().any(u8::is_ascii_whitespace) {
        return syntax == Quoted && is_passphrase(value, class);
    }
    if is_cloud_key(value) {
        return !matches!(class, Encoded | Weak);
    }
    // Versions, IP addresses, object identifiers.
    let dotted = value.contains(&b'.') && all(value, |it| it.is_ascii_digit() || *it == b'.');
    if dotted || is_path(value) || is_code(value, syntax) {
        return false;
    }
    match (class, syntax) {
        (Encoded, _) | (Weak, Loose) => false,
        (Weak, Quoted | Config) => is_random(value) && value.len() >= 16 && !is_hexadecimal(value),
        (Weak, _) => is_random(value) && value.len() >= 20 && !is_hexadecimal(value),
        // Where only data can be, a value needs to look like nothing in particular.
        (Password | Secret, Quoted | Config | Line) => {
            let small = is_number(value) && class == Secret && value.len() < 6;
            !small && !names_secret(value, syntax)
        }
        (_, Bare) if names_secret(value, syntax) => false,
        _ => is_distinctive(value, class, syntax),
    }
}

/// Returns whether a value looks like a secret by itself, where it may also be a word of code or of
/// a sentence.
fn is_distinctive(value: &[u8], class: NameClass, syntax: ValueSyntax) -> bool {
    let letters = any(value, |it| it.is_ascii_alphabetic() || !it.is_ascii());
    let digits = count(value, u8::is_ascii_digit);
    let marks = any(value, |it| Alphabet::new(b"!@#$%^&*?~+=|").has(*it));
    let named = is_name_like(value);
    // Something that a person may have typed: letters with digits or signs, but not an identifier.
    let human = letters && (digits > 0 || marks) && !is_type_like(value) && (!named || digits >= 3);
    let lower = any(value, u8::is_ascii_lowercase);
    let identifier = words(value).any(|word| is_one_of(word, IDENTIFIER_WORDS));
    let random = is_random(value) || is_gibberish(value) && lower && !identifier;
    match (class, syntax) {
        (_, Loose) => {
            let joined = any(value, |it| matches!(it, b'_' | b'-' | b'.' | b':'));
            value.len() >= 6
                && byte(value, 0) != b'-'
                && (random || human && digits > 0 && !named && !joined)
        }
        (Password, _) => human || random || digits == value.len() && value.len() >= 6,
        (_, Quoted | Config) => {
            random
                || human && value.len() >= 6
                || is_small_word(value, 8) && syntax == Config
                || is_small_word(value, 10)
                || letters && value.len() >= 24 && !named
        }
        _ => {
            let typed = digits >= 2 && value.len() >= 7 || marks && value.len() >= 8;
            random || human && typed
        }
    }
}

/// Returns whether a value is the name of a variable or type that holds a secret: `newPassword`,
/// `auth_token`, `SecretString`, `API_KEY`.
fn names_secret(value: &[u8], syntax: ValueSyntax) -> bool {
    let digits = count(value, u8::is_ascii_digit);
    let typed = byte(value, 0).is_ascii_uppercase() && syntax == Line;
    let numbered = !any(value, u8::is_ascii_lowercase)
        || typed && digits <= 2
        || syntax == Bare && (value.contains(&b'_') || byte(value, 0).is_ascii_uppercase());
    let identifier = value.iter().all(|byte| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b'.' | b'$' | b'?' | b'!')
            || numbered && (byte.is_ascii_digit() || *byte == b'-')
    });
    identifier
        && (digits > 0 || !is_gibberish(value))
        && (digits == 0 || syntax == Bare || !is_random(value))
        && (typed || words(value).count() > 1)
        && words(value).any(|word| is_one_of(word, IDENTIFIER_WORDS))
        && !value
            .last()
            .is_some_and(|last| last.is_ascii_digit() && syntax != Quoted)
}

/// Returns whether a literal begins with a bracket that it does not close, so that it is no
/// placeholder.
fn is_unbalanced(value: &[u8], syntax: ValueSyntax) -> bool {
    let close = match byte(value, 0) {
        b'<' => b'>',
        b'[' => b']',
        b'(' => b')',
        b'{' => b'}',
        _ => return false,
    };
    syntax == Quoted && !value.contains(&close) && value.iter().any(u8::is_ascii_digit)
}

/// Returns whether a value refers to a secret instead of containing it.
pub(super) fn is_reference(value: &[u8]) -> bool {
    let rest = value.get(1..).unwrap_or_default();
    let is_wordy = |it: &u8| it.is_ascii_alphabetic() || matches!(it, b'_' | b'.' | b':');
    let wordy = |part: &[u8]| !part.is_empty() && all(part, is_wordy);
    match byte(value, 0) {
        b'<' | b'[' | b'(' | b'{' => return true,
        b'#' if matches!(rest.len(), 3..=8) && all(rest, u8::is_ascii_hexdigit) => return true,
        b'$' => {
            if matches!(byte(rest, 0), b'{' | b'(' | b'$' | b'@') || rest.len() < 2 {
                return true;
            }
            let name = Alphabet::WORD.with(b".:[]>-'\"{}");
            let begins = byte(rest, 0).is_ascii_alphabetic() || byte(rest, 0) == b'_';
            if begins && all(rest, |it| name.has(*it)) && !is_random(rest) {
                return true;
            }
        }
        b'%' => {
            let named = matches!(byte(rest, 0), b'(' | b'{') || rest.ends_with(b"%");
            if named || rest.len() <= 2 {
                return true;
            }
        }
        b'!' if is_gibberish(rest) => {}
        b'!' | b'&' | b'*' | b'@' | b'#' if wordy(rest) || rest.starts_with(b"{") => return true,
        _ => {}
    }
    let inside: [&[u8]; 6] = [b"${", b"#{", b"{{", b"$(", b"<%", b"}}"];
    inside.iter().any(|mark| has(value, mark))
        || has(value, b"%s") && !is_random(value)
        || REFERENCES.iter().any(|start| begins(value, start))
        || (has(value, b"{") && has(value, b"}") && (!is_random(value) || interpolates(value)))
}

/// Returns whether a value contains a name or a call in braces: `{self.token}`, `{token_hex(32)}`.
fn interpolates(value: &[u8]) -> bool {
    let open = value.iter().position(|byte| *byte == b'{');
    let inside = open
        .and_then(|open| value.get(open + 1..))
        .unwrap_or_default();
    let end = Alphabet::WORD.with(b".()").run(inside, 0);
    byte(inside, 0).is_ascii_alphabetic() && byte(inside, end) == b'}'
}

/// Returns whether a value is a type, a keyword or a placeholder.
pub(super) fn is_filler(value: &[u8]) -> bool {
    let trimmed = value.strip_suffix(b"?").unwrap_or(value);
    // `is_one_of` ignores the case of ASCII letters only.
    let foreign = || {
        let text = std::str::from_utf8(trimmed).ok()?;
        (!text.is_ascii()).then(|| is_one_of(text.to_lowercase().as_bytes(), FILLERS))
    };
    is_one_of(trimmed, FILLERS) || foreign() == Some(true) || is_placeholder(value)
}

/// Returns whether a value consists of words of a script in which passwords are not typed: letters
/// outside Latin, and no digit. In Chinese, Japanese and Korean, digits or Latin words may be between them.
fn is_in_other_script(value: &[u8]) -> bool {
    if value.is_ascii() {
        return false;
    }
    let text = String::from_utf8_lossy(value);
    let is_east_asian = |c: char| matches!(c, '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    let is_other = |c: char| c > '\u{24f}' && c.is_alphabetic();
    let is_mark = |c: char| " .,:;!?()-/".contains(c) || !c.is_ascii() && !c.is_alphanumeric();
    if text.starts_with(is_east_asian) {
        return !text.contains(|c: char| c.is_ascii_digit())
            || !text.contains(|c: char| c.is_ascii_alphabetic());
    }
    text.contains(is_other) && text.chars().all(|c| is_other(c) || is_mark(c))
}

/// Returns whether a value is a placeholder.
fn is_placeholder(value: &[u8]) -> bool {
    let same = value.iter().all(|byte| Some(byte) == value.first());
    let lower = value.to_ascii_lowercase();
    same || PLACEHOLDERS.iter().any(|start| begins(value, start)) && !is_random(value)
        || has(&lower, b"xxxxxx")
        || has(&lower, b"abcdefghijklm")
        || PATTERN_SYNTAX.iter().any(|syntax| has(value, syntax))
}

/// Returns whether a quoted phrase can be a passphrase: several words that are no message. For a
/// token or key, which is not made of words, one of them has a digit and a letter.
fn is_passphrase(value: &[u8], class: NameClass) -> bool {
    let words = || {
        value
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
    };
    let counted = |list: &[&str]| {
        words()
            .filter(|word| {
                let (last, rest) = word.split_last().unwrap_or((&0, b""));
                let is_marked = matches!(last, b':' | b'.' | b'?' | b',');
                is_one_of(if is_marked { rest } else { word }, list)
            })
            .count()
    };
    let typed =
        words().any(|word| any(word, u8::is_ascii_digit) && any(word, u8::is_ascii_alphabetic));
    let sentence = counted(SENTENCE_WORDS);
    let close = matches!(value.last(), Some(b':' | b'?' | b'.'));
    words().count() >= 2
        && counted(MESSAGE_WORDS) == 0
        && !close
        && match class {
            Password => sentence == 0 || typed && sentence * 2 < words().count(),
            Secret => typed && sentence * 2 < words().count(),
            Likely | Weak | Encoded => false,
        }
}

/// Returns whether a value looks like an AWS secret key: forty characters of base64.
///
/// Such a key may have two slashes and a single digit, and would then be taken for a path.
fn is_cloud_key(value: &[u8]) -> bool {
    value.len() == 40
        && all(value, |it| Alphabet::ALNUM.with(b"/+").has(*it))
        && any(value, u8::is_ascii_uppercase)
        && any(value, u8::is_ascii_lowercase)
        && any(value, u8::is_ascii_digit)
}

/// Returns whether a value is a file path or a file name.
fn is_path(value: &[u8]) -> bool {
    let drive = byte(value, 1) == b':' && matches!(byte(value, 2), b'\\' | b'/');
    if drive
        || (value.contains(&b'/')
            && !is_random(value)
            && !is_gibberish(value)
            && !any(value, |it| matches!(it, b'+' | b'=')))
    {
        return true;
    }
    let mut parts = value.rsplitn(2, |byte| *byte == b'.');
    let (ending, stem) = (parts.next(), parts.next());
    ending.zip(stem).is_some_and(|(ending, stem)| {
        !stem.is_empty() && is_one_of(ending, ENDINGS) && !is_random(stem)
    })
}

/// Returns whether a bare value is an expression: a call, an index, a dotted path, an operator.
fn is_code(value: &[u8], syntax: ValueSyntax) -> bool {
    if syntax == Quoted {
        return false;
    }
    let call = value.iter().position(|byte| matches!(byte, b'(' | b'['));
    // `==` at the end is base64 padding.
    let compares = has(value.strip_suffix(b"==").unwrap_or(value), b"==");
    let called = call.is_some_and(|at| at > 0 && value.get(..at).is_some_and(is_identifier_path));
    let code = matches!(syntax, Bare | Loose);
    called
        || code && (is_identifier(value) || matches!(byte(value, 0), b'&' | b'*'))
        || (code || syntax == Line)
            && value.contains(&b'.')
            && is_identifier_path(value)
            && wordiness(value) >= 60
            // Among data, `Horse.13` is no field of a tuple.
            && (code || !value.split(|byte| *byte == b'.').any(is_number))
        || value.starts_with(b"qr/")
        || has(value, b"::")
        || has(value, b"->")
        || has(value, b"=>")
        || compares && syntax != Config
        || value.ends_with(b"();")
        || (value.contains(&b'.')
            && is_identifier_path(value)
            && !any(value, u8::is_ascii_digit)
            && !is_gibberish(value))
}

/// Returns whether a text looks like a type or constant: parts joined by underscores, each of
/// letters, digits, or letters and then digits; or several capitalized words.
fn is_identifier(text: &[u8]) -> bool {
    let digits = Alphabet::DIGIT.run(text, 0);
    let unit = text.get(digits..).unwrap_or_default();
    let numeral = digits > 0 && is_one_of(unit, UNITS);
    let piece = |piece: &[u8]| {
        let (letters, tail) = letters_and_rest(piece);
        (all(tail, u8::is_ascii_digit) && (letters.is_empty() || tail.len() <= 3))
            || !any(piece, u8::is_ascii_lowercase)
    };
    let joined = text.contains(&b'_')
        && all(text, |it| Alphabet::WORD.has(*it))
        && text.split(|byte| *byte == b'_').all(piece);
    let camel = all(text, u8::is_ascii_alphanumeric)
        && is_camel(text)
        && count(text, u8::is_ascii_uppercase) * 3 <= text.len()
        && count(text, u8::is_ascii_digit) <= 3
        && wordiness(text) >= 70;
    let hexadecimal = text.strip_prefix(b"0x").filter(|_| text.len() <= 18);
    let hexadecimal = hexadecimal.is_some_and(|digits| all(digits, u8::is_ascii_hexdigit));
    numeral || hexadecimal || joined || camel
}

/// Returns whether a text consists of digits.
fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && all(text, u8::is_ascii_digit)
}

/// Returns whether a text consists of identifiers joined by dots and colons.
fn is_identifier_path(text: &[u8]) -> bool {
    (byte(text, 0).is_ascii_alphabetic() || matches!(byte(text, 0), b'_' | b'$' | b'&'))
        && all(text, |it| Alphabet::WORD.with(b".:$?!&").has(*it))
}

/// Returns whether every part of a value is a word, a word with at most two digits, or a number.
fn is_name_like(value: &[u8]) -> bool {
    let pieces = || {
        value
            .split(|byte| !byte.is_ascii_alphanumeric())
            .filter(|piece| !piece.is_empty())
    };
    let simple = |piece: &[u8]| {
        let digits = count(piece, u8::is_ascii_digit);
        digits == piece.len() || (digits <= 2 && wordiness(piece) >= 70)
    };
    let plain = Alphabet::DOTTED.with(b"/:");
    all(value, |it| plain.has(*it))
        && (pieces().count() > 1 || is_camel(value))
        && pieces().all(simple)
}

/// Returns whether a value is in camel case.
fn is_camel(value: &[u8]) -> bool {
    value
        .windows(2)
        .any(|pair| byte(pair, 0).is_ascii_lowercase() && byte(pair, 1).is_ascii_uppercase())
}

/// Returns whether a value is a lower-case word of at least `least` letters that does not itself
/// name a secret.
fn is_small_word(value: &[u8], least: usize) -> bool {
    let about: [&[u8]; 5] = [b"token", b"secret", b"passw", b"key", b"cred"];
    value.len() >= least
        && all(value, u8::is_ascii_lowercase)
        && !about.iter().any(|word| has(value, word))
}

/// Returns whether a value looks like a type or algorithm: `uint64`, `Sha256`, `arg1`, `base64`.
fn is_type_like(value: &[u8]) -> bool {
    let value = value.strip_suffix(b"_t").unwrap_or(value);
    let (word, digits) = letters_and_rest(value);
    let sizes = [
        "1", "2", "3", "4", "8", "16", "32", "64", "128", "160", "224", "256", "384", "512",
        "1024", "25519", "509",
    ];
    let array = word.len() >= 3 && digits.ends_with(b"Array");
    array || (is_one_of(word, STEMS) && is_one_of(digits, &sizes))
}

/// Returns whether a value is a hexadecimal digest or UUID.
fn is_hexadecimal(value: &[u8]) -> bool {
    all(value, |it| it.is_ascii_hexdigit() || *it == b'-')
}

/// Returns whether a value looks machine-generated: mixed characters, few words.
pub(super) fn is_random(value: &[u8]) -> bool {
    let value = value.get(..JUDGED.min(value.len())).unwrap_or(value);
    let digits = count(value, u8::is_ascii_digit);
    let small = count(value, u8::is_ascii_lowercase);
    let capital = count(value, u8::is_ascii_uppercase);
    let letters = small + capital;
    if value.len() < 8 || letters == 0 {
        return false;
    }
    if digits == 0 {
        let mixed = small > 0 && capital > 0;
        return value.len() >= 12 && wordiness(value) < if mixed { 50 } else { 30 };
    }
    if is_name_like(value) {
        return false;
    }
    wordiness(value) < 50 || (value.len() >= 20 && pieces(value) * 7 >= value.len() * 2)
}

/// The pairs of letters that are usual in words and names: bit `b` of row `a` is set for `ab`.
///
/// They are the pairs that make up 97.5 % of the words in the documents of 200 crates.
#[rustfmt::skip]
const PAIRS: [u32; 26] = [
    0x1FE_BD6E, 0x11E_4B15, 0x11E_DD95, 0x116_4959, 0x1EF_FDFF, 0x11E_4931, 0x016_69D1,
    0x11E_5111, 0x2AE_FC7F, 0x004_4011, 0x004_0111, 0x13C_C93D, 0x014_D913, 0x13C_FD7D,
    0x07E_FD7F, 0x11E_CD99, 0x010_0800, 0x13E_FD7F, 0x15F_FDB5, 0x15E_D9BD, 0x00E_F97F,
    0x000_4111, 0x006_6191, 0x008_9115, 0x00C_F111, 0x200_0111,
];

/// Returns whether a value of eight letters or more is not made of words: more than a fifth of its
/// letters are in unusual pairs, or in parts of one or two letters that only their case separates.
pub(super) fn is_gibberish(value: &[u8]) -> bool {
    let index = |byte: u8| usize::from(byte.to_ascii_lowercase().wrapping_sub(b'a'));
    let unusual = |pair: &&[u8]| {
        let row = PAIRS.get(index(byte(pair, 0))).copied().unwrap_or(0);
        row >> index(byte(pair, 1)) & 1 == 0
    };
    let (mut letters, mut odd) = (0, 0);
    for piece in value.split(|byte| !byte.is_ascii_alphanumeric()) {
        let split = words(piece).count() > 1;
        for word in words(piece).filter(|word| byte(word, 0).is_ascii_alphabetic()) {
            letters += word.len();
            odd += match word.len() {
                1 | 2 if split => word.len(),
                _ => word.windows(2).filter(unusual).count(),
            };
        }
    }
    letters >= 8 && odd >= 2 && odd * 5 > letters
}

/// Counts the runs of one character class in a value.
fn pieces(value: &[u8]) -> usize {
    let kind = |byte: &u8| {
        (
            byte.is_ascii_digit(),
            byte.is_ascii_lowercase(),
            byte.is_ascii_uppercase(),
        )
    };
    let capitalized =
        |pair: &[u8]| byte(pair, 0).is_ascii_uppercase() && byte(pair, 1).is_ascii_lowercase();
    1 + value
        .windows(2)
        .filter(|pair| !capitalized(pair) && pair.first().map(kind) != pair.get(1).map(kind))
        .count()
}

/// Returns the percentage of a value's letters that are in possible words: three or more letters of
/// one case, or capitalized, with a vowel and no long run of consonants.
fn wordiness(value: &[u8]) -> usize {
    let mut letters = 0;
    let mut in_words = 0;
    let mut at = 0;
    while at < value.len() {
        if !byte(value, at).is_ascii_alphabetic() {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        if byte(value, start).is_ascii_uppercase() && byte(value, at).is_ascii_uppercase() {
            while byte(value, at).is_ascii_uppercase() && !byte(value, at + 1).is_ascii_lowercase()
            {
                at += 1;
            }
        } else {
            while byte(value, at).is_ascii_lowercase() {
                at += 1;
            }
        }
        let word = value.get(start..at).unwrap_or_default();
        letters += word.len();
        if could_be_word(word) {
            in_words += word.len();
        }
    }
    (in_words * 100).checked_div(letters).unwrap_or(0)
}

/// Returns whether some letters could be a word.
fn could_be_word(word: &[u8]) -> bool {
    let vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    let longest = word.split(vowel).map(<[u8]>::len).max().unwrap_or(0);
    word.len() >= 3 && word.iter().any(vowel) && longest <= 4
}

/// Returns the letters that a text begins with, and the rest.
fn letters_and_rest(text: &[u8]) -> (&[u8], &[u8]) {
    let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    text.split_at(letters.count())
}

fn all(text: &[u8], is_one: impl Fn(&u8) -> bool) -> bool {
    text.iter().all(is_one)
}

fn any(text: &[u8], is_one: impl Fn(&u8) -> bool) -> bool {
    text.iter().any(is_one)
}

fn count(text: &[u8], is_one: impl Fn(&u8) -> bool) -> usize {
    text.iter().filter(|byte| is_one(byte)).count()
}

/// Returns whether a text contains another.
fn has(text: &[u8], part: &[u8]) -> bool {
    find(text, 0, part).is_some()
}

/// Returns whether a text begins with another, ignoring case.
fn begins(text: &[u8], start: &str) -> bool {
    text.get(..start.len())
        .is_some_and(|there| there.eq_ignore_ascii_case(start.as_bytes()))
}
