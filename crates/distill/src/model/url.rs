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
#[error("{0}")]
pub struct InvalidUrl(&'static str);

impl FromStr for BaseUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let text = text.trim().trim_end_matches('/');
        let (is_https, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else {
            return Err(InvalidUrl("it does not begin with http:// or https://"));
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"<>`{}|^".contains(&byte);
        if !rest.bytes().all(is_plain) {
            return Err(InvalidUrl(
                "it contains a character that a base URL cannot have",
            ));
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidUrl(
                "it contains a user name or a password; the key is a setting of its own",
            ));
        }
        if authority.contains('[') {
            return Err(InvalidUrl(
                "IPv6 addresses are not supported; use a host name",
            ));
        }
        let host = match authority.split_once(':') {
            Some((host, port)) => {
                port.parse::<NonZeroU16>()
                    .map_err(|_| InvalidUrl("its port is not a number from 1 to 65535"))?;
                host
            }
            None => authority,
        };
        if host.is_empty() {
            return Err(InvalidUrl("it names no host"));
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
            ("", "does not begin"),
            ("ftp://host", "does not begin"),
            ("api.openai.com/v1", "does not begin"),
            ("https://", "does not begin"),
            ("https:///v1", "names no host"),
            ("https://:80/v1", "names no host"),
            ("https://me:pass@host/v1", "a user name"),
            ("http://[::1]:8080/v1", "IPv6"),
            ("http://host:0", "its port"),
            ("http://host:99999", "its port"),
            ("http://host:x", "its port"),
            ("http://host/a b", "a character"),
            ("http://host/a\r\nX: y", "a character"),
            ("http://hôst/", "a character"),
            ("http://host/?q=1", "a character"),
        ] {
            let error = text.parse::<BaseUrl>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }
}
