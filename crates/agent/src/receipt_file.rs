//! The file in which a command agent may say what it did. All of it is optional, none of it is trusted, and whatever
//! cannot be read is noted and left out.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};
use triphammer_model::receipt::{ClaimedCommand, ClaimedFile};
use triphammer_model::text::stripped;
use triphammer_model::{Change, Fault, FaultKind, MicroUsd, Receipt, Redactor, Tokens};

/// The largest receipt file that is read.
pub(crate) const LARGEST: u64 = 8 * 1024 * 1024;
/// Troubles that are kept one by one; the rest is counted.
const TROUBLES: usize = 20;
/// Entries of a list that are read; each file claimed is looked up in the world.
const LISTED: usize = 10_000;
/// Characters of a fault's message; it goes into the journal with every try.
const MESSAGE: usize = 2_000;
/// Bytes of a model's name.
const MODEL: usize = 200;
/// Bytes of the agent's text that a trouble quotes.
const QUOTE: usize = 80;

/// Reads the receipt file into `receipt`. A file that is not there says nothing.
pub(crate) fn read_into(path: &Path, redactor: &Redactor, receipt: &mut Receipt) {
    let mut troubles = Troubles::default();
    match crate::plain_file::read(path, LARGEST) {
        Ok(bytes) => parse_into(&redactor.bytes(&bytes), receipt, &mut troubles),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => troubles.add(format!("the receipt file was not read: {e}")),
    }
    troubles.finish(receipt);
}

/// What could not be read, bounded.
#[derive(Debug, Default)]
struct Troubles {
    kept: Vec<String>,
    more: u64,
}

impl Troubles {
    fn add(&mut self, text: String) {
        if self.kept.len() < TROUBLES {
            self.kept.push(text);
        } else {
            self.more += 1;
        }
    }

    fn finish(self, receipt: &mut Receipt) {
        receipt.troubles.extend(self.kept);
        if self.more > 0 {
            receipt.troubles.push(format!("{} more troubles of the receipt file are not listed", self.more));
        }
    }
}

fn parse_into(bytes: &[u8], receipt: &mut Receipt, troubles: &mut Troubles) {
    let object = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return troubles.add(format!("the receipt file holds {}, not an object", kind(&other))),
        Err(e) => return troubles.add(format!("the receipt file is no JSON: {e}")),
    };
    for (name, value) in &object {
        match name.as_str() {
            "files" => each(name, value, troubles, |value| file(value).map(|f| receipt.files.push(f))),
            "commands" => {
                each(name, value, troubles, |value| command(value).map(|c| receipt.commands.push(c)));
            }
            // What is there but null is as good as not there.
            _ if value.is_null() => {}
            "tokens" => note(name, tokens(value), troubles, &mut receipt.tokens),
            "cost_usd" => note(name, cost(value), troubles, &mut receipt.cost),
            "model" => note(name, model(value), troubles, &mut receipt.model),
            "fault" => note(name, fault(value, troubles), troubles, &mut receipt.fault),
            _ => troubles.add(format!("`{}` is no field of a receipt", quote(name))),
        }
    }
}

fn note<T>(name: &str, read: Result<T, String>, troubles: &mut Troubles, into: &mut Option<T>) {
    match read {
        Ok(value) => *into = Some(value),
        Err(why) => troubles.add(format!("`{name}` was not read: {why}")),
    }
}

fn each(
    name: &str,
    value: &Value,
    troubles: &mut Troubles,
    mut read: impl FnMut(&Value) -> Result<(), String>,
) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for (i, item) in items.iter().take(LISTED).enumerate() {
                if let Err(why) = read(item) {
                    troubles.add(format!("`{name}[{i}]` was not read: {why}"));
                }
            }
            if items.len() > LISTED {
                let over = items.len() - LISTED;
                troubles.add(format!("`{name}`: the first {LISTED} entries were read, {over} more were not"));
            }
        }
        other => troubles.add(format!("`{name}` was not read: {} where a list belongs", kind(other))),
    }
}

fn object<'v>(value: &'v Value, known: &[&str]) -> Result<&'v Map<String, Value>, String> {
    let Value::Object(object) = value else { return Err(format!("{} where an object belongs", kind(value))) };
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("`{}` is no field of it", quote(key))),
        None => Ok(object),
    }
}

fn text(object: &Map<String, Value>, name: &str) -> Result<String, String> {
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!("`{name}` is {}, not a text", kind(other))),
        None => Err(format!("`{name}` is missing")),
    }
}

fn file(value: &Value) -> Result<ClaimedFile, String> {
    let object = object(value, &["path", "kind"])?;
    let path = text(object, "path")?;
    if path.is_empty() || path.contains('\0') {
        return Err("its path is no path".to_owned());
    }
    let kind = match text(object, "kind")?.as_str() {
        "added" => Change::Added,
        "changed" => Change::Changed,
        "deleted" => Change::Deleted,
        other => return Err(format!("kind `{}` is none of added, changed, deleted", quote(other))),
    };
    Ok(ClaimedFile { path, kind, tool: None })
}

fn command(value: &Value) -> Result<ClaimedCommand, String> {
    if let Value::String(command) = value {
        return Ok(ClaimedCommand { command: command.clone(), exit: None });
    }
    let object = object(value, &["command", "exit"])?;
    let exit = match object.get("exit") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let exit = value.as_i64().and_then(|n| i32::try_from(n).ok());
            Some(exit.ok_or("`exit` is no exit code")?)
        }
    };
    Ok(ClaimedCommand { command: text(object, "command")?, exit })
}

fn tokens(value: &Value) -> Result<Tokens, String> {
    let object = object(value, &["input", "cached", "output"])?;
    if object.is_empty() {
        return Err("it holds no number".to_owned());
    }
    let count = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_u64().ok_or(format!("`{name}` is no whole number from 0")),
    };
    Ok(Tokens { input: count("input")?, cached: count("cached")?, output: count("output")? })
}

fn cost(value: &Value) -> Result<MicroUsd, String> {
    value
        .as_f64()
        .and_then(MicroUsd::from_dollars)
        .ok_or_else(|| format!("{} is no amount of dollars from 0", quote(&value.to_string())))
}

/// The name by which prices are looked up.
fn model(value: &Value) -> Result<String, String> {
    let Value::String(name) = value else { return Err(format!("{} where a text belongs", kind(value))) };
    let name = stripped(name).trim().to_owned();
    if name.is_empty() {
        return Err("it is empty".to_owned());
    }
    if name.len() > MODEL {
        return Err(format!("it is longer than {MODEL} bytes"));
    }
    Ok(name)
}

fn fault(value: &Value, troubles: &mut Troubles) -> Result<Fault, String> {
    let object = object(value, &["kind", "reset_at", "message"])?;
    let name = text(object, "kind")?;
    let kind = fault_kind(&name).ok_or_else(|| format!("kind `{}` is no known fault", quote(&name)))?;
    let mut optional = |name: &str| match object.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            troubles.add(format!("`fault.{name}` was not read: {} where a text belongs", self::kind(other)));
            None
        }
    };
    let message = optional("message").map(|m| begin(&stripped(&m)));
    let reset = optional("reset_at");
    let reset_at = reset.and_then(|text| {
        let read = text.parse::<Timestamp>();
        if read.is_err() {
            troubles.add(format!("`fault.reset_at` was not read: `{}` is no RFC 3339 time", quote(&text)));
        }
        read.ok()
    });
    Ok(Fault { kind, reset_at, message })
}

/// The beginning of a message, with the number of characters that it leaves out.
fn begin(text: &str) -> String {
    match text.char_indices().nth(MESSAGE) {
        None => text.to_owned(),
        Some((cut, _)) => {
            format!("{} [{} more characters are left out]", &text[..cut], text[cut..].chars().count())
        }
    }
}

/// The fault with this name, as receipts and scripts write it.
pub(crate) fn fault_kind(name: &str) -> Option<FaultKind> {
    serde_json::from_value(Value::String(name.to_owned())).ok()
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn quote(text: &str) -> String {
    let plain = stripped(text).replace('\n', " ");
    if plain.len() <= QUOTE {
        return plain;
    }
    let cut = plain.floor_char_boundary(QUOTE);
    format!("{}... ({} bytes in all)", &plain[..cut], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Receipt {
        let mut receipt = Receipt::default();
        let mut troubles = Troubles::default();
        parse_into(text.as_bytes(), &mut receipt, &mut troubles);
        troubles.finish(&mut receipt);
        receipt
    }

    #[test]
    fn reads_all_that_a_receipt_can_say() {
        let receipt = parse(
            r#"{"files": [{"path": "a", "kind": "added"}, {"path": "/b", "kind": "deleted"}],
                "commands": ["cargo test", {"command": "ls", "exit": 2}, {"command": "w", "exit": null}],
                "tokens": {"input": 1, "cached": 2, "output": 3}, "cost_usd": 0.25, "model": "m\u001b[31m-1",
                "fault": {"kind": "rate-limit", "reset_at": "2026-12-01T00:00:00+01:00", "message": "\u001b[31mslow"}}"#,
        );
        assert_eq!(receipt.troubles, [""; 0]);
        assert_eq!(receipt.files.len(), 2);
        assert_eq!(receipt.files[1], ClaimedFile { path: "/b".into(), kind: Change::Deleted, tool: None });
        assert_eq!(receipt.commands.iter().map(|c| c.exit).collect::<Vec<_>>(), [None, Some(2), None]);
        assert_eq!(receipt.tokens, Some(Tokens { input: 1, cached: 2, output: 3 }));
        assert_eq!(receipt.cost, Some(MicroUsd::new(250_000)));
        assert_eq!(receipt.model.as_deref(), Some("m-1"));
        let fault = receipt.fault.unwrap();
        assert_eq!(fault.kind, FaultKind::RateLimit);
        assert_eq!(fault.reset_at.unwrap().to_string(), "2026-11-30T23:00:00Z");
        assert_eq!(fault.message.as_deref(), Some("slow"));
    }

    #[test]
    fn knows_every_fault_of_the_contract() {
        for name in [
            "authentication",
            "rate-limit",
            "quota",
            "overloaded",
            "context-overflow",
            "refused",
            "crashed",
            "timed-out",
            "idle",
            "protocol",
        ] {
            assert!(fault_kind(name).is_some(), "{name}");
        }
        assert!(fault_kind("tired").is_none());
    }

    /// What is wrong is left out and named; what is right beside it is kept.
    #[test]
    fn what_cannot_be_read_is_a_trouble_and_no_more() {
        for (text, named) in [
            ("", "no JSON"),
            ("[1]", "a list, not an object"),
            (r#"{"files": [], "files"#, "no JSON"),
            (&"[".repeat(100_000), "no JSON"),
            (r#"{"tokens": {"input": -1}}"#, "`tokens` was not read: `input`"),
            (r#"{"tokens": {"input": 1.5}}"#, "`tokens` was not read: `input`"),
            (r#"{"tokens": {}}"#, "holds no number"),
            (r#"{"tokens": {"in": 1}}"#, "`in` is no field"),
            (r#"{"tokens": 7}"#, "a number where an object"),
            (r#"{"cost_usd": -0.5}"#, "-0.5 is no amount"),
            (r#"{"cost_usd": "1"}"#, "is no amount"),
            (r#"{"model": 5}"#, "`model` was not read: a number"),
            (r#"{"model": " "}"#, "`model` was not read: it is empty"),
            (&format!(r#"{{"model": "{}"}}"#, "m".repeat(MODEL + 1)), "`model` was not read: it is longer"),
            (r#"{"cost_usd": 1e300}"#, "is no amount"),
            (r#"{"fault": {"kind": "tired"}}"#, "`tired` is no known fault"),
            (r#"{"fault": {"reset_at": "x"}}"#, "`kind` is missing"),
            (r#"{"fault": "quota"}"#, "a text where an object"),
            (r#"{"files": {"path": "a"}}"#, "an object where a list"),
            (r#"{"files": [{"path": "a", "kind": "moved"}]}"#, "`files[0]`"),
            (r#"{"files": [{"path": "", "kind": "added"}]}"#, "no path"),
            (r#"{"files": ["a"]}"#, "a text where an object"),
            (r#"{"commands": [3]}"#, "`commands[0]`"),
            (r#"{"commands": [{"command": "a", "exit": "0"}]}"#, "no exit code"),
            (r#"{"verdict": "pass"}"#, "`verdict` is no field"),
        ] {
            let receipt = parse(text);
            assert_eq!(receipt.troubles.len(), 1, "{text}: {:?}", receipt.troubles);
            assert!(receipt.troubles[0].contains(named), "{text}: {:?}", receipt.troubles);
            let troubles = receipt.troubles.clone();
            assert_eq!(receipt, Receipt { troubles, ..Receipt::default() }, "{text}");
        }
        let receipt = parse(r#"{"files": [{"path": "a", "kind": "added"}, 1], "tokens": 7, "cost_usd": 0}"#);
        assert_eq!((receipt.files.len(), receipt.troubles.len()), (1, 2));
        assert_eq!((receipt.tokens, receipt.cost), (None, Some(MicroUsd::ZERO)), "unknown is not zero");
        let receipt = parse(r#"{"fault": {"kind": "quota", "reset_at": "tomorrow"}}"#);
        assert_eq!(receipt.fault.map(|f| (f.kind, f.reset_at)), Some((FaultKind::Quota, None)));
        assert_eq!(receipt.troubles.len(), 1);
        assert_eq!(parse(r#"{"tokens": null, "files": null}"#), Receipt::default());
    }

    #[test]
    fn troubles_are_bounded_and_plain() {
        let receipt = parse(&format!(r#"{{"commands": [{}1]}}"#, "1,".repeat(99)));
        assert_eq!(receipt.troubles.len(), TROUBLES + 1);
        assert!(receipt.troubles[TROUBLES].starts_with("80 more"));
        let receipt = parse(&format!(r#"{{"\u001b]0;x\u0007{}": 1}}"#, "k".repeat(5000)));
        assert!(receipt.troubles[0].len() < 200 && !receipt.troubles[0].contains('\x1b'));
    }

    #[test]
    fn long_lists_and_messages_are_cut_with_their_numbers() {
        let receipt = parse(&format!(r#"{{"commands": [{}"last"]}}"#, r#""c","#.repeat(LISTED + 4)));
        assert_eq!(receipt.commands.len(), LISTED);
        assert_eq!(
            receipt.troubles,
            [format!("`commands`: the first {LISTED} entries were read, 5 more were not")]
        );
        let message = "ü".repeat(MESSAGE + 7);
        let receipt = parse(&format!(r#"{{"fault": {{"kind": "quota", "message": "{message}"}}}}"#));
        let kept = receipt.fault.unwrap().message.unwrap();
        assert_eq!(kept, format!("{} [7 more characters are left out]", "ü".repeat(MESSAGE)));
    }

    #[test]
    fn reads_nothing_but_a_plain_file_of_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("target"), r#"{"cost_usd": 1}"#).unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::File::create(at("huge")).unwrap().set_len(LARGEST + 1).unwrap();
        for name in ["link", "fifo", "folder", "huge"] {
            let mut receipt = Receipt::default();
            read_into(&at(name), &Redactor::default(), &mut receipt);
            assert_eq!(receipt.troubles.len(), 1, "{name}");
            assert_eq!(receipt.cost, None);
        }
        let mut receipt = Receipt::default();
        read_into(&at("missing"), &Redactor::default(), &mut receipt);
        assert_eq!(receipt, Receipt::default());
        read_into(&at("target"), &Redactor::default(), &mut receipt);
        assert_eq!(receipt.cost, Some(MicroUsd::new(1_000_000)));
    }

    #[test]
    fn secrets_do_not_get_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        std::fs::write(&path, r#"{"commands": ["curl -H sk-live-\"1234"]}"#.replace("-\"", "-\\\"")).unwrap();
        let redactor = Redactor::new([("T".to_owned(), b"sk-live-\"1234".to_vec())]);
        let mut receipt = Receipt::default();
        read_into(&path, &redactor, &mut receipt);
        assert_eq!(receipt.commands[0].command, "curl -H [redacted:T]");
    }
}
