//! Names of git objects: the hash of what they hold.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use sha1::{Digest as _, Sha1};
use triphammer_model::TreeId;

/// A git object's id (SHA-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// The raw bytes, as they stand in a tree object.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    pub(crate) const fn from_raw(raw: [u8; 20]) -> Self {
        Self(raw)
    }

    pub(crate) fn from_hasher(hasher: Sha1) -> Self {
        Self(hasher.finalize().into())
    }

    /// The id of an object of this header and content.
    pub(crate) fn of(header: &[u8], content: &[u8]) -> Self {
        let mut hasher = Sha1::new();
        hasher.update(header);
        hasher.update(content);
        Self::from_hasher(hasher)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string is no object id.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no object id (40 hexadecimal digits)")]
pub struct BadObjectId(String);

impl FromStr for ObjectId {
    type Err = BadObjectId;

    fn from_str(text: &str) -> Result<Self, BadObjectId> {
        let bad = || BadObjectId(text.to_owned());
        if text.len() != 40 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut raw = [0; 20];
        for (i, byte) in raw.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(raw))
    }
}

impl From<ObjectId> for TreeId {
    fn from(id: ObjectId) -> Self {
        Self::new(id.to_string())
    }
}

/// A kind of git object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Tree,
}

impl ObjectKind {
    /// What git calls it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
        }
    }

    /// What stands before the content of an object of this kind, `size` bytes long.
    pub(crate) fn header(self, size: u64) -> String {
        format!("{} {size}\0", self.word())
    }

    /// The id of an object of this kind with this content.
    pub(crate) fn id_of(self, content: &[u8]) -> ObjectId {
        ObjectId::of(self.header(content.len() as u64).as_bytes(), content)
    }
}

/// The id that `file`, which must hold `size` bytes, has as a blob.
pub(crate) fn hash_file(file: &mut impl Read, size: u64) -> io::Result<ObjectId> {
    let mut hasher = Sha1::new();
    hasher.update(ObjectKind::Blob.header(size).as_bytes());
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                total += n as u64;
                if total > size {
                    return Err(changed());
                }
                hasher.update(&buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if total == size { Ok(ObjectId::from_hasher(hasher)) } else { Err(changed()) }
}

/// A file did not hold what its stat said.
pub(crate) fn changed() -> io::Error {
    io::Error::other("it changed while it was looked at")
}

/// Ids as git commands read them, one a line.
pub(crate) fn id_lines<'a>(ids: impl IntoIterator<Item = &'a ObjectId>) -> Vec<u8> {
    let mut lines = Vec::new();
    for id in ids {
        lines.extend_from_slice(id.to_string().as_bytes());
        lines.push(b'\n');
    }
    lines
}
