//! The base URL of a server. It decides where the key and the texts go, so it is parsed strictly.

use std::{fmt, net::Ipv4Addr, num::NonZeroU16, str::FromStr};

/// A URL that begins with `http://` or `https://`, without a trailing slash.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    is_https: bool,
    host: String,
}

/// Why a text is not a valid base URL. The text is not repeated, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// The protocol is missing or not supported.
    #[error("it does not begin with http:// or https://")]
    Scheme,
    /// The host is missing.
    #[error("it names no host")]
    Host,
    /// It has a user name or password.
    #[error("it contains a user name or a password; the key is a setting of its own")]
    Credentials,
    /// The host is an IPv6 address in brackets.
    #[error("IPv6 addresses are not supported; use a host name")]
    Brackets,
    /// The port is not a valid number.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// It has white space, a query, a fragment, or a character that is not ASCII.
    #[error("it contains a character that a base URL cannot have")]
    Character,
}

impl FromStr for BaseUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let text = text.trim().trim_end_matches('/');
        let (is_https, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else {
            return Err(InvalidUrl::Scheme);
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"<>`{}|^".contains(&byte);
        if !rest.bytes().all(is_plain) {
            return Err(InvalidUrl::Character);
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidUrl::Credentials);
        }
        if authority.contains('[') {
            return Err(InvalidUrl::Brackets);
        }
        let host = match authority.split_once(':') {
            Some((host, port)) => {
                port.parse::<NonZeroU16>().map_err(|_| InvalidUrl::Port)?;
                host
            }
            None => authority,
        };
        if host.is_empty() {
            return Err(InvalidUrl::Host);
        }
        Ok(Self {
            text: text.to_owned(),
            is_https,
            host: host.to_ascii_lowercase(),
        })
    }
}

impl BaseUrl {
    /// Returns the host name or address in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns whether the server is on this machine.
    pub fn is_this_machine(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self
                .host
                .parse::<Ipv4Addr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// Appends a path.
    pub(super) fn join(&self, path: &str) -> String {
        format!("{}/{path}", self.text)
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_parsed_strictly() {
        for (text, host, is_here) in [
            ("https://api.openai.com/v1", "api.openai.com", false),
            ("https://API.example.com/v1//", "api.example.com", false),
            ("http://127.0.0.1:11434/v1", "127.0.0.1", true),
            (" http://localhost/ ", "localhost", true),
            (
                "http://127.0.0.1.evil.example",
                "127.0.0.1.evil.example",
                false,
            ),
        ] {
            let url: BaseUrl = text.parse().unwrap();
            assert_eq!(
                (url.host(), url.is_this_machine()),
                (host, is_here),
                "{text}"
            );
            assert!(!url.to_string().ends_with('/'), "{url}");
        }
        for (text, problem) in [
            ("", InvalidUrl::Scheme),
            ("ftp://host", InvalidUrl::Scheme),
            ("api.openai.com/v1", InvalidUrl::Scheme),
            ("https://", InvalidUrl::Scheme),
            ("https:///v1", InvalidUrl::Host),
            ("https://:80/v1", InvalidUrl::Host),
            ("https://me:pass@host/v1", InvalidUrl::Credentials),
            ("http://[::1]:8080/v1", InvalidUrl::Brackets),
            ("http://host:0", InvalidUrl::Port),
            ("http://host:99999", InvalidUrl::Port),
            ("http://host:x", InvalidUrl::Port),
            ("http://host/a b", InvalidUrl::Character),
            ("http://host/a\r\nX: y", InvalidUrl::Character),
            ("http://hôst/", InvalidUrl::Character),
            ("http://host/?q=1", InvalidUrl::Character),
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(problem), "{text:?}");
        }
    }
}
