//! One POST, with one deadline and one bound on the answer.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use ureq::http::HeaderMap;

use crate::base::BaseUrl;

/// For so long a connection that nobody accepts is tried again.
const STARTING: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// An answer of whatever status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// There was no whole answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Not in time.
    Timeout,
    /// It is larger than so many bytes.
    TooLarge(u64, u16),
    /// It is no HTTP.
    Protocol(String),
    /// No connection, or one that broke.
    Network(String),
}

/// What makes the connections. None is kept: calls are minutes apart, and a connection that a server has closed in the
/// meantime costs more than a new one.
pub(crate) fn agent(base: &BaseUrl) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        // A redirect would carry prompts to a place that nobody configured.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .user_agent(concat!("triphammer/", env!("CARGO_PKG_VERSION")));
    if base.is_loopback() {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Sends `body` and reads the answer, at most `most` bytes of it.
pub(crate) fn post(
    agent: &ureq::Agent,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
    most: u64,
) -> Result<Answer, Failure> {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(Failure::Timeout);
        }
        let mut request = agent.post(url).config().timeout_global(Some(left)).build();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match request.send(body) {
            Ok(response) => return read(response, most),
            Err(ureq::Error::Io(error))
                if error.kind() == io::ErrorKind::ConnectionRefused && start.elapsed() < STARTING =>
            {
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(failure(error)),
        }
    }
}

fn read(response: ureq::http::Response<ureq::Body>, most: u64) -> Result<Answer, Failure> {
    let (parts, body) = response.into_parts();
    let status = parts.status.as_u16();
    let mut bytes = Vec::new();
    body.into_reader()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failure(ureq::Error::from(error)))?;
    if bytes.len() as u64 > most {
        return Err(Failure::TooLarge(most, status));
    }
    Ok(Answer { status, headers: parts.headers, body: bytes })
}

fn failure(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::Timeout,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Failure::Timeout,
        ureq::Error::Io(error) => Failure::Network(error.to_string()),
        ureq::Error::HostNotFound => Failure::Network("there is no host of this name".to_owned()),
        ureq::Error::Protocol(error) => Failure::Protocol(error.to_string()),
        ureq::Error::Http(error) => Failure::Protocol(error.to_string()),
        other => Failure::Network(other.to_string()),
    }
}
