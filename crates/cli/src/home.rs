//! Finds the home and lays the configuration's layers over each other.

use std::path::{Path, PathBuf};

use triphammer_model::config::Config;
use triphammer_store::Runs;

use crate::exit::Failure;

/// The file that makes a folder a home.
pub(crate) use triphammer_model::config::FILE as CONFIG;

/// A home with its configuration.
pub(crate) struct Home {
    /// The folder, absolute.
    pub(crate) path: PathBuf,
    /// Environment over home over user file.
    pub(crate) config: Config,
}

impl Home {
    /// The home given, or the nearest ancestor of the current folder with a configuration.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, Failure> {
        let path = match given {
            Some(path) => {
                let path = absolute(path)?;
                if !path.join(CONFIG).is_file() {
                    return Err(Failure::usage(format!(
                        "`{}` is no home: it has no {CONFIG}; `triphammer init` in it makes one",
                        path.display()
                    )));
                }
                path
            }
            None => nearest()?,
        };
        let home = read(&path.join(CONFIG))?;
        let env = Config::from_env(std::env::vars_os()).map_err(Failure::usage)?;
        let user = match user_file() {
            Some(file) if file.is_file() => read(&file)?,
            _ => Config::default(),
        };
        Ok(Self { path, config: env.over(home).over(user) })
    }

    /// The home, where there is one; a home that cannot be read is an error all the same.
    pub(crate) fn look_for(given: Option<&Path>) -> Result<Option<Self>, Failure> {
        if given.is_none() && nearest().is_err() { Ok(None) } else { Self::find(given).map(Some) }
    }

    pub(crate) fn runs(&self) -> Runs {
        Runs::new(self.path.join("runs"))
    }
}

fn nearest() -> Result<PathBuf, Failure> {
    let here =
        std::env::current_dir().map_err(|e| Failure::usage(format!("finding the current folder: {e}")))?;
    here.ancestors().find(|dir| dir.join(CONFIG).is_file()).map(Path::to_owned).ok_or_else(|| {
        Failure::usage(format!(
            "no home: neither `{}` nor a folder above it has a {CONFIG}; `triphammer init` makes one here, or name \
             one with --home",
            here.display()
        ))
    })
}

fn read(file: &Path) -> Result<Config, Failure> {
    let text =
        std::fs::read(file).map_err(|e| Failure::usage(format!("reading `{}`: {e}", file.display())))?;
    Config::parse(&file.display().to_string(), text).map_err(Failure::usage)
}

/// The person's own configuration.
pub(crate) fn user_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("triphammer").join("config.toml"))
}

/// The user's state folder.
pub(crate) fn state() -> Result<PathBuf, Failure> {
    triphammer_workspace::state_folder().ok_or_else(|| {
        Failure::usage("neither HOME nor XDG_STATE_HOME is set: there is no place for isolated workspaces")
    })
}

/// `path` from the current folder, without asking whether it exists.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|e| Failure::usage(format!("path `{}`: {e}", path.display())))
}
