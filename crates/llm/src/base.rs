//! Where a service is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The address that a service's paths are appended to, such as `https://api.example.com/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    /// Without the brackets of an IPv6 address.
    host: String,
}

/// A text is no base URL. It is not repeated: there may be a password in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It begins otherwise.
    #[error("the base URL has to begin with https:// or http://")]
    Scheme,
    /// It names no host.
    #[error("the base URL names no host; write one such as https://api.example.com/v1")]
    Host,
    /// It holds a name and password.
    #[error(
        "the base URL holds a user's name; put the key into an environment variable and take it out of the URL"
    )]
    User,
    /// It holds what no path can follow.
    #[error("the base URL holds a space, `?` or `#`; end it with the path, such as /v1")]
    Tail,
}

impl BaseUrl {
    /// The URL of a path below it.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }

    /// The host's name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether its last part is this one.
    pub(crate) fn ends_with(&self, part: &str) -> bool {
        self.text.ends_with(part)
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|ip| ip.is_loopback())
    }

    /// Whether what is sent there can be read on the way by strangers: no TLS, and neither this machine nor, by its
    /// address or name, a local network.
    pub(crate) fn is_exposed(&self) -> bool {
        let local = self.is_loopback()
            || match self.address() {
                Some(IpAddr::V4(ip)) => ip.is_private() || ip.is_link_local(),
                Some(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
                None => {
                    let local = [".local", ".lan", ".internal", ".localhost", ".home.arpa"];
                    !self.host.contains('.') || local.iter().any(|end| self.host.ends_with(end))
                }
            };
        !local && self.text.starts_with("http:")
    }

    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl FromStr for BaseUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim().trim_end_matches('/');
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        let scheme = ["https://", "http://"].into_iter().find(|scheme| lower.starts_with(scheme));
        let scheme = scheme.ok_or(BadUrl::Scheme)?;
        let rest = &text[scheme.len()..];
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(BadUrl::User);
        }
        if rest.contains(|c: char| matches!(c, '?' | '#') || !c.is_ascii_graphic()) {
            return Err(BadUrl::Tail);
        }
        let host = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        if host.is_empty() {
            return Err(BadUrl::Host);
        }
        Ok(Self { text: format!("{scheme}{rest}"), host: host.to_ascii_lowercase() })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses() {
        // Text, host, loopback, exposed.
        for (text, host, loopback, exposed) in [
            ("https://api.example.com/v1/", "api.example.com", false, false),
            ("http://api.example.com/v1", "api.example.com", false, true),
            ("HTTP://127.0.0.1:8080/v1", "127.0.0.1", true, false),
            ("http://[::1]:8080", "::1", true, false),
            ("http://LocalHost:1/v1", "localhost", true, false),
            ("http://192.168.1.5:8000/v1", "192.168.1.5", false, false),
            ("http://8.8.8.8/v1", "8.8.8.8", false, true),
            ("http://box.lan", "box.lan", false, false),
            ("http://ollama:11434/v1", "ollama", false, false),
        ] {
            let url: BaseUrl = text.parse().expect(text);
            assert_eq!(
                (url.host(), url.is_loopback(), url.is_exposed()),
                (host, loopback, exposed),
                "{text}"
            );
            assert!(!url.to_string().ends_with('/'));
        }
        for (text, bad) in [
            ("", BadUrl::Scheme),
            ("api.example.com", BadUrl::Scheme),
            ("ftp://a.example", BadUrl::Scheme),
            ("https://", BadUrl::Scheme),
            ("https:///v1", BadUrl::Host),
            ("https://:80/v1", BadUrl::Host),
            ("https://me:secret@a.example/v1", BadUrl::User),
            ("https://a.example/v1?key=x", BadUrl::Tail),
            ("https://a.example/v 1", BadUrl::Tail),
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(bad), "{text}");
        }
    }
}
