//! Codex.

use std::path::{Path, PathBuf};

use triphammer_model::{Redactor, Task};

use super::{Ask, Prompt, Speaks, Vendor, option, variable, words};
use crate::dialects::{Codex, add_rollout, rollout_path};
use crate::heard::Heard;

pub(super) static CODEX: Vendor = Vendor {
    kind: "codex",
    program: "codex",
    install: "npm install -g @openai/codex",
    seen: "0.171.0",
    keys: &["CODEX_API_KEY"],
    // The key of its own service it takes under the first name only, and no address from the environment. The other is
    // for a provider in its configuration (`env_key`).
    reads: &["CODEX_HOME", "OPENAI_API_KEY"],
    state: &[(".codex", "CODEX_HOME")],
    sets_fenced: &[],
    logins: &[".codex/auth.json"],
    continues: true,
    unknowns: &["its cost, without a price for its model", "files that its shell writes"],
    sets: &[],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Codex::default())),
    // Where ours holds it its own sandbox is off: two do not nest.
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["exec"]);
        if ask.session.is_some() {
            argv.push("resume".into());
        }
        argv.extend(words(["--json", "--skip-git-repo-check"]));
        if ask.fenced {
            argv.push("--dangerously-bypass-approvals-and-sandbox".into());
        } else {
            argv.extend(words(["-c", "sandbox_mode=\"workspace-write\""]));
        }
        option(&mut argv, "-m", ask.model);
        match ask.session {
            Some(session) => argv.push(session.into()),
            None => option(&mut argv, "-C", Some(ask.workspace)),
        }
        argv.push("-".into());
        argv
    },
    record: Some(record),
};

/// Larger than the record of any session that is worth reading.
const LARGEST: u64 = 256 << 20;

/// Its stream gives a refused key or a spent quota as text only; its own record of the session has the fields.
fn record(task: &Task, redactor: &Redactor, heard: &mut Heard) {
    let home = variable(task, "CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| variable(task, "HOME").map(|home| Path::new(home).join(".codex")));
    let Some((home, thread)) = home.zip(heard.session.clone()) else { return };
    let Some(path) = rollout_path(&home, &thread) else { return };
    match crate::plain_file::read(&path, LARGEST) {
        Ok(bytes) => add_rollout(&redactor.bytes(&bytes), heard),
        Err(error) => heard.trouble(format!("its record {} was not read: {error}", path.display())),
    }
}
