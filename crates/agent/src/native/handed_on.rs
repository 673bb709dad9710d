//! What the loop hands on to the next attempt: a digest of what was done, in a file of the attempt's folder. The receipt's
//! session is the name of that folder.

use std::io;
use std::path::{Path, PathBuf};

use triphammer_model::{Attempt, Redactor, Task};

use crate::dialects::Own;
use crate::event::Json;
use crate::heard::{Heard, head};
use crate::plain_file;
use crate::stream::Dialect;

/// The file's name.
const FILE: &str = "digest.md";
/// Bytes of a digest; the loop's are smaller.
const LARGEST: u64 = 128 << 10;

/// Writes the digest of an attempt and returns the session under which the next one finds it.
pub(super) fn keep(task: &Task, redactor: &Redactor, digest: &str) -> io::Result<String> {
    use std::io::Write as _;
    plain_file::create(&task.dir.join(FILE))?.write_all(&redactor.bytes(digest.as_bytes()))?;
    Ok(task.attempt.dir_name())
}

/// The digest that a task's session names, and of which attempt it is; `None` for a task without a session.
pub(super) fn of(task: &Task) -> Option<io::Result<(Attempt, String)>> {
    let session = task.session.as_deref()?;
    let read = || {
        let (attempt, file) = place(&task.dir, session).ok_or(io::ErrorKind::InvalidInput)?;
        let digest = plain_file::read(&file, LARGEST)?;
        Ok((attempt, String::from_utf8_lossy(&digest).into_owned()))
    };
    Some(read())
}

/// A session is a number and nothing else, so that no other folder can be named by it.
fn place(dir: &Path, session: &str) -> Option<(Attempt, PathBuf)> {
    let attempt = Attempt::new(session.parse().ok()?);
    Some((attempt, dir.parent()?.join(attempt.dir_name()).join(FILE)))
}

/// The loop's events, with those for whoever runs it.
#[derive(Debug, Default)]
pub(super) struct Whole(Own);

impl Dialect for Whole {
    fn passes(&mut self, kind: &str) -> bool {
        self.0.passes(kind)
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        match event.get("type").and_then(Json::as_str) {
            Some("digest") => {
                let text = event.get("text").and_then(Json::as_str).unwrap_or_default();
                let most = usize::try_from(LARGEST / 2).unwrap_or(usize::MAX);
                heard.digest = (!text.is_empty()).then(|| head(text, most).into_owned());
            }
            // A part of what was used is not what was used.
            Some("uncounted") if heard.tokens.take().is_some() => {
                let answers = event.get("answers").and_then(Json::as_u64).unwrap_or_default();
                heard.trouble(format!(
                    "the tokens of {answers} answers were not told, so that their sum is unknown"
                ));
            }
            Some("uncounted") => {}
            _ => self.0.event(event, heard),
        }
    }

    fn exited(&mut self, status: i32, heard: &mut Heard) {
        self.0.exited(status, heard);
    }

    fn end(&mut self, heard: &mut Heard) {
        self.0.end(heard);
    }
}

#[cfg(test)]
mod tests {
    use triphammer_model::Tokens;

    use super::*;

    #[test]
    fn a_part_of_the_tokens_is_not_their_sum() {
        let tokens = |events: &[&str]| {
            let mut stream = crate::stream::Stream::new(Box::new(Whole::default()));
            for event in events {
                stream.push(format!("{event}\n").as_bytes());
            }
            let receipt = stream.end().into_receipt("x");
            (receipt.tokens.map(Tokens::total), receipt.troubles.len())
        };
        let (usage, end) =
            (r#"{"type":"usage","input":3,"output":4}"#, r#"{"type":"end","stop_reason":"done"}"#);
        let uncounted = r#"{"type":"uncounted","answers":2}"#;
        assert_eq!(tokens(&[usage, end]), (Some(7), 0));
        assert_eq!(tokens(&[usage, uncounted, end]), (None, 1));
        assert_eq!(tokens(&[uncounted, end]), (None, 0));
    }

    #[test]
    fn a_session_names_an_attempt_of_the_same_run() {
        let dir = Path::new("/runs/r/attempts/004");
        let found = place(dir, "003").expect("an attempt");
        assert_eq!(found, (Attempt::new(3), "/runs/r/attempts/003/digest.md".into()));
        for session in ["", "..", "3/../../../other", "-1", "s-77"] {
            assert_eq!(place(dir, session), None, "{session}");
        }
    }
}
