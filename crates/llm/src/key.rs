//! A secret that opens a service.

use std::fmt;

/// The key of a service. It can be sent and taken out of a text, not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// A text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// There is nothing in it.
    #[error("the key is empty; set it to the key of the service, or unset the variable")]
    Empty,
    /// It cannot be sent in a header.
    #[error("the key has characters that no key has, such as a line break; copy it again")]
    Characters,
}

impl Key {
    /// Takes a key; white space around it is not part of it.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if text.is_empty() {
            Err(BadKey::Empty)
        } else if text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadKey::Characters)
        }
    }

    /// The key itself, for the header that it is sent in.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key, for what a service says about it.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([hidden])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_printed() {
        let key = Key::new(" sk-very-secret\n").unwrap();
        assert_eq!(key.reveal(), "sk-very-secret");
        assert_eq!(format!("{key:?}"), "Key([hidden])");
        assert_eq!(key.scrub("wrong key sk-very-secret!"), "wrong key [key]!");
        assert_eq!(Key::new(" \n"), Err(BadKey::Empty));
        assert_eq!(Key::new("a\r\nX-Evil: 1"), Err(BadKey::Characters));
        assert_eq!(Key::new("schlüssel"), Err(BadKey::Characters));
    }
}
