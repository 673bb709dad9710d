//! Where the house stands, and how its cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// `cargo` in the root. What `cargo run` told this process about itself is not passed on: it would reach build
/// scripts and tests as if it were theirs.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if name.to_str().is_some_and(|name| own.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command.current_dir(root()).args(arguments);
    command
}

/// What cargo knows of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value, String> {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|e| format!("starting `cargo metadata`: {e}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("reading what `cargo metadata` printed: {e}"))
}

/// Where cargo leaves what it builds.
pub(crate) fn target() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target directory")?;
    Ok(PathBuf::from(target))
}

/// Where a release build leaves the product's binary.
pub(crate) fn release_binary() -> Result<PathBuf, String> {
    Ok(target()?.join("release").join(format!("triphammer{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds the product's binary as its users get it.
pub(crate) fn build_release() -> Result<PathBuf, String> {
    let status = cargo(["build", "--release", "--locked", "--package", "triphammer"])
        .status()
        .map_err(|e| format!("starting `cargo build`: {e}"))?;
    if !status.success() {
        return Err(format!("building the release binary failed ({status})"));
    }
    let binary = release_binary()?;
    if binary.is_file() { Ok(binary) } else { Err(format!("the build left no {}", binary.display())) }
}
