//! Files that an older version wrote. They are never written again: a change that cannot read them, or that loses
//! something they say, needs a new schema version and a reader for the old one.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use triphammer_model::{GuardReport, JournalLine, Movement, Receipt, Report, RunSummary};

use crate::dice::Dice;
use crate::values;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The first place where `now` lacks or changes what `then` says.
fn lost(then: &Value, now: &Value, place: &str) -> Option<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then.iter().find_map(|(key, value)| {
            let place = format!("{place}.{key}");
            // An absent field and `null` say the same.
            lost(value, now.get(key).unwrap_or(&Value::Null), &place)
        }),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            let mut pairs = then.iter().zip(now).enumerate();
            pairs.find_map(|(i, (then, now))| lost(then, now, &format!("{place}[{i}]")))
        }
        _ => (then != now).then(|| format!("{place}: {then} became {now}")),
    }
}

fn reads<T: Serialize + DeserializeOwned>(name: &str) -> Vec<T> {
    let text = fs::read_to_string(file(name)).unwrap();
    let read = |(i, line): (usize, &str)| {
        let value: T = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}:{}: {e}", i + 1));
        let then: Value = serde_json::from_str(line).unwrap();
        let loss = lost(&then, &serde_json::to_value(&value).unwrap(), "");
        assert_eq!(loss, None, "{name}:{}", i + 1);
        value
    };
    text.lines().enumerate().map(read).collect()
}

#[test]
fn an_older_versions_files_are_read() {
    let lines = reads::<JournalLine>("journal.v1.jsonl");
    let mut words: Vec<&str> = lines.iter().map(|l| l.event.word()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 17, "each event that version 1 knew: {words:?}");
    let mut words: Vec<&str> =
        lines.iter().flat_map(|l| &l.effects).map(triphammer_model::Effect::word).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 8, "each effect that version 1 knew: {words:?}");
    assert!(!reads::<Movement>("movement.v1.jsonl").is_empty());
    assert!(!reads::<Receipt>("receipt.v1.jsonl").is_empty());
    assert!(!reads::<Report>("report.v1.jsonl").is_empty());
    assert!(!reads::<RunSummary>("run.v1.jsonl").is_empty());
    assert!(!reads::<GuardReport>("guard.v1.jsonl").is_empty());
}

#[test]
fn a_loss_is_seen() {
    let then = serde_json::json!({"a": [1, {"b": 2}], "c": null});
    assert_eq!(lost(&then, &serde_json::json!({"a": [1, {"b": 2, "new": 3}]}), ""), None);
    assert_eq!(
        lost(&then, &serde_json::json!({"a": [1, {"b": 3}]}), "").as_deref(),
        Some(".a[1].b: 2 became 3")
    );
    assert!(lost(&then, &serde_json::json!({"a": [1]}), "").is_some());
}

/// Every stored type has its file. For a new schema version raise the number in the names and run this test once with
/// `UPDATE_GOLDEN=1`, which writes the files that are missing.
#[test]
fn every_stored_type_has_a_file() {
    let names = [
        "guard.v1.jsonl",
        "journal.v1.jsonl",
        "movement.v1.jsonl",
        "receipt.v1.jsonl",
        "report.v1.jsonl",
        "run.v1.jsonl",
    ];
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        write_missing();
    }
    for name in names {
        assert!(file(name).is_file(), "{} is missing", file(name).display());
    }
}

/// How the files were made; none is overwritten.
fn write_missing() {
    fn put<T: Serialize>(name: &str, values: impl Iterator<Item = T>) {
        let text: Vec<String> = values.map(|v| serde_json::to_string(&v).unwrap() + "\n").collect();
        let path = file(name);
        if !path.exists() {
            fs::write(path, text.concat()).unwrap();
        }
    }
    let mut dice = Dice::fixed();
    put("journal.v1.jsonl", (0..values::EVENTS * 2).map(|i| values::journal_line(&mut dice, i / 2)));
    put("movement.v1.jsonl", (0..4).map(|_| values::movement(&mut dice)));
    put("receipt.v1.jsonl", (0..4).map(|_| values::receipt(&mut dice)));
    put("report.v1.jsonl", (0..4).map(|_| values::report(&mut dice)));
    put("run.v1.jsonl", (0..4).map(|_| values::run_summary(&mut dice)));
    put("guard.v1.jsonl", (0..4).map(|_| values::guard_report(&mut dice)));
}
