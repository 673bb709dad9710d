//! Paths inside a workspace: bytes, relative, with `/` between parts.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A path relative to the workspace, as raw bytes. Order is by bytes.
///
/// In JSON and on screen it is text: bytes that are not UTF-8 appear as `\xNN`, a literal backslash is doubled.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkPath(Box<[u8]>);

impl WorkPath {
    /// Takes the bytes as they are; `a/b`, no leading slash.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for use with the file system, relative to the workspace.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The last part.
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }

    /// Whether the path is `dir` or lies below it.
    pub fn is_below(&self, dir: &[u8]) -> bool {
        dir.is_empty()
            || (self.0.starts_with(dir) && (self.0.len() == dir.len() || self.0[dir.len()] == b'/'))
    }
}

impl From<&str> for WorkPath {
    /// Takes text as it is, without reading escapes.
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

/// Writes bytes as text: `\xNN` for what is not UTF-8, `\\` for a backslash.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains('\\')
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
        }
        for byte in chunk.invalid() {
            use fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// A backslash in an escaped path starts no known escape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no escaped path: after a backslash comes another one or xNN")]
pub struct BadEscape(String);

/// Reads what [`escape`] wrote.
///
/// # Errors
/// [`BadEscape`] when a backslash is followed by neither a backslash nor `xNN`.
pub fn unescape(text: &str) -> Result<Box<[u8]>, BadEscape> {
    let bad = || BadEscape(text.to_owned());
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'\\') => out.push(b'\\'),
            Some(b'x') => {
                let digits = [bytes.next().ok_or_else(bad)?, bytes.next().ok_or_else(bad)?];
                let digits = std::str::from_utf8(&digits).map_err(|_| bad())?;
                out.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
            }
            _ => return Err(bad()),
        }
    }
    Ok(out.into())
}

impl TryFrom<String> for WorkPath {
    type Error = BadEscape;

    fn try_from(text: String) -> Result<Self, BadEscape> {
        Ok(Self(unescape(&text)?))
    }
}

impl From<WorkPath> for String {
    fn from(path: WorkPath) -> Self {
        escape(&path.0).into_owned()
    }
}

impl fmt::Display for WorkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for WorkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", escape(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(escape(b"a\xffb\\c"), "a\\xffb\\\\c");
        assert_eq!(escape("ü\n".as_bytes()), "ü\n");
        assert!(unescape("\\q").is_err());
    }

    #[test]
    fn below() {
        let path = WorkPath::from("a/b");
        assert!(path.is_below(b"a") && path.is_below(b"a/b") && path.is_below(b""));
        assert!(!path.is_below(b"a/") && !path.is_below(b"a/bc") && !WorkPath::from("ab").is_below(b"a"));
    }

    proptest! {
        #[test]
        fn round_trips(bytes: Vec<u8>) {
            let path = WorkPath::from_bytes(bytes);
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<WorkPath>(&json).unwrap(), path);
        }
    }
}
