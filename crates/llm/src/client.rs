//! A service, and how it is asked.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::{BadUrl, BaseUrl};
use crate::error::{LlmError, LlmFault, Told};
use crate::http::{self, Answer, Failure};
use crate::key::{BadKey, Key};
use crate::reply::Reply;
use crate::request::Request;
use crate::{anthropic, codes, openai, reset};

/// Bytes of an answer. The largest real ones are a few hundred kilobytes.
const LARGEST: u64 = 16 << 20;

/// Whoever answers requests.
pub trait Client: Send + Sync {
    /// Asks once.
    fn complete(&self, request: &Request) -> Result<Reply, LlmError>;
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Chat completions, as `OpenAI` began them.
    #[serde(rename = "openai")]
    OpenAi,
    /// Messages, as Anthropic began them.
    Anthropic,
}

impl Api {
    /// Its name in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where its founder's service is.
    pub const fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// The environment variable that commonly names another place.
    pub const fn url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
        }
    }

    /// The environment variable that commonly holds the key.
    pub const fn key_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name of no wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no interface; write `openai` or `anthropic`")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Self, UnknownApi> {
        let known = [Self::OpenAi, Self::Anthropic].into_iter().find(|api| api.name() == name);
        known.ok_or_else(|| UnknownApi(name.to_owned()))
    }
}

/// A place where a model is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// How it is spoken to.
    pub api: Api,
    /// Where it is.
    pub base: BaseUrl,
    /// What opens it; local servers need none.
    pub key: Option<Key>,
}

/// A place where a model is asked cannot be made out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The URL is none.
    #[error("{from}: {error}")]
    Url {
        /// Where the URL comes from.
        from: String,
        /// What is wrong.
        error: BadUrl,
    },
    /// The key is none.
    #[error("environment variable {variable}: {error}")]
    Key {
        /// The variable.
        variable: String,
        /// What is wrong.
        error: BadKey,
    },
    /// A key that was asked for by name is not there.
    #[error(
        "environment variable {0} is not set; set it to the key of the service and let it reach this process"
    )]
    NoKey(String),
    /// The key could be read on its way.
    #[error("the key would go to `{0}` unencrypted; use https://")]
    Exposed(String),
}

impl Endpoint {
    /// Works out a place from what is configured, else from the environment, else the founder's service. A variable that
    /// is named has to hold a key; the common one may be missing.
    pub fn resolve(
        api: Api,
        base_url: Option<&str>,
        key_env: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SetupError> {
        let from_env = || env(api.url_variable()).filter(|url| !url.trim().is_empty());
        let (from, url) = match base_url {
            Some(url) => ("base_url".to_owned(), url.to_owned()),
            None => from_env().map_or_else(
                || ("the default".to_owned(), api.default_url().to_owned()),
                |url| (format!("environment variable {}", api.url_variable()), url),
            ),
        };
        let base: BaseUrl = url.parse().map_err(|error| SetupError::Url { from, error })?;
        let variable = key_env.unwrap_or(api.key_variable());
        let key = env(variable).filter(|key| key_env.is_some() || !key.trim().is_empty());
        if key.is_none() && key_env.is_some() {
            return Err(SetupError::NoKey(variable.to_owned()));
        }
        let key = key.map(|key| Key::new(&key)).transpose();
        let key = key.map_err(|error| SetupError::Key { variable: variable.to_owned(), error })?;
        if key.is_some() && base.is_exposed() {
            return Err(SetupError::Exposed(base.host().to_owned()));
        }
        Ok(Self { api, base, key })
    }

    /// Where requests go.
    fn url(&self) -> String {
        self.base.join(match self.api {
            Api::OpenAi => "/chat/completions",
            // Both ways of writing the base are common.
            Api::Anthropic if self.base.ends_with("/v1") => "/messages",
            Api::Anthropic => "/v1/messages",
        })
    }
}

/// Asks over HTTP.
#[derive(Debug)]
pub struct HttpClient {
    endpoint: Endpoint,
    url: String,
    agent: ureq::Agent,
}

impl HttpClient {
    /// A client of a place.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { url: endpoint.url(), agent: http::agent(&endpoint.base), endpoint }
    }

    fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let api = self.endpoint.api;
        let body = match api {
            // It refuses the name of the bound that all others know.
            Api::OpenAi => openai::body(request, self.endpoint.base.host() == "api.openai.com"),
            Api::Anthropic => anthropic::body(request),
        };
        let key = self.endpoint.key.as_ref().map(Key::reveal);
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers = vec![("content-type", "application/json")];
        match api {
            Api::OpenAi => headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer))),
            Api::Anthropic => {
                headers.push(("anthropic-version", anthropic::VERSION));
                headers.extend(key.map(|key| ("x-api-key", key)));
            }
        }
        let body = body.to_string();
        http::post(&self.agent, &self.url, &headers, body.as_bytes(), request.timeout, LARGEST)
    }

    fn read(&self, request: &Request, answer: &Answer) -> Result<Reply, LlmError> {
        let status = answer.status;
        let parsed = serde_json::from_slice::<Value>(&answer.body);
        let no_json = parsed.as_ref().err().map(ToString::to_string);
        let body = parsed.unwrap_or(Value::Null);
        let id =
            ["x-request-id", "request-id"].iter().find_map(|name| answer.headers.get(*name)?.to_str().ok());
        let id =
            id.or_else(|| body["request_id"].as_str()).or_else(|| body["id"].as_str()).map(codes::bounded);
        let usage = match self.endpoint.api {
            Api::OpenAi => openai::usage(&body),
            Api::Anthropic => anthropic::usage(&body),
        };
        let fail = |fault: LlmFault, message: &str| {
            let mut error = self.error(request, fault, message);
            error.told.request_id.clone_from(&id);
            LlmError { status: Some(status), usage, ..error }
        };
        if let Some(fault) = codes::fault(status, &body) {
            let limits = matches!(fault, LlmFault::RateLimit | LlmFault::Quota | LlmFault::Overloaded);
            let reset_at = || reset::time(&answer.headers, &body, Timestamp::now());
            return Err(LlmError {
                reset_at: limits.then(reset_at).flatten(),
                ..fail(fault, &codes::message(&body, &answer.body))
            });
        }
        if let Some(error) = no_json {
            return Err(fail(LlmFault::Protocol, &format!("the answer is no JSON: {error}")));
        }
        let reply = match self.endpoint.api {
            Api::OpenAi => openai::reply(&body, &request.model),
            Api::Anthropic => anthropic::reply(&body, request),
        };
        match reply {
            Ok(reply) => Ok(Reply { request_id: id, ..reply }),
            Err((fault, message)) => Err(fail(fault, &message)),
        }
    }

    fn error(&self, request: &Request, fault: LlmFault, message: &str) -> LlmError {
        let told = Told {
            place: self.url.clone(),
            model: request.model.clone(),
            // A service may repeat the key that it does not like.
            message: match &self.endpoint.key {
                Some(key) => codes::bounded(&key.scrub(message)),
                None => codes::bounded(message),
            },
            request_id: None,
        };
        LlmError { fault, status: None, reset_at: None, usage: None, told: Box::new(told) }
    }
}

impl Client for HttpClient {
    fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let answer = self.send(request).map_err(|failure| match failure {
            Failure::Timeout => {
                let limit = format!("the limit is {} s", request.timeout.as_secs_f64());
                self.error(request, LlmFault::Timeout, &limit)
            }
            Failure::TooLarge(most, status) => LlmError {
                status: Some(status),
                ..self.error(
                    request,
                    LlmFault::Protocol,
                    &format!("the answer is larger than {most} bytes and was dropped"),
                )
            },
            Failure::Protocol(what) => self.error(request, LlmFault::Protocol, &what),
            Failure::Network(what) => self.error(request, LlmFault::Network, &what),
        })?;
        self.read(request, &answer)
    }
}
