//! Which crate may depend on which: arrows point one way only.

use std::collections::BTreeSet;

use serde_json::Value;

use super::purity::{IMPURE_CRATES, PURE};

/// A room and the rooms right below it. What these may use, it may use as well.
const BELOW: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("guard", &[]),
    ("forge", &["model"]),
    ("workspace", &["model"]),
    ("gate", &["model"]),
    ("store", &["model"]),
    ("trajectory", &["model"]),
    ("llm", &["model"]),
    ("render", &["model"]),
    ("drift", &["model", "guard"]),
    ("judge", &["gate", "llm"]),
    ("agent", &["llm", "guard"]),
    ("runner", &["forge", "agent", "judge", "gate", "workspace", "drift", "trajectory", "store"]),
    ("daemon", &["runner", "render"]),
    ("cli", &["daemon"]),
    ("xtask", &["model"]),
    // For tests only: it may stand on any library.
    ("testkit", &["daemon"]),
    ("tests", &["cli", "testkit"]),
];

/// A package of the workspace, by the name of its room.
pub(crate) struct Package {
    name: String,
    needs: Vec<Need>,
}

/// A dependency.
struct Need {
    name: String,
    dev: bool,
}

/// Reads them from cargo's metadata.
pub(crate) fn packages(metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let need = |value: &Value| Need { name: text(&value["name"]), dev: value["kind"] == "dev" };
    list(&metadata["packages"])
        .iter()
        .map(|package| Package {
            name: room(&text(&package["name"])).unwrap_or_default().to_owned(),
            needs: list(&package["dependencies"]).iter().map(need).collect(),
        })
        .collect()
}

/// The room that a package of the house is; `None` for a foreign one.
fn room(package: &str) -> Option<&str> {
    if package == "triphammer" { Some("cli") } else { package.strip_prefix("triphammer-") }
}

/// All rooms below one; `None` when the table does not know it.
fn reach(name: &str) -> Option<BTreeSet<&'static str>> {
    let (_, direct) = BELOW.iter().find(|(room, _)| *room == name)?;
    let mut all = BTreeSet::new();
    for below in *direct {
        all.insert(*below);
        all.extend(reach(below)?);
    }
    Some(all)
}

pub(crate) fn check(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    if packages.is_empty() {
        found.push("no packages are known: nothing can be said about their arrows".to_owned());
    }
    for package in packages {
        let name = &package.name;
        let Some(below) = reach(name) else {
            found.push(format!("crate `{name}` is not in the table of arrows; give it a place there"));
            continue;
        };
        for need in &package.needs {
            let for_tests = need.dev || name == "tests";
            match room(&need.name) {
                Some("testkit") if for_tests => {}
                Some("testkit") => found.push(format!("{name} -> testkit: it is a dev-dependency only")),
                Some(other) if below.contains(other) => {}
                Some(other) => found.push(format!("{name} -> {other}: arrows point one way only")),
                None if !need.dev && is_impure(name, &need.name) => {
                    found.push(format!("{name} -> {}: a pure crate does no I/O", need.name));
                }
                None => {}
            }
        }
    }
    found
}

fn is_impure(name: &str, need: &str) -> bool {
    PURE.contains(&name) && IMPURE_CRATES.contains(&need)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_need(package: &str, need: &str, kind: Option<&str>, expected: &str) {
        let metadata = serde_json::json!({
            "packages": [{ "name": package, "dependencies": [{ "name": need, "kind": kind }] }]
        });
        let found = check(&packages(&metadata)).join("\n");
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{found}");
    }

    #[test]
    fn arrows_point_one_way() {
        check_need("triphammer-runner", "triphammer-store", None, "");
        check_need("triphammer-runner", "triphammer-model", None, "");
        check_need("triphammer", "triphammer-agent", None, "");
        check_need("triphammer-agent", "triphammer-workspace", None, "agent -> workspace");
        check_need("triphammer-agent", "triphammer-workspace", Some("dev"), "agent -> workspace");
        check_need("triphammer-model", "triphammer-forge", None, "model -> forge");
        check_need("triphammer-store", "triphammer", Some("build"), "store -> cli");
        check_need("triphammer-runner", "triphammer-render", None, "runner -> render");
        check_need("triphammer-store", "triphammer-testkit", Some("dev"), "");
        check_need("triphammer-store", "triphammer-testkit", None, "dev-dependency only");
        check_need("triphammer-tests", "triphammer-testkit", None, "");
        check_need("triphammer-novel", "serde", None, "not in the table");
    }

    #[test]
    fn pure_crates_stand_on_pure_ones() {
        check_need("triphammer-forge", "tokio", None, "forge -> tokio");
        check_need("triphammer-model", "rustix", None, "model -> rustix");
        check_need("triphammer-model", "tempfile", Some("dev"), "");
        check_need("triphammer-store", "rustix", None, "");
    }

    #[test]
    fn silence_is_no_proof() {
        assert_eq!(check(&packages(&serde_json::json!({}))).len(), 1);
    }
}
