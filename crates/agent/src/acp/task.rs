//! What the program is told to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The task, as one JSON object on standard input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpTask {
    /// What the server is asked.
    pub brief: String,
    /// The folder to work in; the current one where it is missing, which is the way for a name that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The server's program and arguments.
    pub argv: Vec<String>,
    /// The session to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Seconds in which the server has to answer each request before the first prompt.
    #[serde(default = "patience")]
    pub patience: u64,
}

/// Long enough for a server that is started by a package manager on a busy machine.
const fn patience() -> u64 {
    60
}

impl AcpTask {
    /// A task with the usual bound.
    pub const fn new(brief: String, argv: Vec<String>) -> Self {
        Self { brief, workspace: None, argv, session: None, patience: patience() }
    }

    /// Reads a task; the error says what is wrong with it.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let wrong = |what: &str| format!("the task on standard input: {what}");
        let task: Self = serde_json::from_slice(text).map_err(|error| wrong(&error.to_string()))?;
        if task.brief.trim().is_empty() {
            return Err(wrong("`brief` is empty"));
        }
        if task.argv.first().is_none_or(String::is_empty) {
            return Err(wrong("`argv` names no program"));
        }
        if task.patience == 0 {
            return Err(wrong("`patience` is 0 seconds, which no server can keep to"));
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_cannot_be_done_is_named() {
        let good = r#"{"brief":"do it","argv":["server"]}"#;
        assert_eq!(
            AcpTask::read(good.as_bytes()),
            Ok(AcpTask::new("do it".to_owned(), vec!["server".to_owned()]))
        );
        for (text, expected) in [
            ("", "EOF"),
            (r#"{"brief":" ","argv":["server"]}"#, "`brief` is empty"),
            (r#"{"brief":"x","argv":[]}"#, "`argv` names no program"),
            (r#"{"brief":"x","argv":[""]}"#, "`argv` names no program"),
            (r#"{"brief":"x","argv":["s"],"patience":0}"#, "`patience` is 0"),
            (r#"{"brief":"x","argv":["s"],"patient":1}"#, "unknown field"),
        ] {
            let error = AcpTask::read(text.as_bytes()).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
