//! The messages that claude's stream is made of, and qwen's after it: `assistant` asks for tools, `user` brings what came
//! of them.

use triphammer_model::ClaimKind;

use super::calls::{Act, Calls};
use super::fields::{first_text, list, text};
use crate::event::Json;
use crate::heard::Heard;

/// Commands that failed and may turn out not to have been run, at most.
const FAILED: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Messages {
    calls: Calls,
    /// Commands whose call failed, with where they lie among the claims.
    failed: Vec<(String, usize)>,
}

/// What a message of the model was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// It asked for a tool.
    pub(super) tools: bool,
    /// It was the main conversation, not a helper's.
    pub(super) main: bool,
}

impl Messages {
    /// A message of the model.
    pub(super) fn assistant(&mut self, event: &Json<'_>, heard: &mut Heard) -> Said {
        let main = text(event, &["parent_tool_use_id"]).is_none();
        let mut said = Said { tools: false, main };
        for block in list(event, &["message", "content"]) {
            match text(block, &["type"]) {
                Some("tool_use") => {
                    said.tools = true;
                    self.call(block);
                }
                Some("text") if main => heard.says(text(block, &["text"]).unwrap_or_default()),
                _ => {}
            }
        }
        said
    }

    fn call(&mut self, block: &Json<'_>) {
        let (Some(id), Some(tool)) = (text(block, &["id"]), text(block, &["name"])) else { return };
        let Some(input) = block.get("input") else { return };
        let act = match tool {
            "Bash" | "PowerShell" | "run_shell_command" => text(input, &["command"]).map(Act::command),
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write_file" | "edit" | "replace"
            | "notebook_edit" => {
                let path = first_text(input, &["file_path", "notebook_path", "absolute_path", "path"]);
                path.map(|path| Act::file(path, ClaimKind::Changed))
            }
            _ => None,
        };
        if let Some(act) = act {
            self.calls.open(id, tool, act);
        }
    }

    /// What came of tools.
    pub(super) fn user(&mut self, event: &Json<'_>, heard: &mut Heard) {
        // Claude tells more beside the message, where the message brings one result.
        let blocks = list(event, &["message", "content"]);
        let told = text(event, &["tool_use_result", "type"]).filter(|_| blocks.len() == 1);
        for block in blocks {
            if text(block, &["type"]) != Some("tool_result") {
                continue;
            }
            let Some(id) = text(block, &["tool_use_id"]) else { continue };
            let Some(call) = self.calls.close(id) else { continue };
            let failed = block.get("is_error").and_then(Json::as_bool).unwrap_or(false);
            match call.act {
                Act::File(path, kind) if !failed => {
                    let kind = if told == Some("create") { ClaimKind::Added } else { kind };
                    heard.file(&path, kind, &call.tool);
                }
                Act::File(..) => {}
                Act::Command(command) => {
                    let at = heard.command(&command, None);
                    if let Some(at) = at.filter(|_| failed && self.failed.len() < FAILED) {
                        self.failed.push((id.to_owned(), at));
                    }
                }
            }
        }
    }

    /// Calls that nobody allowed: their commands were not run.
    pub(super) fn denied(&mut self, denials: &[Json<'_>], heard: &mut Heard) {
        let denied = |id: &str| denials.iter().any(|denial| text(denial, &["tool_use_id"]) == Some(id));
        let commands: Vec<_> = self.failed.iter().filter(|(id, _)| denied(id)).map(|(_, at)| *at).collect();
        heard.refused(&commands);
        self.failed.clear();
    }

    pub(super) fn end(&mut self, heard: &mut Heard) {
        self.calls.end(heard);
    }
}
