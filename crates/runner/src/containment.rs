//! What holds a run's agent and gates: where they may write, which network they have, how much they may use.
//!
//! Decided once, before the first of them is started, and tried out. Both are held alike, but that an agent also has the
//! folders of its own state and its scratch folder.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use triphammer_agent::{
    Containment, Fence, Hold, ProcessSupervisor, TreeLimits, Vendor, bubblewrap_program, named_in,
};
use triphammer_model::config::{FenceChoice, NetworkChoice, SandboxConfig, expanded};
use triphammer_model::{Digest, Redactor, RunId};

use crate::environment::{self, Variables, get};
use crate::error::StartError;
use crate::settings::{AgentKind, AgentSettings};
use crate::tool_caches;

/// What holds a run. Its private temporary folder goes with it.
#[derive(Debug)]
pub(crate) struct Keep {
    supervisor: ProcessSupervisor,
    hold: Option<Hold>,
    /// Writable for agent and gates beside the folder that they work in.
    writable: Vec<PathBuf>,
    /// Read-only, where the holder can hold that.
    protected: Vec<PathBuf>,
    network: NetworkChoice,
    limits: TreeLimits,
    temp: PathBuf,
    /// What a person should know of it.
    notes: Vec<String>,
}

/// What it is decided from.
pub(crate) struct Ground<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) sandbox: &'a SandboxConfig,
    /// The home, whose `gates/` and `specs/` are kept.
    pub(crate) home: &'a Path,
    pub(crate) runs: &'a Path,
    pub(crate) workspace: &'a Path,
    /// Where the trial may write its log.
    pub(crate) scratch: &'a Path,
}

impl Drop for Keep {
    fn drop(&mut self) {
        // What cannot be removed, such as a folder that was made unreadable, is left to the system's own clean-up.
        let _ = std::fs::remove_dir_all(&self.temp);
    }
}

impl Keep {
    /// Decides, tries it out, and puts the private temporary folder into `env`.
    ///
    /// # Errors
    /// What was asked for cannot be held here.
    pub(crate) fn new(
        ground: &Ground<'_>,
        redactor: Redactor,
        env: &mut Variables,
    ) -> Result<Self, StartError> {
        let supervisor = ProcessSupervisor::of_this_binary(redactor)
            .map_err(|e| StartError::Infrastructure(format!("finding triphammer's own binary: {e}")))?;
        let temp = private_temp(ground.run)?;
        environment::set(env, "TMPDIR", temp.clone().into_os_string());
        let sandbox = ground.sandbox;
        let person = get(env, "HOME").map(PathBuf::from);
        let own = sandbox.writable.iter().flatten().filter_map(|entry| expanded(entry, person.as_deref()));
        let mut writable = vec![temp.clone()];
        writable.extend(own);
        writable.extend(tool_caches::places(env));
        writable.extend(repository(ground.workspace));
        let kept = ["gates", "specs"].map(|name| ground.home.join(name));
        let protected = kept.into_iter().chain([ground.runs.to_owned()]).filter(|path| path.exists());
        let mut keep = Self {
            supervisor,
            hold: None,
            writable,
            protected: protected.map(|path| path.canonicalize().unwrap_or(path)).collect(),
            network: sandbox.network.unwrap_or_default(),
            limits: TreeLimits {
                processes: sandbox.max_processes,
                memory: sandbox.max_memory,
                file_size: sandbox.max_file_size,
            },
            temp,
            notes: Vec::new(),
        };
        keep.choose(ground, env)?;
        Ok(keep)
    }

    /// Settles on a holder that works here.
    fn choose(&mut self, ground: &Ground<'_>, env: &Variables) -> Result<(), StartError> {
        let choice = ground.sandbox.fence.unwrap_or_default();
        let exposed = self.exposed(ground.workspace);
        let mut why_not = Vec::new();
        for hold in holders(choice, !exposed.is_empty(), &mut why_not) {
            self.hold = Some(hold);
            match self.try_out(ground, env) {
                Ok(()) => {
                    if !exposed.is_empty() && self.hold == Some(Hold::Landlock) {
                        let because = if why_not.is_empty() {
                            String::new()
                        } else {
                            format!(" ({})", why_not.join("; "))
                        };
                        self.notes.push(format!(
                            "{} can be written to by agent and gates, since Landlock lets whole folders be written to and \
                             {} one: only comparison before and after guards what lies there; bubblewrap would keep \
                             it{because}",
                            listed(&exposed),
                            if exposed.len() == 1 { "it lies in" } else { "they lie in" },
                        ));
                    }
                    return Ok(());
                }
                Err(why) => why_not.push(why),
            }
        }
        self.hold = None;
        let why = why_not.join("; ");
        match choice {
            FenceChoice::Off => {}
            FenceChoice::Auto => self.notes.push(format!(
                "no write fence holds agent and gates on this system ({why}): they write whatever you can write"
            )),
            _ => {
                return Err(StartError::Config(format!(
                    "[sandbox] fence = \"{}\" cannot be held here ({why}): install what is missing, or set `auto` or \
                     `off`",
                    choice.as_str()
                )));
            }
        }
        if self.network == NetworkChoice::All && self.limits == TreeLimits::default() {
            return Ok(());
        }
        self.try_out(ground, env).map_err(|why| {
            StartError::Config(format!(
                "what [sandbox] asks for cannot be held here ({why}): remove `network`, `max_processes` and `max_memory`"
            ))
        })
    }

    /// Starts something harmless under it.
    fn try_out(&self, ground: &Ground<'_>, env: &Variables) -> Result<(), String> {
        let name = match &self.hold {
            None => "",
            Some(Hold::Landlock) => "Landlock: ",
            Some(Hold::Bubblewrap(_)) => "bubblewrap: ",
        };
        let tried = self.gates(ground.workspace).try_out(ground.workspace, env, ground.scratch);
        tried.map_err(|why| format!("{name}{why}"))
    }

    /// What is protected and lies in something that is writable.
    fn exposed(&self, workspace: &Path) -> Vec<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let writable: Vec<PathBuf> =
            self.writable.iter().map(PathBuf::as_path).chain([workspace]).map(real).collect();
        let inside = |path: &&PathBuf| writable.iter().any(|place| path.starts_with(place));
        self.protected.iter().filter(inside).cloned().collect()
    }

    /// Launches gates and set-up commands that work in `folder`.
    pub(crate) fn gates(&self, folder: &Path) -> ProcessSupervisor {
        self.launcher(folder, Vec::new())
    }

    /// Launches an agent that works in `folder`.
    pub(crate) fn agent(
        &self,
        folder: &Path,
        agent: Option<&AgentSettings>,
        scratch: &Path,
        env: &Variables,
    ) -> ProcessSupervisor {
        let mut more = vec![scratch.to_owned()];
        more.extend(agent.into_iter().flat_map(|agent| state(agent, env)));
        self.launcher(folder, more)
    }

    fn launcher(&self, folder: &Path, more: Vec<PathBuf>) -> ProcessSupervisor {
        let fence = self.hold.clone().map(|hold| Fence {
            read_only: if hold == Hold::Landlock { Vec::new() } else { self.protected.clone() },
            hold,
            writable: std::iter::once(folder.to_owned())
                .chain(more)
                .chain(self.writable.iter().cloned())
                .collect(),
        });
        self.supervisor.contained(Containment { fence, network: self.network, limits: self.limits })
    }

    /// Whether there is a fence.
    pub(crate) const fn is_fenced(&self) -> bool {
        self.hold.is_some()
    }

    /// What a person should know of it.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What it does, in one line.
    pub(crate) fn words(&self) -> String {
        let fence = match &self.hold {
            None => "no write fence".to_owned(),
            Some(hold) => format!(
                "write fence by {}: the workspace, a temporary folder, tool caches, the agent's own state",
                if *hold == Hold::Landlock { "Landlock" } else { "bubblewrap" }
            ),
        };
        let network = match self.network {
            NetworkChoice::All => "; network not held",
            NetworkChoice::Loopback => "; network: a loopback of its own",
            NetworkChoice::None => "; no network",
        };
        let TreeLimits { processes, memory, file_size } = self.limits;
        let limits = [
            processes.map(|n| format!("; at most {n} processes")),
            memory.map(|size| format!("; at most {size} of memory")),
            file_size.map(|size| format!("; at most {size} a file")),
        ];
        format!("{fence}{network}{}", limits.into_iter().flatten().collect::<String>())
    }
}

/// The holders to try, in order; why one is not among them goes to `why_not`.
fn holders(choice: FenceChoice, is_exposed: bool, why_not: &mut Vec<String>) -> Vec<Hold> {
    let mut bubblewrap = || {
        let program = bubblewrap_program();
        if program.is_none() {
            why_not.push("bubblewrap is not installed".to_owned());
        }
        program.map(Hold::Bubblewrap)
    };
    match choice {
        FenceChoice::Off => Vec::new(),
        FenceChoice::Bubblewrap => bubblewrap().into_iter().collect(),
        FenceChoice::Auto if is_exposed => bubblewrap().into_iter().chain([Hold::Landlock]).collect(),
        FenceChoice::Auto | FenceChoice::Landlock => vec![Hold::Landlock],
    }
}

/// Where an agent keeps its own state. Folders that are missing are made.
fn state(agent: &AgentSettings, env: &Variables) -> Vec<PathBuf> {
    let vendors: Vec<&'static Vendor> = match &agent.kind {
        AgentKind::Vendor { vendor, .. } => vec![Vendor::of(*vendor)],
        AgentKind::Command { argv } | AgentKind::Acp { argv } => named_in(argv.iter().map(String::as_str)),
        AgentKind::Shell { line } => {
            named_in(line.split(|c: char| c.is_whitespace() || "\"'`;&|()$".contains(c)))
        }
        _ => Vec::new(),
    };
    let mut all = env.clone();
    environment::add(&mut all, &agent.env);
    vendors
        .into_iter()
        .flat_map(|vendor| vendor.make_state(|name| get(&all, name).map(ToOwned::to_owned)))
        .collect()
}

/// What of a repository that lies elsewhere a commit in the workspace writes: objects, refs, and what is of this worktree alone.
/// Nothing of it can name a program that git would run.
fn repository(workspace: &Path) -> Vec<PathBuf> {
    let own = || -> Option<Vec<PathBuf>> {
        let file = workspace.join(".git");
        if !std::fs::symlink_metadata(&file).ok()?.is_file() {
            return None;
        }
        let text = std::fs::read_to_string(&file).ok()?;
        let folder = workspace.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        // It must know of this workspace: else the file was pointed at somebody else's.
        let back = std::fs::read_to_string(folder.join("gitdir")).ok()?;
        let back = folder.join(back.trim()).canonicalize().ok()?;
        if back != file.canonicalize().ok()? {
            return None;
        }
        let common = folder
            .join(std::fs::read_to_string(folder.join("commondir")).ok()?.trim())
            .canonicalize()
            .ok()?;
        Some(vec![folder, common.join("objects"), common.join("refs"), common.join("logs")])
    };
    own().unwrap_or_default()
}

/// A temporary folder of the run's own, which a later process finds again.
fn private_temp(run: &RunId) -> Result<PathBuf, StartError> {
    let parent = std::env::temp_dir();
    let digest = Digest::of(run.as_str());
    let name = format!("triphammer-{}", digest.as_str().get(..10).unwrap_or_default());
    let folder = parent.canonicalize().unwrap_or(parent).join(name);
    let shown = folder.display().to_string();
    let trouble = |what: &dyn std::fmt::Display| {
        StartError::Infrastructure(format!(
            "making the temporary folder `{shown}`: {what}; set TMPDIR to a folder of yours"
        ))
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => return Ok(folder),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(trouble(&e)),
    }
    let meta = std::fs::symlink_metadata(&folder).map_err(|e| trouble(&e))?;
    if meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode().trailing_zeros() >= 6
    {
        return Ok(folder);
    }
    Err(trouble(&"it is there already and is no private folder of yours"))
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_linked_worktree_may_write_what_a_commit_writes() {
        let room = tempfile::tempdir().unwrap();
        let git = |dir: &Path, args: &[&str]| {
            let done = Command::new("git")
                .args(["-c", "user.name=t", "-c", "user.email=t@t"])
                .args(args)
                .current_dir(dir)
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let main = room.path().join("main");
        std::fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&main, &["worktree", "add", "-q", "../linked"]);
        let linked = room.path().join("linked");
        let places = repository(&linked);
        let at = |name: &str| main.canonicalize().unwrap().join(".git").join(name);
        assert_eq!(places, [at("worktrees/linked"), at("objects"), at("refs"), at("logs")]);
        assert!(repository(&main).is_empty(), "its own folder lies in it");
        // A file that points at another's repository opens nothing.
        let other = room.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::copy(linked.join(".git"), other.join(".git")).unwrap();
        assert!(repository(&other).is_empty());
    }

    #[test]
    fn the_temporary_folder_is_the_runs_own() {
        let run = RunId::new(format!("test-{:x}", std::process::id()));
        let folder = private_temp(&run).unwrap();
        assert_eq!(private_temp(&run).unwrap(), folder, "a later process finds it");
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(private_temp(&run).unwrap_err().to_string().contains("no private folder"));
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert!(private_temp(&run).is_err());
        std::fs::remove_file(&folder).unwrap();
    }
}
