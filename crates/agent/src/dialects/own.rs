//! The events that our own programs print, the native loop and the client of the agent client protocol: one JSON object
//! a line on standard output.
//!
//! ```text
//! {"type":"session","id":"…","model":"…"}                                  once, at the start; both may be missing
//! {"type":"tool","tool":"write","path":"a.rs","change":"added","ok":true}    a call that is done; its path, its command,
//! {"type":"tool","tool":"shell","command":"make","exit":2,"ok":false}        or neither (one that only reads)
//! {"type":"usage","input":900,"cached":100,"output":20,"cost_usd":0.01}      one step: the cache apart from the input
//! {"type":"text","text":"…"}                                                what it says; the last one counts
//! {"type":"fault","kind":"rate-limit","message":"…","reset_at":"…"}          what it gives up over
//! {"type":"refused","command":"git push -f","why":"…"}                      a command that was not let through
//! {"type":"refused","what":"Edit /etc/hosts","why":"…"}                     another thing that was not
//! {"type":"cost","usd":0.02}                                                what it cost so far, in place of any sum
//! {"type":"trouble","what":"…"}                                             what was not as it should be
//! {"type":"received","message":{…}}, {"type":"sent","message":{…}}          what was said to and fro, for the log alone
//! {"type":"end","stop_reason":"…"}                                          the last line
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::fields::text;
use crate::event::Json;
use crate::heard::Heard;
use crate::stream::Dialect;

/// One event; see the top of this file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum OwnEvent {
    /// It works in this session, with this model.
    Session {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A call of a tool is done.
    Tool {
        tool: String,
        /// The file that it touched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// How; `changed` where it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ClaimKind>,
        /// The command that it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// Its exit status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        /// Whether the call succeeded. A file of one that did not is no claim.
        ok: bool,
    },
    /// What one step used.
    Usage {
        input: u64,
        #[serde(default)]
        cached: u64,
        output: u64,
        /// Dollars; missing where no price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// What it says.
    Text { text: String },
    /// What it gives up over.
    Fault {
        kind: FaultKind,
        #[serde(default)]
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset_at: Option<Timestamp>,
    },
    /// What was not let through.
    Refused {
        /// A command,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// or, in words, another thing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        what: Option<String>,
        why: String,
    },
    /// What all of it cost so far.
    Cost { usd: f64 },
    /// Something that was not as it should be.
    Trouble { what: String },
    /// It is done.
    End { stop_reason: String },
}

/// The kinds above; others are let pass.
const KINDS: [&str; 9] = ["session", "tool", "usage", "text", "fault", "refused", "cost", "trouble", "end"];

#[derive(Debug, Default)]
pub(crate) struct Own {
    ended: bool,
}

impl Own {
    fn take(&mut self, event: OwnEvent, heard: &mut Heard) {
        match event {
            OwnEvent::Session { id, model } => {
                heard.session(&id.unwrap_or_default());
                heard.model(&model.unwrap_or_default());
            }
            OwnEvent::Tool { tool, path, change, command, exit, ok } => {
                if let Some(path) = path.filter(|_| ok) {
                    heard.file(&path, change.unwrap_or(ClaimKind::Changed), &tool);
                }
                if let Some(command) = command {
                    heard.command(&command, exit);
                }
            }
            OwnEvent::Usage { input, cached, output, cost_usd } => {
                heard.spend(Tokens { input, cached, output });
                if let Some(cost) = cost_usd {
                    heard.pay(cost);
                }
            }
            OwnEvent::Text { text } => heard.says(&text),
            OwnEvent::Fault { kind, message, reset_at } => heard.fail_until(kind, &message, reset_at),
            OwnEvent::Refused { command, what, why } => {
                if let Some(command) = &command {
                    heard.not_let(command);
                }
                let what = command.or(what).unwrap_or_default();
                let what = crate::heard::head(&what, 500);
                let why = crate::heard::head(&why, 500);
                heard.trouble(format!("`{what}` was not let through: {why}"));
            }
            OwnEvent::Cost { usd } => heard.paid(usd),
            OwnEvent::Trouble { what } => heard.trouble(crate::heard::head(&what, 1_000).into_owned()),
            OwnEvent::End { stop_reason } => {
                heard.stops(&stop_reason);
                self.ended = true;
            }
        }
    }
}

impl Dialect for Own {
    fn passes(&mut self, kind: &str) -> bool {
        matches!(kind, "received" | "sent")
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        match serde_json::to_value(event).and_then(serde_json::from_value) {
            Ok(event) => self.take(event, heard),
            Err(error) => {
                if let Some(kind) = text(event, &["type"]).filter(|kind| KINDS.contains(kind)) {
                    heard.trouble(format!("an event `{kind}` is not as it should be: {error}"));
                }
            }
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        if !self.ended {
            heard.breaks_off("the stream ends without its last event");
        }
    }
}
