//! Chooses the proxy for a request by the conventional environment variables: one per protocol, one
//! for all protocols, and a list of hosts that need none.

use super::BaseUrl;

/// The environment's proxy settings, passed in by the caller.
#[derive(Clone, Default)]
pub struct Proxies {
    /// The proxy for `https` URLs.
    pub https: Option<String>,
    /// The proxy for `http` URLs.
    pub http: Option<String>,
    /// The proxy for URLs without a proxy of their own.
    pub all: Option<String>,
    /// Hosts that need no proxy, separated by commas.
    pub none: Option<String>,
}

impl std::fmt::Debug for Proxies {
    // A proxy's address may contain a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxies").finish_non_exhaustive()
    }
}

impl Proxies {
    /// Returns the proxy for a server, `None` for this machine and excepted hosts.
    pub fn proxy_for(&self, url: &BaseUrl) -> Option<&str> {
        self.protocol_proxy(url)
            .filter(|_| !url.is_this_machine() && !self.is_excepted(url))
    }

    /// Returns the proxy for a server's protocol, even if the host is excepted.
    pub(super) fn protocol_proxy(&self, url: &BaseUrl) -> Option<&str> {
        let own = if url.is_https() {
            &self.https
        } else {
            &self.http
        };
        own.as_deref().or(self.all.as_deref())
    }

    fn is_excepted(&self, url: &BaseUrl) -> bool {
        let (host, port) = (url.host(), url.port().to_string());
        let excepted = self.none.as_deref().unwrap_or_default();
        excepted
            .split([',', ' '])
            .map(|entry| entry.trim().to_ascii_lowercase())
            .filter(|entry| !entry.is_empty())
            .any(|entry| {
                let (name, at) = entry.split_once(':').unwrap_or((&entry, &port));
                let name = name.trim_start_matches("*.").trim_start_matches('.');
                let is_below = || {
                    host.strip_suffix(name)
                        .is_some_and(|rest| rest.ends_with('.'))
                };
                entry == "*" || (at == port && (host == name || is_below()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_follow_the_environment_and_its_exceptions() {
        let proxies = |none: &str| Proxies {
            https: Some("http://p:1".to_owned()),
            http: None,
            all: Some("http://p:2".to_owned()),
            none: Some(none.to_owned()),
        };
        for (none, url, expected) in [
            ("", "https://api.example.com/v1", Some("http://p:1")),
            ("", "http://api.example.com/v1", Some("http://p:2")),
            ("", "http://127.0.0.1:11434", None),
            ("", "https://localhost", None),
            ("*", "https://api.example.com", None),
            ("example.com", "https://api.example.com", None),
            (".example.com", "https://api.example.com", None),
            ("a, *.EXAMPLE.com ,b", "https://api.example.com", None),
            ("api.example.com:443", "https://api.example.com", None),
            (
                "api.example.com:8443",
                "https://api.example.com",
                Some("http://p:1"),
            ),
            ("ample.com", "https://api.example.com", Some("http://p:1")),
        ] {
            let url: BaseUrl = url.parse().unwrap();
            assert_eq!(proxies(none).proxy_for(&url), expected, "{none} {url}");
        }
        let shown = format!("{:?}", proxies(""));
        assert!(!shown.contains("p:1"), "{shown}");
    }
}
