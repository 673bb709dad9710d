//! mini-swe-agent, from its trajectory file (`mini-swe-agent-1.1`), written after each step.
//!
//! Seen: a whole run, submitted. Read about (its sources): `exit_status` is `LimitsExceeded`, `TimeExceeded`,
//! `RepeatedFormatError`, `UserInterruption`, or the class of the exception that ended it (litellm's). The process exits
//! with 0 in several of these cases.
//!
//! It has a shell only, so that it claims no files. The input includes the cache. Its cost is nothing where it knows no
//! price.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use triphammer_model::Tokens;

use super::calls::{Act, Calls};
use super::fields::{at, count, dollars, exit, list, text};
use crate::event::{Json, NULL, Room};
use crate::faults;
use crate::heard::Heard;

/// What a trajectory file says. It is read message by message, and as far as it can be.
pub(crate) fn read_trajectory(file: &[u8]) -> Heard {
    let mut mini = Mini::default();
    let mut reader = serde_json::Deserializer::from_slice(file);
    let read = File(&mut mini).deserialize(&mut reader).and_then(|()| reader.end());
    if let Err(error) = read {
        mini.heard.trouble(format!("the trajectory cannot be read on: {error}"));
    }
    mini.end()
}

#[derive(Default)]
struct Mini {
    heard: Heard,
    calls: Calls,
    /// Actions so far, which name those that bear no name.
    actions: usize,
    answered: bool,
    exit_status: Option<String>,
}

impl Mini {
    fn info(&mut self, info: &Json<'_>) {
        if let Some(model) = text(info, &["config", "model", "model_name"]) {
            self.heard.model(model);
        }
        if let Some(cost) = dollars(info, &["model_stats", "instance_cost"]) {
            self.heard.paid(cost);
        }
        if let Some(submission) = text(info, &["submission"]) {
            self.heard.says(submission);
        }
        if let Some(status) = text(info, &["exit_status"]) {
            self.exits(status);
        }
    }

    fn exits(&mut self, status: &str) {
        if !status.is_empty() {
            self.exit_status = Some(status.to_owned());
        }
    }

    fn message(&mut self, message: &Json<'_>) {
        self.heard.event();
        let extra = message.get("extra").unwrap_or(NULL);
        match text(message, &["role"]) {
            Some("assistant") => {
                self.answered = true;
                self.heard.says(text(message, &["content"]).unwrap_or_default());
                if let Some(tokens) = at(extra, &["response", "usage"]).and_then(usage) {
                    self.heard.spend(tokens);
                }
                for action in list(extra, &["actions"]) {
                    self.actions += 1;
                    let own = format!("action {}", self.actions);
                    let id = text(action, &["tool_call_id"]).unwrap_or(&own);
                    self.calls.open(id, "bash", Act::command(text(action, &["command"]).unwrap_or_default()));
                }
            }
            Some("exit") => self.exits(text(extra, &["exit_status"]).unwrap_or_default()),
            _ if extra.get("returncode").is_some() => {
                let id = text(message, &["tool_call_id"]);
                let call = match id {
                    Some(id) => self.calls.close(id),
                    None => self.calls.close_oldest(),
                };
                // With an exception the code is one that mini made up.
                let whole = text(extra, &["exception_info"]).is_none_or(str::is_empty);
                if let Some(Act::Command(command)) = call.map(|call| call.act) {
                    self.heard.command(&command, exit(extra, &["returncode"]).filter(|_| whole));
                }
            }
            _ => {}
        }
    }

    fn end(mut self) -> Heard {
        self.calls.end(&mut self.heard);
        self.heard.unpriced();
        let Some(status) = self.exit_status else {
            self.heard.breaks_off("the trajectory ends without an exit status");
            return self.heard;
        };
        self.heard.stops(&status);
        // Its own limits, and a person, are no faults.
        let fine = ["Submitted", "LimitsExceeded", "TimeExceeded", "UserInterruption", "KeyboardInterrupt"];
        if !fine.contains(&status.as_str()) {
            let kind = faults::of_code(&status).unwrap_or(faults::unexplained(self.answered));
            self.heard.fail(kind, &status);
        }
        self.heard
    }
}

/// Tokens as either of `OpenAI`'s interfaces counts them.
fn usage(usage: &Json<'_>) -> Option<Tokens> {
    let one = |names: [&str; 2]| names.iter().find_map(|name| count(usage, &[name]));
    let all = one(["prompt_tokens", "input_tokens"])?;
    let output = one(["completion_tokens", "output_tokens"])?;
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let cached = details.iter().find_map(|name| count(usage, &[name, "cached_tokens"])).unwrap_or(0);
    Some(Tokens { input: all.saturating_sub(cached), cached, output })
}

/// Reads the file.
struct File<'a>(&'a mut Mini);

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trajectory with info and messages")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            match name.as_ref() {
                "info" => self.0.info(&fields.next_value_seed(Room::default().seed())?),
                "messages" => fields.next_value_seed(Messages(self.0))?,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads its messages, one by one.
struct Messages<'a>(&'a mut Mini);

impl<'de> DeserializeSeed<'de> for Messages<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(message) = list.next_element_seed(Room::default().seed())? {
            self.0.message(&message);
        }
        Ok(())
    }
}
