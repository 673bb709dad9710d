//! Files that are made from the sources and committed: `cargo xtask gen` writes them, `--check` says which are stale.

use std::path::PathBuf;

use crate::house;

/// A generated file: where it lies below the root, and its text.
struct Made {
    path: &'static str,
    text: String,
}

fn all() -> Vec<Made> {
    vec![Made {
        path: "crates/model/schema/triphammer.toml.schema.json",
        text: format!("{:#}\n", triphammer_model::config::json_schema()),
    }]
}

fn place(made: &Made) -> PathBuf {
    house::root().join(made.path)
}

fn is_fresh(made: &Made) -> bool {
    std::fs::read(place(made)).is_ok_and(|kept| kept == made.text.as_bytes())
}

/// Writes those that are stale.
pub(crate) fn write() -> Result<(), String> {
    for made in all() {
        if is_fresh(&made) {
            continue;
        }
        let path = place(&made);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, &made.text))
            .map_err(|e| format!("writing {}: {e}", path.display()))?;
        println!("wrote {}", made.path);
    }
    Ok(())
}

/// An error that names those that are stale.
pub(crate) fn check() -> Result<(), String> {
    let stale: Vec<&str> = all().iter().filter(|made| !is_fresh(made)).map(|made| made.path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("stale: {}; run `cargo xtask gen` and commit what it writes", stale.join(", ")))
}
