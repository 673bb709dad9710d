//! Files that are made from the sources and committed: `cargo xtask gen` writes them, `--check` says which are stale.

use std::path::PathBuf;

use serde_json::Value;

use crate::house;

/// A generated file: where it lies below the root, and its text.
struct Made {
    path: &'static str,
    text: String,
}

fn all() -> Vec<Made> {
    vec![Made {
        path: "crates/model/schema/triphammer.toml.schema.json",
        text: format!("{:#}\n", sorted(triphammer_model::config::json_schema())),
    }]
}

/// The same value with the keys of its objects in order. Whether they are kept in order of insertion is a feature of
/// the JSON library, so that a text would depend on what else is built with it.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_all_the_way_down() {
        let value = serde_json::json!({ "b": [{ "z": 1, "y": [2, 1] }], "a": null });
        assert_eq!(sorted(value).to_string(), r#"{"a":null,"b":[{"y":[2,1],"z":1}]}"#);
    }
}
