//! Parses the address of a remote, and shows it without credentials.
//!
//! git can be made to run a program by an address (`ext::`, a host that starts with a dash). So
//! this grammar is narrower than git's, and any other address is refused before git gets it.
//! Nothing here uses the disk or the network.
//!
//! Invariant: `Display` and `Debug` of [`Remote`] contain no credentials, and [`InvalidRemote`]
//! repeats only the scheme of a refused address.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    path::{Path, PathBuf},
};

use anamnesis_text::clean::clean;

/// The longest address, in bytes.
const MAX_LENGTH: usize = 2_048;

/// A valid address of a remote.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    text: String,
    shown: String,
    way: Way,
}

/// The transport of a remote.
#[derive(Clone, PartialEq, Eq)]
enum Way {
    Folder(PathBuf),
    Ssh(Ssh),
    Https,
    Http,
}

/// The destination of an ssh address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ssh {
    /// `user@host` or `host`, as ssh takes it.
    pub(crate) destination: String,
    /// The port, if given.
    pub(crate) port: Option<u16>,
}

/// The reason for refusing an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRemote {
    /// The address is empty.
    #[error("the address is empty")]
    Empty,
    /// The address is too long.
    #[error("the address is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// It has a control character, an invisible character or a space.
    #[error("the address has a character that no address may have")]
    Character,
    /// A program could take it for an option.
    #[error("a part of the address starts with `-`")]
    Dash,
    /// It is a path that depends on the current folder.
    #[error("the address is neither a URL nor `user@host:path` nor an absolute path")]
    Relative,
    /// It is a Windows path.
    #[error("the address is a path of Windows")]
    WindowsPath,
    /// Its scheme is not supported.
    #[error("`{0}` addresses are refused: only ssh, https and absolute paths are taken")]
    Scheme(String),
    /// It is plain http to another machine.
    #[error("http sends the notes and the password readable for everyone on the way")]
    PlainHttp,
    /// It has a password, which ssh does not accept.
    #[error("an ssh address takes no password")]
    Password,
    /// The user, host or port is invalid.
    #[error("the address names no user, host or port that could exist")]
    Host,
    /// It is the folder of the store.
    #[error(
        "the address is this store itself, or a folder in or around it: nothing would be copied"
    )]
    Store,
    /// It names no repository.
    #[error("the address names no repository")]
    Path,
}

impl Remote {
    /// Parses an address: `ssh://`, `user@host:path`, `https://`, `file:///` or an absolute path.
    ///
    /// `http://` is accepted for this machine, and for others with `allow_http`.
    pub fn parse(text: &str, allow_http: bool) -> Result<Self, InvalidRemote> {
        if text.is_empty() {
            return Err(InvalidRemote::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(InvalidRemote::TooLong);
        }
        if text.trim() != text || text.chars().any(char::is_control) || clean(text) != text {
            return Err(InvalidRemote::Character);
        }
        if text.starts_with('-') {
            return Err(InvalidRemote::Dash);
        }
        let (way, shown) = if Path::new(text).is_absolute() {
            (Way::Folder(text.into()), text.to_owned())
        } else if let Some((scheme, rest)) = text.split_once("://") {
            match scheme {
                "ssh" => (Way::Ssh(parse_ssh(rest)?), text.to_owned()),
                "https" => (Way::Https, parse_http(rest)?.shown("https")),
                "http" => {
                    let url = parse_http(rest)?;
                    if !allow_http && !is_loopback(url.host) {
                        return Err(InvalidRemote::PlainHttp);
                    }
                    (Way::Http, url.shown("http"))
                }
                "file" => (Way::Folder(parse_file(rest)?), text.to_owned()),
                _ => return Err(InvalidRemote::Scheme(name_of_scheme(scheme))),
            }
        } else {
            (Way::Ssh(parse_scp(text)?), text.to_owned())
        };
        Ok(Self {
            text: text.to_owned(),
            shown,
            way,
        })
    }

    /// Returns the address for git, including credentials.
    ///
    /// Use it only for the repository's configuration, never for a person, a log or an argument.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the address without credentials.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the host or the folder, for people.
    pub fn place(&self) -> &str {
        match &self.way {
            Way::Folder(_) => &self.shown,
            Way::Ssh(ssh) => match ssh.destination.rsplit_once('@') {
                Some((_, host)) => host,
                None => &ssh.destination,
            },
            _ => {
                let rest = self.shown.split_once("://").map_or("", |(_, rest)| rest);
                rest.split('/').next().unwrap_or_default()
            }
        }
    }

    /// Returns the folder, if the remote is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.way {
            Way::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    pub(crate) fn ssh(&self) -> Option<&Ssh> {
        match &self.way {
            Way::Ssh(ssh) => Some(ssh),
            _ => None,
        }
    }

    pub(crate) fn is_plain_http(&self) -> bool {
        self.way == Way::Http
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Remote({})", self.shown)
    }
}

/// Removes the credentials of every URL in a text.
///
/// For http and https everything before the `@` is removed, since a token can be the user; for
/// other schemes only the password.
pub fn hide_credentials(text: &str) -> String {
    const MARK: &str = "://";
    let mut hidden = String::with_capacity(text.len());
    let mut start = 0;
    while let Some(found) = text[start..].find(MARK) {
        let mark = start + found;
        let after = &text[mark + MARK.len()..];
        let end = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | '`' | '<' | '>'))
            .unwrap_or(after.len());
        // A colon before two slashes starts the next address.
        let end = after.find(MARK).map_or(end, |next| next.min(end));
        let authority = &after[..end];
        hidden.push_str(&text[start..mark + MARK.len()]);
        match authority.rsplit_once('@') {
            Some((user_and_password, host)) => {
                let scheme = text[..mark]
                    .rsplit(|c: char| !c.is_ascii_alphanumeric())
                    .next();
                let is_http = scheme.is_some_and(|scheme| {
                    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
                });
                let (user, _) = user_and_password
                    .split_once(':')
                    .unwrap_or((user_and_password, ""));
                if !is_http && !user.is_empty() {
                    hidden.push_str(user);
                    hidden.push('@');
                }
                hidden.push_str(host);
            }
            None => hidden.push_str(authority),
        }
        start = mark + MARK.len() + end;
    }
    hidden.push_str(&text[start..]);
    hidden
}

/// The parts of an http URL.
struct Url<'a> {
    host: &'a str,
    /// Host and port, without user and password.
    place: &'a str,
    path: &'a str,
}

impl Url<'_> {
    fn shown(&self, scheme: &str) -> String {
        format!("{scheme}://{}{}", self.place, self.path)
    }
}

fn parse_http(rest: &str) -> Result<Url<'_>, InvalidRemote> {
    let (authority, path) = split_authority(rest)?;
    if !rest.bytes().all(|byte| byte.is_ascii_graphic()) || rest.contains(['?', '#', '\\']) {
        // A query could be a token, and git appends its own to the path.
        return Err(InvalidRemote::Character);
    }
    let (user_and_password, place) = split_user(authority)?;
    if user_and_password.is_some_and(|user| user.starts_with('-')) {
        return Err(InvalidRemote::Dash);
    }
    let (host, _) = parse_place(place)?;
    Ok(Url { host, place, path })
}

fn parse_ssh(rest: &str) -> Result<Ssh, InvalidRemote> {
    let (authority, _) = split_authority(rest)?;
    let (user, place) = split_user(authority)?;
    let (host, port) = parse_place(place)?;
    check_user(user)?;
    Ok(Ssh {
        destination: destination(user, host),
        port,
    })
}

fn parse_scp(text: &str) -> Result<Ssh, InvalidRemote> {
    // A colon inside brackets belongs to an IPv6 address.
    let start = match text.split_once(']') {
        Some((host, _)) if !host.contains('/') => host.len(),
        _ => 0,
    };
    let (authority, path) = match text[start..].find(':') {
        Some(colon) if !text[..start + colon].contains('/') => {
            (&text[..start + colon], &text[start + colon + 1..])
        }
        _ => return Err(InvalidRemote::Relative),
    };
    if path.starts_with(':') {
        return Err(InvalidRemote::Scheme(name_of_scheme(authority)));
    }
    if matches!(authority.as_bytes(), [letter] if letter.is_ascii_alphabetic()) {
        return Err(InvalidRemote::WindowsPath);
    }
    let (user, host) = split_user(authority)?;
    if user.is_none() && path.contains('@') {
        // `user:password@host:path`: git would use the host `user`.
        return Err(InvalidRemote::Password);
    }
    check_user(user)?;
    check_path(path)?;
    check_host(host)?;
    Ok(Ssh {
        destination: destination(user, host),
        port: None,
    })
}

fn parse_file(rest: &str) -> Result<PathBuf, InvalidRemote> {
    let decoded = decode(rest).ok_or(InvalidRemote::Character)?;
    // On Windows a drive letter follows the third slash.
    let path = if cfg!(windows) {
        PathBuf::from(decoded.trim_start_matches('/'))
    } else {
        PathBuf::from(decoded)
    };
    if path.is_absolute() && rest.starts_with('/') {
        Ok(path)
    } else {
        Err(InvalidRemote::Relative)
    }
}

/// Splits what follows `://` into the server and the path, which starts with a slash.
fn split_authority(rest: &str) -> Result<(&str, &str), InvalidRemote> {
    let slash = rest.find('/').ok_or(InvalidRemote::Path)?;
    let (authority, path) = rest.split_at(slash);
    check_path(path.trim_start_matches('/'))?;
    Ok((authority, path))
}

fn split_user(authority: &str) -> Result<(Option<&str>, &str), InvalidRemote> {
    match authority.split_once('@') {
        // git and curl disagree on the host here.
        Some((_, host)) if host.contains('@') => Err(InvalidRemote::Host),
        Some((user, host)) => Ok((Some(user), host)),
        None => Ok((None, authority)),
    }
}

fn check_user(user: Option<&str>) -> Result<(), InvalidRemote> {
    match user {
        None => Ok(()),
        Some(user) if user.starts_with('-') => Err(InvalidRemote::Dash),
        Some(user) if user.contains(':') => Err(InvalidRemote::Password),
        Some(user)
            if !user.is_empty() && user.bytes().all(|byte| is_name(byte) || byte == b'+') =>
        {
            Ok(())
        }
        Some(_) => Err(InvalidRemote::Host),
    }
}

fn check_path(path: &str) -> Result<(), InvalidRemote> {
    if path.is_empty() {
        Err(InvalidRemote::Path)
    } else if path.starts_with('-') {
        Err(InvalidRemote::Dash)
    } else {
        // git decodes the path of a URL.
        let decoded = decode(path).ok_or(InvalidRemote::Character)?;
        if decoded.chars().any(char::is_control) {
            return Err(InvalidRemote::Character);
        }
        Ok(())
    }
}

fn parse_place(place: &str) -> Result<(&str, Option<u16>), InvalidRemote> {
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    };
    check_host(host)?;
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse().map_err(|_| InvalidRemote::Host)?)
        }
        Some(_) => return Err(InvalidRemote::Host),
    };
    Ok((host, port))
}

fn check_host(host: &str) -> Result<(), InvalidRemote> {
    if host.starts_with('-') {
        return Err(InvalidRemote::Dash);
    }
    let is_valid = match in_brackets(host) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_name),
    };
    if is_valid {
        Ok(())
    } else {
        Err(InvalidRemote::Host)
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

fn in_brackets(host: &str) -> Option<&str> {
    host.strip_prefix('[')?.strip_suffix(']')
}

fn destination(user: Option<&str>, host: &str) -> String {
    let host = in_brackets(host).unwrap_or(host);
    match user {
        Some(user) => format!("{user}@{host}"),
        None => host.to_owned(),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = in_brackets(host).unwrap_or(host);
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Returns a scheme for an error message, if it is a plain name.
fn name_of_scheme(scheme: &str) -> String {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if !scheme.is_empty() && scheme.len() <= 20 && scheme.bytes().all(is_name) {
        scheme.to_owned()
    } else {
        "such".to_owned()
    }
}

/// Decodes `%XX`; `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, following @ ..] = rest {
        let code = following
            .get(..2)
            .filter(|code| *first == b'%' && code.iter().all(u8::is_ascii_hexdigit))
            .and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() {
            following.get(2..)?
        } else {
            following
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Result<String, InvalidRemote> {
        Remote::parse(text, false).map(|remote| remote.to_string())
    }

    #[test]
    fn accepts_addresses_that_run_no_program() {
        for (text, expected) in [
            ("git@git.home:me/memory.git", "git@git.home:me/memory.git"),
            ("nas:memory.git", "nas:memory.git"),
            ("me@[::1]:memory.git", "me@[::1]:memory.git"),
            ("git@host:/srv/my notes.git", "git@host:/srv/my notes.git"),
            ("ssh://host/memory.git", "ssh://host/memory.git"),
            (
                "ssh://git@host:2222/~me/memory.git",
                "ssh://git@host:2222/~me/memory.git",
            ),
            ("ssh://git@[::1]:22/m", "ssh://git@[::1]:22/m"),
            (
                "https://github.com/me/memory.git",
                "https://github.com/me/memory.git",
            ),
            ("https://host:8443/m", "https://host:8443/m"),
            ("http://localhost:3000/m.git", "http://localhost:3000/m.git"),
            ("http://127.8.9.1/m", "http://127.8.9.1/m"),
            ("http://[::1]:80/m", "http://[::1]:80/m"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
            assert_eq!(Remote::parse(text, false).unwrap().as_str(), text);
        }
        assert!(Remote::parse("http://nas/m", true).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn accepts_absolute_paths() {
        for (text, folder) in [
            ("/media/stick/memory.git", "/media/stick/memory.git"),
            ("/srv/a:b @c", "/srv/a:b @c"),
            ("file:///srv/memory.git", "/srv/memory.git"),
            ("file:///srv/my%20notes.git", "/srv/my notes.git"),
        ] {
            let remote = Remote::parse(text, false).unwrap();
            assert_eq!(remote.folder(), Some(Path::new(folder)), "{text}");
            assert_eq!(remote.shown(), text);
        }
    }

    /// GIT-03, HOOK-02.
    #[test]
    fn refuses_everything_else() {
        let scheme = |name: &str| InvalidRemote::Scheme(name.to_owned());
        for (text, expected) in [
            ("", InvalidRemote::Empty),
            ("ext::sh -c touch% /tmp/x", scheme("ext")),
            ("fd::17", scheme("fd")),
            ("my.host::x", scheme("my.host")),
            ("git@host::x", scheme("such")),
            ("git://host/m", scheme("git")),
            ("ftp://host/m", scheme("ftp")),
            ("HTTPS://host/m", scheme("HTTPS")),
            ("git+ssh://host/m", scheme("git+ssh")),
            ("a b://host/m", scheme("such")),
            ("ext::sh://host/m", scheme("such")),
            ("-oProxyCommand=x", InvalidRemote::Dash),
            ("--upload-pack=x", InvalidRemote::Dash),
            ("ssh://-oProxyCommand=x/m", InvalidRemote::Dash),
            ("ssh://-oProxyCommand=x@host/m", InvalidRemote::Dash),
            ("ssh://git@-oProxyCommand=x/m", InvalidRemote::Dash),
            ("ssh://%2DoProxyCommand=x/m", InvalidRemote::Host),
            ("ssh://host/-x", InvalidRemote::Dash),
            ("git@-host:m", InvalidRemote::Dash),
            ("-git@host:m", InvalidRemote::Dash),
            ("git@host:-m", InvalidRemote::Dash),
            ("https://-host/m", InvalidRemote::Dash),
            ("https://-u:p@host/m", InvalidRemote::Dash),
            ("git@host:m\n", InvalidRemote::Character),
            (" git@host:m", InvalidRemote::Character),
            ("git@host:m\u{1b}[31m", InvalidRemote::Character),
            ("git@host:m\u{202e}x", InvalidRemote::Character),
            ("ssh://host/m%0ax", InvalidRemote::Character),
            ("https://host/m x", InvalidRemote::Character),
            ("https://host/m?token=x", InvalidRemote::Character),
            ("https://host/m#x", InvalidRemote::Character),
            ("memory.git", InvalidRemote::Relative),
            ("../memory.git", InvalidRemote::Relative),
            ("./git@host:m", InvalidRemote::Relative),
            ("~/memory.git", InvalidRemote::Relative),
            ("file://host/m", InvalidRemote::Relative),
            ("file://m", InvalidRemote::Relative),
            ("http://nas/m", InvalidRemote::PlainHttp),
            ("http://localhost.example.com/m", InvalidRemote::PlainHttp),
            ("http://localhost@evil.example/m", InvalidRemote::PlainHttp),
            ("ssh://git:secret@host/m", InvalidRemote::Password),
            ("git:secret@host:m", InvalidRemote::Password),
            ("ssh://host:port/m", InvalidRemote::Host),
            ("ssh://host:+22/m", InvalidRemote::Host),
            ("ssh://host:/m", InvalidRemote::Host),
            ("ssh://host:70000/m", InvalidRemote::Host),
            ("ssh:///m", InvalidRemote::Host),
            ("ssh://@host/m", InvalidRemote::Host),
            ("ssh://[::1/m", InvalidRemote::Host),
            ("ssh://h$(id)/m", InvalidRemote::Host),
            ("g`id`@host:m", InvalidRemote::Host),
            ("https://u:p@ss@host/m", InvalidRemote::Host),
            ("https://user:pa/ss@host/m", InvalidRemote::Host),
            ("ssh://host", InvalidRemote::Path),
            ("https://host/", InvalidRemote::Path),
            ("git@host:", InvalidRemote::Path),
        ] {
            assert_eq!(shown(text), Err(expected), "{text:?}");
        }
        let long = format!("git@host:{}", "x".repeat(MAX_LENGTH));
        assert_eq!(shown(&long), Err(InvalidRemote::TooLong));
    }

    /// git on Windows reads a letter before the colon as a drive, git elsewhere as a host. A path
    /// copied with a settings file is more likely than such a host.
    #[cfg(unix)]
    #[test]
    fn a_path_of_windows_is_no_host() {
        for text in ["C:/memory.git", "C:\\memory.git", "d:memory.git"] {
            assert_eq!(shown(text), Err(InvalidRemote::WindowsPath), "{text}");
        }
    }

    /// GIT-11.
    #[test]
    fn credentials_are_for_git_only() {
        for text in [
            "https://me:s3cret@host:8443/m.git",
            "https://s3cret@host:8443/m.git",
            "https://s3cret:@host:8443/m.git",
        ] {
            let remote = Remote::parse(text, false).unwrap();
            assert_eq!(remote.as_str(), text);
            assert_eq!(remote.shown(), "https://host:8443/m.git");
            assert_eq!(remote.to_string(), "https://host:8443/m.git");
            assert_eq!(format!("{remote:?}"), "Remote(https://host:8443/m.git)");
        }
    }

    /// GIT-11.
    #[test]
    fn credentials_are_taken_out_of_every_text() {
        for (text, expected) in [
            ("", ""),
            ("no address", "no address"),
            (
                "fatal: unable to access 'https://me:s3cret@host/m/': x",
                "fatal: unable to access 'https://host/m/': x",
            ),
            ("https://token@host", "https://host"),
            ("HTTP://token@host/a@b", "HTTP://host/a@b"),
            ("<https://a:b@c@host>", "<https://host>"),
            ("ssh://git@host/m", "ssh://git@host/m"),
            ("ssh://git:s3cret@host/m", "ssh://git@host/m"),
            ("ftp://:s3cret@host", "ftp://host"),
            (
                "http://a:b@h1/ then https://c:d@h2/",
                "http://h1/ then https://h2/",
            ),
            ("https:///x@y", "https:///x@y"),
            ("git@host:m", "git@host:m"),
            ("://a:b@c", "://a@c"),
            ("://https://:s3cret@host/", "://https://host/"),
            (
                "ssh://me:s3cret@https://token@host",
                "ssh://me@https://host",
            ),
            (
                "https://token@://://me:s3cret@host",
                "https://://://me@host",
            ),
        ] {
            assert_eq!(hide_credentials(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn accepted_addresses_are_safe(
            text in prop_oneof![
                any::<String>(),
                "(ssh://|https?://|file://|ext::|)[-a-z@:/.%\\[\\] ]{0,30}",
            ],
        ) {
            if let Ok(remote) = Remote::parse(&text, true) {
                prop_assert!(!text.starts_with('-') && !text.chars().any(char::is_control));
                prop_assert_eq!(remote.as_str(), text);
                if let Some(ssh) = remote.ssh() {
                    prop_assert!(!ssh.destination.starts_with('-'));
                    prop_assert!(!ssh.destination.contains("@-"));
                }
            }
        }

        #[test]
        fn no_password_is_left(
            before in "([ -~é]|[a-z]{0,5}://){0,20}",
            user in "[a-z]{0,5}",
            password in "[A-Z0-9%:@!]{8,20}",
            after in "( |/|'|\")[ -~]{0,20}",
        ) {
            let text = format!("{before}https://{user}:{password}@host{after}");
            let hidden = hide_credentials(&text);
            prop_assert!(!hidden.contains(&password), "{hidden}");
            prop_assert_eq!(hide_credentials(&hidden), hidden);
        }
    }
}
