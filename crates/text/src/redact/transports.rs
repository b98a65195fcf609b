//! Credentials recognized by their structure or by where they occur: URLs, headers, command lines.

use super::encoded::decode;
use super::names::{NameClass, is_one_of};
use super::scan::{Scan, byte, find, starts};
use super::tokens::{Alphabet, BLANK, begins_word};
use super::values::{self, ValueSyntax};
use crate::word_list::is_in;

const ALNUM: Alphabet = Alphabet::ALNUM;
const URL64: Alphabet = Alphabet::URL64;

/// The most bytes that a scanner reads before it decides.
const REACH: usize = 512;

/// Masks a JSON web token.
pub(super) fn json_web_token(scan: &mut Scan, at: usize) {
    let text = scan.text;
    if !begins_word(text, at) {
        return;
    }
    // Only the first bytes of each section decide. Otherwise a text of nothing but `eyJ.` would be
    // read over and over.
    let section = |start: usize| URL64.run_within(text, start, REACH);
    let header = section(at);
    if header < at + 10 || byte(text, header) != b'.' {
        return;
    }
    let payload = section(header + 1);
    let signed = byte(text, payload) == b'.' && section(payload + 1) >= payload + 16;
    let encoded = starts(text, header + 1, b"eyJ") && payload >= header + 10;
    if signed || encoded {
        let end = Alphabet::DOTTED.run(text, at);
        scan.found(at, Alphabet::new(b".").run_back(text, end, REACH));
    }
}

/// Masks an AWS key id, and a secret directly after it.
pub(super) fn aws(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let end = Alphabet::UPPER
        .union(Alphabet::DIGIT)
        .run_within(text, at, 21);
    if !begins_word(text, at) || end != at + 20 || Alphabet::WORD.has(byte(text, end)) {
        return;
    }
    scan.found(at, end);
    let secret = Alphabet::new(b" \t,:;|/\"'").run(text, end);
    let secret_end = Alphabet::BASE64.run(text, secret);
    if (1..=4).contains(&(secret - end))
        && secret_end == secret + 40
        && values::is_random(scan.slice(secret, secret_end))
    {
        scan.found(secret, secret_end);
    }
}

/// Masks `sk-…`, `rk-…`, `pk-…`.
///
/// Twelve letters or digits right after the hyphen are a key. A key with inner hyphens has a long
/// part with a digit, which distinguishes it from style classes (`sk-loading-spinner`).
pub(super) fn model_key(scan: &mut Scan, at: usize) {
    let text = scan.text;
    if !begins_word(text, at) || byte(text, at.wrapping_sub(1)) == b'_' {
        return;
    }
    let body = at + 3;
    let end = URL64.run_within(text, body, REACH);
    let key = scan.slice(body, end);
    let plain = ALNUM.run_within(text, body, REACH);
    let known = key.starts_with(b"ant-") || key.starts_with(b"proj-") || key.starts_with(b"or-v1-");
    let random_piece = key.split(|byte| matches!(byte, b'-' | b'_')).any(|piece| {
        piece.len() >= 10
            && piece.iter().any(u8::is_ascii_digit)
            && piece.iter().any(u8::is_ascii_alphabetic)
    });
    let digit = key.iter().any(u8::is_ascii_digit);
    if (key.len() >= 20 && (random_piece || (known && digit && values::is_random(key))))
        || (plain >= body + 12 && !matches!(byte(text, plain), b'_'))
    {
        let whole = key.len() >= 20 && digit;
        let end = if whole { URL64 } else { ALNUM }.run(text, body);
        scan.found(at, Alphabet::new(b"-").run_back(text, end, REACH));
    }
}

/// Masks the password of a URL.
pub(super) fn url(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let (start, end) = match scan.mark {
        "@tcp(" | "@unix(" => {
            let ends = Alphabet::new(b" \t\n\"'`=(");
            let first = scan.done.max(at.saturating_sub(128));
            let before = (first..at).rev().find(|at| ends.has(byte(text, *at)));
            (before.map_or(first, |at| at + 1), at)
        }
        "oracle:thin:" => {
            let start = at + scan.mark.len();
            let end = authority_end(text, start);
            let slash = position(text, start, end, b'/').unwrap_or(end);
            if let Some(host) = position(text, slash, end, b'@') {
                mask_password(scan, slash + 1, host);
            }
            return;
        }
        _ => {
            let start = at + 3;
            if !byte(text, at.wrapping_sub(1)).is_ascii_alphanumeric() || byte(text, start) == b'['
            {
                return;
            }
            let limit = authority_end(text, start);
            let slash = (start..limit)
                .find(|at| matches!(byte(text, *at), b'/' | b'?' | b'#' | b'\\'))
                .unwrap_or(limit);
            let host = (start..slash).rev().find(|at| byte(text, *at) == b'@');
            // A password may have an unescaped slash; then a colon before it is not a port's.
            let host = host.or_else(|| {
                let colon = position(text, start, slash, b':')?;
                let port = Alphabet::DIGIT.run(text, colon + 1) == slash;
                let host = position(text, slash, limit, b'@').filter(|_| !port)?;
                ALNUM.has(byte(text, host + 1)).then_some(host)
            });
            let Some(host) = host else {
                return;
            };
            (start, host)
        }
    };
    if let Some(colon) = position(text, start, end, b':') {
        // `[user[:password]@]host` is the syntax of a URL, not a URL.
        if byte(text, colon.wrapping_sub(1)) != b'[' {
            mask_password(scan, colon + 1, end);
        }
    } else if values::is_random(scan.slice(start, end)) && end >= start + 16 {
        scan.found(start, end);
    }
}

/// Masks a password in a URL, unless it is a reference, a placeholder or a word for a password.
fn mask_password(scan: &mut Scan, start: usize, end: usize) {
    let password = scan.slice(start, end);
    if !password.is_empty() && !values::is_reference(password) && !values::is_filler(password) {
        scan.found(start, end);
    }
}

/// Returns the end of a possible authority: at a blank, quotation mark or bracket.
fn authority_end(text: &[u8], start: usize) -> usize {
    Alphabet::new(b" \t\r\n\"'`<>(),|").until(text, start, 256)
}

/// Returns the first position of a byte in a range.
fn position(text: &[u8], start: usize, end: usize, wanted: u8) -> Option<usize> {
    (start..end).find(|at| byte(text, *at) == wanted)
}

/// The characters of credentials in a header.
const CREDENTIALS: Alphabet = ALNUM.union(Alphabet::new(b"._~+/=-"));

/// Masks `Bearer` and the token after it.
pub(super) fn bearer(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let word = at + "bearer".len();
    let start = BLANK.run(text, word);
    if start == word || !begins_word(text, at) {
        return;
    }
    let token = scan.slice(start, CREDENTIALS.run_within(text, start, REACH));
    if token.len() < 12 || values::is_reference(token) || is_phrase(token) {
        return;
    }
    let end = CREDENTIALS.run(text, start);
    scan.found(at, Alphabet::new(b".").run_back(text, end, REACH));
}

/// How words begin that follow `Bearer` in prose.
#[rustfmt::skip]
const PHRASES: &[&[u8]] = &[
    b"authenti", b"authoriz", b"credential", b"certificate", b"your", b"token", b"access",
];

/// Returns whether the text after `Bearer` is prose or an identifier.
fn is_phrase(token: &[u8]) -> bool {
    let lower = token.to_ascii_lowercase();
    let joined = Alphabet::new(b"_-./");
    !token.iter().any(u8::is_ascii_digit)
        && (PHRASES.iter().any(|start| lower.starts_with(start))
            || token.iter().any(|byte| joined.has(*byte)))
        && !values::is_random(token)
}

/// Masks `Basic` and the base64 of `user:password` after it.
pub(super) fn basic(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let word = at + "basic".len();
    let start = BLANK.run(text, word);
    let end = Alphabet::BASE64.run_within(text, start, REACH);
    if start > word && begins_word(text, at) && is_user_and_password(scan.slice(start, end)) {
        scan.found(at, end);
    }
}

/// Returns whether a text is the base64 of `user:password`.
pub(super) fn is_user_and_password(text: &[u8]) -> bool {
    let printable = |plain: &String| plain.bytes().all(|byte| (0x20..0x7F).contains(&byte));
    let plain = decode(text).filter(printable);
    plain.is_some_and(|plain| plain.len() >= 4 && plain.contains(':'))
}

/// The schemes of an `Authorization` header.
#[rustfmt::skip]
const SCHEMES: &[&str] = &[
    "basic", "bearer", "token", "apikey", "api-key", "key", "ssws", "digest", "negotiate", "ntlm",
    "jwt", "flyv1", "genie", "klaviyo-api-key", "sso-key", "zoho-oauthtoken", "oauth", "hawk",
    "splunk", "discogs", "bot", "aws4-hmac-sha256", "sharedkey", "sharedaccesssignature", "dpop",
    "snowflake",
];

/// Masks the value of an `Authorization` header or key, including the scheme.
pub(super) fn authorization(scan: &mut Scan, at: usize) {
    let text = scan.text;
    // `binaryauthorization`
    if byte(text, at) == b'a' && byte(text, at.wrapping_sub(1)).is_ascii_lowercase() {
        return;
    }
    let quotes = Alphabet::new(b"\\\"'`]");
    let separator = quotes.run(text, at + "authorization".len());
    let separator = BLANK.run(text, separator);
    if !matches!(byte(text, separator), b':' | b'=' | b',') {
        return;
    }
    let value = Alphabet::new(b" \t=>").run(text, separator + 1);
    let value = quotes.run(text, value);
    let word = Alphabet::URL64.run(text, value);
    let mut start = value;
    if word > value && byte(text, word) == b' ' {
        if !is_one_of(scan.slice(value, word), SCHEMES) {
            return;
        }
        start = BLANK.run(text, word);
    }
    // Signatures are lists that extend to the end of the line or literal.
    let scheme = scan.slice(value, start);
    let list = [&b"AWS4"[..], b"Hawk", b"SharedAccess"]
        .iter()
        .any(|signed| scheme.starts_with(signed));
    let ends = if list {
        Alphabet::new(b"\r\n'`")
    } else {
        Alphabet::new(b" \t\r\n\"'`<>,;)}\\")
    };
    let end = ends.until(text, start, REACH);
    let token = scan.slice(start, end);
    if token.ends_with(b"=") && matches!(byte(text, end), b'"' | b'\\') {
        // The first field of a list (`OAuth realm="x"`); its fields are matched by their names.
        return;
    }
    let syntax = if start > value {
        ValueSyntax::Config
    } else {
        ValueSyntax::Bare
    };
    if values::is_secret(token, NameClass::Secret, syntax) {
        scan.found(value, end);
    }
}

/// Parts of the names of cookies that hold a session, in lower case.
#[rustfmt::skip]
const SESSION_NAMES: &[&[u8]] = &[
    b"sess", b"sid", b"auth", b"token", b"jwt", b"csrf", b"xsrf", b"remember",
];

/// Masks the values of cookies that look like session ids.
pub(super) fn cookies(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let name = at + "cookie".len();
    let separator = Alphabet::new(b"\\\"'").run(text, name);
    let blank = BLANK.run(text, separator);
    let flag = byte(text, at.wrapping_sub(1)) == b'-' && byte(text, at.wrapping_sub(2)) == b'-';
    let mut pair = match byte(text, blank) {
        b':' | b'=' => blank + 1,
        _ if flag && blank > separator => blank,
        _ => return,
    };
    let limit = text.len().min(pair + 4096);
    loop {
        pair = Alphabet::new(b" \t\\\"'").run(text, pair);
        let name_end = ALNUM.union(Alphabet::new(b"_-.%$")).run(text, pair);
        if name_end == pair || byte(text, name_end) != b'=' || pair >= limit {
            return;
        }
        let value = name_end + 1;
        let end = ALNUM.union(Alphabet::new(b"_-.%+/=~:!|*")).run(text, value);
        let name = scan.slice(pair, name_end).to_ascii_lowercase();
        let telling = SESSION_NAMES
            .iter()
            .any(|part| find(&name, 0, part).is_some());
        let content = scan.slice(value, end);
        let random = values::is_random(content);
        // An id without capitals can look like a name.
        let long = end >= value + 16 && content.iter().any(u8::is_ascii_digit);
        if telling && (long || random && end >= value + 8) || random && end >= value + 20 {
            scan.found(value, end);
        }
        if byte(text, end) != b';' {
            return;
        }
        pair = end + 1;
    }
}

/// The form of the value after a command's flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagValue {
    Password,
    /// The password directly after the flag, without a blank.
    Attached,
    /// The user, this mark and the password; only the password is masked.
    User(u8),
}

/// Commands with flags that take a credential.
#[rustfmt::skip]
const COMMANDS: &[(&str, &[&str], FlagValue)] = &[
    ("curl", &["-u", "--user", "-U", "--proxy-user"], FlagValue::User(b':')),
    ("mysql", &["-p"], FlagValue::Attached),
    // Docker's `-p` is a port elsewhere.
    (
        "sshpass|docker login|podman login|registry login|oc login|az login|twine upload|mongosh|mongodump|\
         mongorestore",
        &["-p"],
        FlagValue::Password,
    ),
    ("redis-cli", &["-a"], FlagValue::Password),
    ("ldap", &["-w"], FlagValue::Password),
    ("sqlcmd", &["-P"], FlagValue::Password),
    ("ssh-keygen", &["-N"], FlagValue::Password),
    ("lftp", &["-u"], FlagValue::User(b',')),
    ("smbclient", &["-U"], FlagValue::User(b'%')),
    // HTTPie; the blank tells it from a URL.
    ("http |https |xh ", &["-a", "--auth"], FlagValue::User(b':')),
];

/// Remembers a command word, or masks the value of its flag.
pub(super) fn command(scan: &mut Scan, at: usize) {
    let text = scan.text;
    if scan.mark != " -" {
        scan.command = Some((scan.mark, at)).filter(|_| begins_word(text, at));
        return;
    }
    let is_line = |seen: usize| !scan.slice(seen, at).contains(&b'\n');
    let command = (scan.command)
        .filter(|(word, seen)| at < seen + REACH && (!word.ends_with(' ') || is_line(*seen)));
    let command =
        command.and_then(|(word, _)| COMMANDS.iter().find(|(known, ..)| is_in(known, word)));
    let Some((_, flags, value)) = command else {
        return;
    };
    let Some(flag) = flags.iter().find(|known| {
        let next = byte(text, at + 1 + known.len());
        starts(text, at + 1, known.as_bytes())
            && (*value == FlagValue::Attached
                || matches!(next, b' ' | b'=' | b'\'' | b'"')
                || (known.len() == 2 && next.is_ascii_alphanumeric()))
    }) else {
        return;
    };
    let after = at + 1 + flag.len();
    let start = match value {
        FlagValue::Attached => after,
        _ => Alphabet::new(b" =").run(text, after),
    };
    let (start, ends) = match byte(text, start) {
        b'"' => (start + 1, Alphabet::new(b"\"\n")),
        b'\'' => (start + 1, Alphabet::new(b"'\n")),
        b'-' => return,
        _ => (start, Alphabet::new(b" \t\r\n\"'`;|&\\")),
    };
    let end = ends.until(text, start, REACH);
    let start = match value {
        FlagValue::User(mark) => match position(text, start, end, *mark) {
            Some(mark) => mark + 1,
            None => return,
        },
        _ => start,
    };
    mask_password(scan, start, end);
}

/// Masks a password that `echo` or `printf` writes for the command at a mark: `echo x | sudo -S`.
pub(super) fn piped_password(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let from = scan.done.max(at.saturating_sub(REACH / 2));
    let line = scan.slice(from, at);
    let Some(bar) = line.iter().rposition(|byte| *byte == b'|') else {
        return;
    };
    let before = line.get(..bar).unwrap_or_default();
    let last = |word: &[u8]| {
        let found = before.windows(word.len()).rposition(|part| part == word);
        found.map(|found| from + found + word.len())
    };
    let Some(mut start) = last(b"echo ").max(last(b"printf ")) else {
        return;
    };
    for skipped in [&b"-n "[..], b"-e ", b"'%s' ", b"\"%s\" "] {
        if starts(text, start, skipped) {
            start += skipped.len();
        }
    }
    let mut end = BLANK.run_back(text, from + bar, REACH);
    let quote = byte(text, start);
    if matches!(quote, b'"' | b'\'') && end > start + 1 && byte(text, end - 1) == quote {
        (start, end) = (start + 1, end - 1);
    }
    if scan.mark == "chpasswd" {
        start = position(text, start, end, b':').map_or(end, |colon| colon + 1);
    }
    let is_word = !scan
        .slice(start, end)
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || *byte == b'`');
    if is_word {
        mask_password(scan, start, end);
    }
}

/// Masks the password in a line of a `.pgpass` file: five fields, of which the last one ends the
/// line.
pub(super) fn pgpass(scan: &mut Scan, at: usize) {
    let text = scan.text;
    // A line with the usual port is known behind a prefix, too: of a diff, a quotation, `grep -n`.
    let is_usual = byte(text, at + 1) == b'5';
    let host = if is_usual { &b"*"[..] } else { b"*:" };
    let start = Alphabet::DOTTED.with(host).run_back(text, at, 128);
    let before = byte(text, start.wrapping_sub(1));
    match before {
        b' ' | b'\t' | b'+' | b'>' | b'|' if is_usual => {}
        b':' if is_usual && byte(text, start.wrapping_sub(2)).is_ascii_digit() => {}
        0 | b'\n' | b'"' | b'\'' | b'`' => {}
        _ => return,
    }
    let end = Alphabet::new(b" \t\r\n\"'`\\").until(text, at, REACH);
    let mut fields = [start; 5];
    for field in 1..fields.len() {
        let Some(colon) = position(text, fields[field - 1], end, b':') else {
            return;
        };
        fields[field] = colon + 1;
    }
    let [_, port, database, user, password] = fields;
    let is_name = |part: &[u8]| part == b"*:" || byte(part, 0).is_ascii_alphabetic();
    let port = scan.slice(port, database - 1);
    if (port == b"*" || port.iter().all(u8::is_ascii_digit))
        && is_name(scan.slice(database, user))
        && is_name(scan.slice(user, password))
        && position(text, password, end, b':').is_none()
        && !matches!(byte(text, end), b' ' | b'\t')
    {
        mask_password(scan, password, end);
    }
}
