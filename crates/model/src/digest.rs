//! SHA-256 digests: of journal lines, artifacts, pins and report identities.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::from_raw(&Sha256::digest(bytes.as_ref()))
    }

    /// The digest that a finished hasher produced.
    pub fn from_hasher(hasher: Sha256) -> Self {
        Self::from_raw(&hasher.finalize())
    }

    /// The digest before the first journal line: 64 zeros.
    pub fn zero() -> Self {
        Self("0".repeat(64))
    }

    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_raw(raw: &[u8]) -> Self {
        use fmt::Write as _;
        let mut out = String::with_capacity(64);
        for byte in raw {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
        }
        Self(out)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A string is not 64 lower-case hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a sha256 digest (64 lower-case hexadecimal digits)")]
pub struct BadDigest(String);

impl TryFrom<String> for Digest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        let ok = text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if ok { Ok(Self(text)) } else { Err(BadDigest(text)) }
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}
