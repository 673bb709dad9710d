//! `[sandbox]`: what agent and gates can reach.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::size::Size;

/// What holds the write fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FenceChoice {
    /// Landlock; bubblewrap where the home lies in the workspace, so that its `gates/`, `specs/` and `runs/` are kept;
    /// nothing, with a warning, where neither works.
    #[default]
    Auto,
    /// Landlock, or the run does not start.
    Landlock,
    /// bubblewrap, or the run does not start.
    Bubblewrap,
    /// Nothing: agent and gates write whatever you can write.
    Off,
}

impl FenceChoice {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
            Self::Off => "off",
        }
    }
}

/// Which network agent and gates have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkChoice {
    /// The one that you have.
    #[default]
    All,
    /// A loopback of each launch's own: what it starts it can talk to, nothing else, your own local servers neither.
    Loopback,
    /// None at all.
    None,
}

/// `[sandbox]`: what agent and gates can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a section `[sandbox]`")]
#[schemars(deny_unknown_fields)]
pub struct SandboxConfig {
    /// What holds the write fence; `auto` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<FenceChoice>,
    /// Further files and folders that may be written to: absolute, or below your home folder as `~/...`.
    #[serde(default, deserialize_with = "writable", skip_serializing_if = "Option::is_none")]
    pub writable: Option<Vec<String>>,
    /// Which network there is; `all` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkChoice>,
    /// Most processes and threads of one launch with all that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8))]
    pub max_processes: Option<u32>,
    /// Most memory of one launch with all that it started, such as `8G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Size>,
    /// Largest file that can be written, such as `2G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_size: Option<Size>,
}

impl SandboxConfig {
    pub(super) fn over(self, lower: Self) -> Self {
        Self {
            fence: self.fence.or(lower.fence),
            writable: self.writable.or(lower.writable),
            network: self.network.or(lower.network),
            max_processes: self.max_processes.or(lower.max_processes),
            max_memory: self.max_memory.or(lower.max_memory),
            max_file_size: self.max_file_size.or(lower.max_file_size),
        }
    }
}

/// The path that an entry of `writable` means; `None` for `~` where there is no home folder.
pub fn expanded(entry: &str, home: Option<&Path>) -> Option<PathBuf> {
    match entry.strip_prefix('~') {
        Some("") => home.map(Path::to_owned),
        Some(rest) => home.map(|home| home.join(rest.trim_start_matches('/'))),
        None => Some(PathBuf::from(entry)),
    }
}

fn writable<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<String>>, D::Error> {
    super::value::checked(d, |entry| {
        let fits = entry.starts_with('/') || entry == "~" || entry.starts_with("~/");
        let climbs = entry.split('/').any(|part| part == "..");
        (!fits || climbs).then(|| {
            format!(
                "{} is no place; write an absolute path, or one that begins with ~/",
                crate::suggest::quote(entry)
            )
        })
    })
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = Path::new("/home/ann");
        for (entry, path) in [("~", "/home/ann"), ("~/x/y", "/home/ann/x/y"), ("/opt", "/opt")] {
            assert_eq!(expanded(entry, Some(home)), Some(PathBuf::from(path)));
        }
        assert_eq!(expanded("~/x", None), None);
    }
}
