//! The redactor of a run that is over, for those who hand out what lies in its folder.

use triphammer_model::Redactor;
use triphammer_store::RunDir;

use crate::environment;
use crate::prepare::redactor;
use crate::settings::Settings;

/// Knows the values that the run's secrets have in the environment of now. Where the run's settings cannot be read,
/// those of all variables that look secret, and why no more.
pub fn redactor_of(dir: &RunDir) -> (Redactor, Option<String>) {
    let settings: Result<Settings, String> = dir
        .read("pinned/policy.toml")
        .map_err(|e| e.to_string())
        .and_then(|text| toml::from_str(&String::from_utf8_lossy(&text)).map_err(|e| e.to_string()));
    match settings {
        Ok(settings) => (redactor(&settings), None),
        Err(why) => (environment::redactor(&[], &[]), Some(why)),
    }
}
