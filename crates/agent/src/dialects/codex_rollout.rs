//! The record that codex keeps of a session, `sessions/YYYY/MM/DD/rollout-…-THREAD.jsonl` in its home folder. It tells
//! what the stream leaves out: why a turn failed, when a limit resets, which model it was, and what this turn alone used.
//!
//! Seen: `task_started`, `turn_context`, `token_count` over two turns, `task_complete` with `error.codex_error_info` for a
//! refused key, a spent quota, a limit and a full context. Read about (reports of its users): windows in the
//! `rate_limits` of `token_count`.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use triphammer_model::{FaultKind, Tokens};

use super::codex::usage;
use super::fields::{at, dollars, text};
use crate::event::{self, Json};
use crate::faults::{self, Told};
use crate::heard::Heard;
use crate::reset_time;

/// Folders and files that are looked through for a record, at most.
const MOST: usize = 100_000;

/// Where the record of a thread lies, the newest days first.
pub(crate) fn rollout_path(codex_home: &Path, thread: &str) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if thread.is_empty() || !thread.chars().all(plain) {
        return None;
    }
    let ending = format!("-{thread}.jsonl");
    let mut folders = vec![(codex_home.join("sessions"), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        let mut below: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        below.sort_by_key(fs::DirEntry::file_name);
        seen += below.len() + 1;
        if seen > MOST {
            return None;
        }
        for entry in below {
            // A link is neither: it is not followed.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < 3 {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(&ending) {
                return Some(entry.path());
            }
        }
    }
    None
}

/// Adds what a record tells of its last turn to what was heard of it on the stream.
pub(crate) fn add_rollout(record: &[u8], heard: &mut Heard) {
    let mut turn = Turn::default();
    for line in record.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        if let Some(event) = event::read(line) {
            turn.event(&event);
        }
    }
    turn.tell(heard);
}

/// The last turn of a record.
#[derive(Debug, Default)]
struct Turn {
    model: Option<String>,
    /// What the thread had used when it began, and by now.
    before: Tokens,
    by_now: Option<Tokens>,
    told: Told,
    message: String,
    reset_at: Option<Timestamp>,
}

impl Turn {
    fn event(&mut self, event: &Json<'_>) {
        let Some(payload) = event.get("payload") else { return };
        match (text(event, &["type"]), text(payload, &["type"])) {
            (Some("turn_context"), _) => self.model = text(payload, &["model"]).map(str::to_owned),
            (Some("event_msg"), Some("task_started")) => {
                let before = self.by_now.unwrap_or(self.before);
                *self = Self { before, ..Self::default() };
            }
            (Some("event_msg"), Some("token_count")) => {
                if let Some(tokens) = at(payload, &["info", "total_token_usage"]).and_then(usage) {
                    self.by_now = Some(tokens);
                }
                if let Some(limits) = payload.get("rate_limits") {
                    self.reset_at = reset(limits, Timestamp::now());
                }
            }
            (Some("event_msg"), Some("task_complete")) => {
                if let Some(error) = payload.get("error") {
                    self.told = faults::of_error(error, Timestamp::now());
                    text(error, &["message"]).unwrap_or_default().clone_into(&mut self.message);
                }
            }
            _ => {}
        }
    }

    fn tell(self, heard: &mut Heard) {
        if let Some(model) = self.model {
            heard.model(&model);
        }
        if let Some(tokens) = self.by_now.filter(|tokens| tokens.total() > 0) {
            heard.tokens = Some(Tokens {
                input: tokens.input.saturating_sub(self.before.input),
                cached: tokens.cached.saturating_sub(self.before.cached),
                output: tokens.output.saturating_sub(self.before.output),
            });
        }
        if let Some(kind) = self.told.kind {
            let limited = matches!(kind, FaultKind::Quota | FaultKind::RateLimit);
            let reset_at = self.told.reset_at.or(self.reset_at.filter(|_| limited));
            heard.recovered();
            heard.fail_until(kind, &self.message, reset_at);
        }
    }
}

/// When the windows of a subscription reset that are full: all of them must. Where none is, the count is a little behind,
/// and the fullest one is meant.
fn reset(limits: &Json<'_>, now: Timestamp) -> Option<Timestamp> {
    let windows: Vec<_> = ["primary", "secondary"]
        .into_iter()
        .filter_map(|name| {
            let window = limits.get(name)?;
            let reset = ["resets_at", "resets_in_seconds"].iter().find_map(|name| window.get(name))?;
            Some((dollars(window, &["used_percent"])?, reset_time::read(reset, now)?))
        })
        .collect();
    let full = windows.iter().filter(|(used, _)| *used >= 100.0).map(|(_, at)| *at).max();
    full.or_else(|| windows.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at))
}
