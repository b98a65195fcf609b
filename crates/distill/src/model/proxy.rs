//! Which proxy a request takes, by the rules that programs share: a variable for each protocol, one for
//! all, one for the hosts that need none.

use super::BaseUrl;

/// What the environment says of proxies. Whoever reads it hands it in.
#[derive(Clone, Default)]
pub struct Proxies {
    /// For `https` addresses.
    pub https: Option<String>,
    /// For `http` addresses.
    pub http: Option<String>,
    /// For those that have none of their own.
    pub all: Option<String>,
    /// Hosts that are reached without one, separated by commas.
    pub none: Option<String>,
}

impl std::fmt::Debug for Proxies {
    // An address of a proxy may hold a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxies").finish_non_exhaustive()
    }
}

impl Proxies {
    /// The proxy on the way to a server; none on the way to this machine.
    pub fn on_the_way_to(&self, url: &BaseUrl) -> Option<&str> {
        self.named_for(url)
            .filter(|_| !url.is_this_machine() && !self.is_excepted(url))
    }

    /// The proxy that is named for the protocol of a server, excepted or not.
    pub(super) fn named_for(&self, url: &BaseUrl) -> Option<&str> {
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
    fn a_proxy_is_taken_where_none_is_excepted() {
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
            assert_eq!(proxies(none).on_the_way_to(&url), expected, "{none} {url}");
        }
        let shown = format!("{:?}", proxies(""));
        assert!(!shown.contains("p:1"), "{shown}");
    }
}
