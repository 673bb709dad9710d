//! `transcript.jsonl`: what an attempt's agent was seen to do, one JSON object a line.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use triphammer_model::{Ended, Redactor};

/// A transcript being written. Lines are redacted.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
    redactor: Redactor,
}

impl Transcript {
    /// Makes or empties `transcript.jsonl` in `dir`.
    pub(crate) fn create(dir: &Path, redactor: &Redactor) -> io::Result<Self> {
        let file = crate::plain_file::create(&dir.join("transcript.jsonl"))?;
        Ok(Self { file, redactor: redactor.clone() })
    }

    /// Adds a line of `kind` with the fields of `facts`, an object.
    pub(crate) fn line(&mut self, kind: &str, facts: Value) -> io::Result<()> {
        let mut line = json!({ "at": Timestamp::now(), "type": kind });
        if let (Value::Object(line), Value::Object(facts)) = (&mut line, facts) {
            line.extend(facts);
        }
        let mut bytes = self.redactor.bytes(line.to_string().as_bytes());
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }

    /// Adds the last line: how the process ended, and how many events it was heard to say, where it says any. Returns how long it
    /// ran, in milliseconds.
    pub(crate) fn end(&mut self, ended: &Ended, events: Option<u64>) -> io::Result<u64> {
        let duration_ms = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        let mut end = json!({
            "wait": ended.wait,
            "duration_ms": duration_ms,
            "stdout_bytes": ended.stdout.bytes,
            "stderr_bytes": ended.stderr.bytes,
            "killed": ended.killed,
        });
        if let (Some(events), Value::Object(end)) = (events, &mut end) {
            end.insert("events".to_owned(), events.into());
        }
        self.line("end", end)?;
        Ok(duration_ms)
    }
}
