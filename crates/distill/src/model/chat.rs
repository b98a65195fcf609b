//! HTTP requests in the form of OpenAI's chat completions, sent with ureq.
//!
//! Redirects are not followed, because the person named one server. ureq reads the environment's proxy;
//! a model on this machine is asked without one.

use std::{fmt, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::{
    Agent, Body,
    config::Config,
    tls::{RootCerts, TlsConfig},
};

use super::{BaseUrl, Error, MAX_ANSWER, Provider, clipped};

/// How many bytes of an error response are read for its message.
const MAX_REFUSAL: usize = 16 * 1024;

/// An API key. It appears in no output.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Returns a key, or `None` if the text cannot be one. The key becomes part of a header line.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_key.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

/// A model reached over HTTP.
#[derive(Clone)]
pub struct Endpoint {
    /// The model's provider.
    pub provider: Provider,
    /// Its name.
    pub model: String,
    /// The base URL of its API.
    pub base_url: BaseUrl,
    /// The API key. A local server may need none.
    pub key: Option<Key>,
    /// The time limit of a request, from beginning to end.
    pub timeout: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written by hand, so that a new field is not printed by accident.
        formatter
            .debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("host", &self.base_url.host())
            .finish_non_exhaustive()
    }
}

/// The part of an answer that is parsed.
#[derive(Deserialize)]
struct ChatCompletion {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Message,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
}

impl Endpoint {
    /// Returns the body of a request.
    fn body(&self, system: &str, user: &str) -> Value {
        json!({
            "model": self.model,
            "messages": [
                { "role": "system", "content": system },
                { "role": "user", "content": user },
            ],
            "temperature": 0.2,
            "stream": false,
        })
    }

    pub(super) fn ask(&self, system: &str, user: &str) -> Result<String, Error> {
        let answer = self.exchange(&self.body(system, user).to_string())?;
        let answer: ChatCompletion =
            serde_json::from_slice(&answer).map_err(|_| Error::NotJson(self.host()))?;
        let first = answer.choices.into_iter().next();
        first
            .and_then(|choice| choice.message.content)
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| Error::NoContent(self.host()))
    }

    /// Sends a request and returns the body of the response.
    fn exchange(&self, body: &str) -> Result<Vec<u8>, Error> {
        let mut request = self
            .agent()
            .post(self.base_url.join("chat/completions"))
            .header("Content-Type", "application/json");
        if let Some(Key(key)) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let response = request.send(body).map_err(|error| self.converted(&error))?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut read = |most| read(&mut body, most);
        match status {
            200..300 => match read(MAX_ANSWER) {
                Err(ureq::Error::BodyExceedsLimit(_)) => Err(Error::TooLarge),
                answer => answer.map_err(|error| self.converted(&error)),
            },
            300..400 => Err(Error::Redirect(self.host())),
            // The message is optional: without it the status is reported alone.
            status => Err(Error::Status {
                host: self.host(),
                status,
                says: self.redact_key(&reason(&read(MAX_REFUSAL).unwrap_or_default())),
            }),
        }
    }

    /// Returns the client for one request.
    fn agent(&self) -> Agent {
        // The system's own verifier, so that a company's authority counts.
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let mut config = Config::builder()
            .tls_config(tls)
            .timeout_global(Some(self.timeout))
            .max_redirects(0)
            .http_status_as_error(false);
        if self.base_url.is_this_machine() {
            config = config.proxy(None);
        }
        config.build().into()
    }

    fn host(&self) -> String {
        self.base_url.host().to_owned()
    }

    fn converted(&self, error: &ureq::Error) -> Error {
        match error {
            ureq::Error::Timeout(_) => Error::Timeout(self.timeout),
            error => Error::Unreachable {
                host: self.host(),
                reason: self.redact_key(&clipped(&error.to_string())),
            },
        }
    }

    /// Removes the key from a text: a server may repeat it in a form that redaction does not
    /// recognise.
    fn redact_key(&self, text: &str) -> String {
        match &self.key {
            Some(Key(key)) => text.replace(key.as_str(), anamnesis_text::redact::MASK),
            None => text.to_owned(),
        }
    }
}

fn read(body: &mut Body, most: usize) -> Result<Vec<u8>, ureq::Error> {
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    body.with_config().limit(most).read_to_vec()
}

/// Returns the message of an error response in the usual form.
fn reason(body: &[u8]) -> String {
    let says: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = says.get("error").unwrap_or(&says);
    let message = error.get("message").unwrap_or(error);
    clipped(message.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use anamnesis_testkit::model_server::{ModelServer, Play, says};

    use super::*;

    /// A key in a form that redaction does not recognise.
    const KEY: &str = "plain-key-of-nobody-0815";

    fn endpoint(server: &ModelServer) -> Endpoint {
        Endpoint {
            provider: Provider::OpenAi,
            model: "gpt-test".to_owned(),
            base_url: server.base_url().parse().unwrap(),
            key: Key::new(KEY),
            timeout: Duration::from_secs(20),
        }
    }

    /// Asks a server that answers like this.
    fn answer(play: Play) -> Result<String, Error> {
        let server = ModelServer::start([play]);
        let endpoint = Endpoint {
            timeout: Duration::from_secs(1),
            ..endpoint(&server)
        };
        endpoint.ask("do", "it")
    }

    #[test]
    fn a_request_has_the_form_of_a_chat_completion() {
        let server = ModelServer::start([says("fine")]);
        assert_eq!(
            endpoint(&server).ask("do this", "with \"that\"\n").unwrap(),
            "fine"
        );
        let requests = server.requests();
        let [request] = requests.as_slice() else {
            panic!("{requests:?}");
        };
        assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        assert_eq!(
            request.text,
            r#"{"model":"gpt-test","messages":[{"role":"system","content":"do this"},{"role":"user","content":"with \"that\"\n"}],"temperature":0.2,"stream":false}"#
        );
    }

    #[test]
    fn without_a_key_none_is_sent() {
        let server = ModelServer::start([says("fine")]);
        let endpoint = Endpoint {
            key: None,
            ..endpoint(&server)
        };
        endpoint.ask("a", "b").unwrap();
        assert_eq!(server.requests()[0].header("authorization"), None);
    }

    #[test]
    fn bad_answers_are_told_apart() {
        // LLM-01, LLM-03
        let refusal = format!(
            r#"{{"error": {{"message": "wrong key {KEY}\n\u001b[31m{}", "type": "x"}}}}"#,
            "no ".repeat(200)
        );
        for (play, expected) in [
            (
                Play::Body(String::new()),
                "127.0.0.1 did not answer with a chat completion",
            ),
            (
                Play::Body("<html>".to_owned()),
                "127.0.0.1 did not answer with a chat completion",
            ),
            (
                Play::Body(r#"{"choices": [{"message": {"content": "ha"#.to_owned()),
                "127.0.0.1 did not answer with a chat completion",
            ),
            (
                Play::Body(r#"{"choices": [{"message": {"content": 5}}]}"#.to_owned()),
                "127.0.0.1 did not answer with a chat completion",
            ),
            (
                Play::Body("{}".to_owned()),
                "the answer of 127.0.0.1 is empty",
            ),
            (
                Play::Body(r#"{"choices": [{"message": {"content": null}}]}"#.to_owned()),
                "the answer of 127.0.0.1 is empty",
            ),
            (says(" \n"), "the answer of 127.0.0.1 is empty"),
            (
                Play::Refuses(500, "oops".to_owned()),
                "127.0.0.1 answered 500",
            ),
            (
                Play::Refuses(429, r#"{"error": "slow down"}"#.to_owned()),
                "127.0.0.1 answered 429: slow down",
            ),
            (Play::Silence, "no answer within 1 s"),
            (Play::Drips, "no answer within 1 s"),
            (Play::Long(1 << 30), "the answer is over 1024 KiB"),
        ] {
            let error = answer(play.clone()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{play:?}");
        }
        let text = answer(Play::Refuses(401, refusal)).unwrap_err().to_string();
        assert!(
            text.starts_with("127.0.0.1 answered 401: wrong key [REDACTED] no no"),
            "{text}"
        );
        assert!(
            text.chars().count() < 250 && !text.contains('\u{1b}'),
            "{text}"
        );
    }

    #[test]
    fn a_redirect_is_not_followed() {
        // LLM-03
        let other = ModelServer::start([says("mine now")]);
        let server = ModelServer::start([Play::Redirects(other.base_url())]);
        let error = endpoint(&server).ask("a", "b").unwrap_err().to_string();
        assert_eq!(
            error,
            "127.0.0.1 redirects the request, and redirects are not followed; check the base URL"
        );
        assert_eq!(other.requests(), []);
    }

    #[test]
    fn an_endless_slow_answer_times_out() {
        let error = answer(Play::Drips).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    }

    #[test]
    fn an_unreachable_server_is_reported() {
        let url = {
            let server = ModelServer::start([]);
            server.base_url()
        };
        let server = ModelServer::start([says("x")]);
        let endpoint = Endpoint {
            base_url: url.parse().unwrap(),
            ..endpoint(&server)
        };
        let error = endpoint.ask("a", "b").unwrap_err().to_string();
        assert!(error.starts_with("cannot reach 127.0.0.1: "), "{error}");
    }

    #[test]
    fn the_key_appears_in_no_output() {
        let server = ModelServer::start([]);
        let shown = format!("{:?}", super::super::Model::Endpoint(endpoint(&server)));
        assert!(
            shown.contains("gpt-test") && !shown.contains(KEY),
            "{shown}"
        );
        assert!(!format!("{:?}", Key::new(KEY)).contains(KEY));
        for text in ["", " ", "a b", "a\r\nX: y", "schlüssel"] {
            assert_eq!(Key::new(text), None, "{text:?}");
        }
    }
}
