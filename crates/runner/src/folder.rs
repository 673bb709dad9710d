//! Folders as the journal names them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use triphammer_model::path::{BadEscape, escape, unescape};

/// A folder's path as text, by [`escape`].
pub(crate) fn shown(folder: &Path) -> String {
    escape(OsStr::as_bytes(folder.as_os_str())).into_owned()
}

/// Reads what [`shown`] wrote.
pub(crate) fn read(text: &str) -> Result<PathBuf, BadEscape> {
    Ok(PathBuf::from(OsString::from_vec(unescape(text)?.into_vec())))
}
