//! What holds a run's agent and gates: where they may write, which network they have, how much they may use.
//!
//! Decided once, before the first of them is started, and tried out: what is open is settled by real paths and never looked up
//! again. Both are held alike, but that an agent also has the folders of its own state and its scratch folder.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use triphammer_agent::{
    Containment, Fence, Hold, ProcessSupervisor, TreeLimits, Vendor, bubblewrap_program, named_in,
};
use triphammer_model::config::{FILE, FenceChoice, NetworkChoice, SandboxConfig, expanded};
use triphammer_model::{AgentName, Digest, Redactor, RunId};

use crate::environment::{self, Variables, get};
use crate::error::StartError;
use crate::places::{Places, Source, real};
use crate::settings::{AgentKind, AgentSettings};
use crate::tool_caches;

/// What holds a run. Its private temporary folder goes with it.
#[derive(Debug)]
pub(crate) struct Keep {
    supervisor: ProcessSupervisor,
    hold: Option<Hold>,
    /// Writable for agent and gates beside the folder that they work in, by real paths.
    writable: Vec<PathBuf>,
    /// And for each agent.
    states: BTreeMap<AgentName, Vec<PathBuf>>,
    /// What the person has opened, as it is written.
    named: Vec<String>,
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
    /// The user's state folder for Triphammer.
    pub(crate) state: &'a Path,
    /// Who is going to work.
    pub(crate) chain: &'a [AgentSettings],
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
        let named = sandbox.writable.iter().flatten().filter_map(|entry| expanded(entry, person.as_deref()));
        // A plan leaves nothing behind: its record is not the home's.
        let make = ground.runs.starts_with(ground.home);
        let kept: Vec<PathBuf> =
            [Some(ground.home), Some(ground.runs), Some(ground.state), person.as_deref()]
                .into_iter()
                .flatten()
                .map(real)
                .collect();
        let mut places = Places::around(ground.workspace);
        let own =
            repository(ground.workspace).into_iter().chain([temp.clone()]).map(|path| (path, Source::Own));
        places.take(own.chain(named.map(|path| (path, Source::Named))), &kept);
        places.take(tool_caches::places(env, make).into_iter().map(|path| (path, Source::Found)), &kept);
        let writable = places.open();
        let mut states = BTreeMap::new();
        for agent in ground.chain {
            let (mut all, before) = (places.clone(), places.count());
            all.take(state(agent, env, make).into_iter().map(|path| (path, Source::Found)), &kept);
            states.insert(agent.name.clone(), all.since(before));
            places.notes = all.notes;
        }
        let mut keep = Self {
            supervisor,
            hold: None,
            writable,
            states,
            named: sandbox.writable.clone().unwrap_or_default(),
            protected: ["gates", "specs", FILE].map(|name| real(ground.home).join(name)).to_vec(),
            network: sandbox.network.unwrap_or_default(),
            limits: TreeLimits {
                processes: sandbox.max_processes,
                memory: sandbox.max_memory,
                file_size: sandbox.max_file_size,
            },
            temp,
            notes: places.notes,
        };
        keep.protected.push(real(ground.runs));
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
            match self.try_out(ground, env, false) {
                Ok(()) => break,
                Err(why) => {
                    why_not.push(why);
                    self.hold = None;
                }
            }
        }
        let because = if why_not.is_empty() { String::new() } else { format!(" ({})", why_not.join("; ")) };
        match (&self.hold, choice) {
            (Some(Hold::Landlock), _) if !exposed.is_empty() => self.notes.push(format!(
                "{} can be written to by agent and gates, since Landlock lets whole folders be written to and {} one: only \
                 comparison before and after guards what lies there; bubblewrap would keep it{because}",
                listed(&exposed),
                if exposed.len() == 1 { "it lies in" } else { "they lie in" },
            )),
            (Some(Hold::Bubblewrap(_)), _) => self.keep_closed(&exposed, ground),
            (Some(Hold::Landlock), _) | (None, FenceChoice::Off) => {}
            (None, FenceChoice::Auto) => self.notes.push(format!(
                "no write fence holds agent and gates on this system{because}: they write whatever you can write"
            )),
            (None, _) => {
                return Err(StartError::Config(format!(
                    "[sandbox] fence = \"{}\" cannot be held here{because}: install what is missing, or set `auto` or `off`",
                    choice.as_str()
                )));
            }
        }
        if self.hold == Some(Hold::Landlock) && Fence::is_partial() {
            self.notes.push(
                "this kernel's Landlock is an old one and holds less: files outside may be cut short, or renaming between folders \
                 fails; [sandbox] fence = \"bubblewrap\" holds all"
                    .to_owned(),
            );
        }
        if self.network == NetworkChoice::All && self.limits == TreeLimits::NONE {
            return Ok(());
        }
        self.try_out(ground, env, true).map_err(|why| {
            StartError::Config(format!(
                "what [sandbox] asks for beside the fence cannot be held here ({why}): remove `network`, `max_processes` and \
                 `max_memory`, or what of them it is"
            ))
        })
    }

    /// What lies in a writable folder is read-only all the same: it has to be there for that, and what it lies in must not be
    /// moved away with it.
    fn keep_closed(&mut self, exposed: &[PathBuf], ground: &Ground<'_>) {
        let make = ground.runs.starts_with(ground.home);
        for path in exposed {
            if make && !path.exists() && path.extension().is_none() {
                // An empty folder is nothing to git, and one that cannot be made cannot be made by an agent either.
                let _ = std::fs::create_dir(path);
            }
            if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
                self.notes.push(format!(
                    "`{}` is a link, which agent and gates could replace: only comparison before and after guards it",
                    path.display()
                ));
            }
        }
    }

    /// Starts something harmless under it; with or without what stands beside the fence.
    fn try_out(&self, ground: &Ground<'_>, env: &Variables, whole: bool) -> Result<(), String> {
        let name = match &self.hold {
            Some(Hold::Landlock) if !whole => "Landlock: ",
            Some(Hold::Bubblewrap(_)) if !whole => "bubblewrap: ",
            _ => "",
        };
        let mut containment = self.containment(ground.workspace, &[]);
        if !whole {
            containment = Containment { fence: containment.fence, ..Containment::NONE };
        }
        let tried = self.supervisor.contained(containment).try_out(ground.workspace, env, ground.scratch);
        tried.map_err(|why| format!("{name}{why}"))
    }

    /// What is protected and lies in something that is writable.
    fn exposed(&self, workspace: &Path) -> Vec<PathBuf> {
        let writable: Vec<PathBuf> = self.writable.iter().cloned().chain([real(workspace)]).collect();
        let lies_inside = |path: &&PathBuf| {
            let parent = path.parent().map(real).unwrap_or_default();
            writable.iter().any(|place| parent.starts_with(place) || real(path).starts_with(place))
        };
        self.protected.iter().filter(lies_inside).cloned().collect()
    }

    /// Launches gates and set-up commands that work in `folder`.
    pub(crate) fn gates(&self, folder: &Path) -> ProcessSupervisor {
        self.supervisor.contained(self.containment(folder, &[]))
    }

    /// Launches an agent that works in `folder`.
    pub(crate) fn agent(&self, folder: &Path, agent: &AgentName, scratch: &Path) -> ProcessSupervisor {
        // bubblewrap cannot bind anything to a path on which a link lies.
        let mut more = vec![real(scratch)];
        more.extend(self.states.get(agent).into_iter().flatten().cloned());
        self.supervisor.contained(self.containment(folder, &more))
    }

    fn containment(&self, folder: &Path, more: &[PathBuf]) -> Containment {
        let fence = self.hold.clone().map(|hold| {
            let mut writable = vec![real(folder)];
            writable.extend(more.iter().chain(&self.writable).cloned());
            let mut read_only = Vec::new();
            if hold != Hold::Landlock {
                read_only.clone_from(&self.protected);
                // A folder that something is bound to cannot be renamed.
                let ways = self
                    .protected
                    .iter()
                    .filter_map(|path| Some((path, writable.iter().find(|w| path.starts_with(w))?)));
                let between: Vec<PathBuf> = ways
                    .flat_map(|(path, top)| {
                        path.ancestors()
                            .skip(1)
                            .take_while(|part| *part != top.as_path())
                            .map(Path::to_owned)
                            .collect::<Vec<_>>()
                    })
                    .collect();
                writable.extend(between);
            }
            Fence { hold, writable, read_only }
        });
        Containment { fence, network: self.network, limits: self.limits }
    }

    /// Whether the home's gates, specs and configuration cannot be written to, wherever they lie.
    pub(crate) const fn keeps_home(&self) -> bool {
        matches!(self.hold, Some(Hold::Bubblewrap(_)))
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
                "write fence by {}: open are the workspace, a temporary folder, tool caches, the agent's own state{}",
                if *hold == Hold::Landlock { "Landlock" } else { "bubblewrap" },
                [String::new()].iter().chain(&self.named).map(String::as_str).collect::<Vec<_>>().join(", ")
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
        FenceChoice::Landlock => vec![Hold::Landlock],
        FenceChoice::Auto => std::iter::once(Hold::Landlock).chain(bubblewrap()).collect(),
    }
}

/// Where an agent keeps its own state. Folders that are missing are made where `make` says so.
fn state(agent: &AgentSettings, env: &Variables, make: bool) -> Vec<PathBuf> {
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
    let var = |name: &str| get(&all, name).map(ToOwned::to_owned);
    let places = vendors.into_iter().flat_map(|vendor| vendor.state_places(var)).collect::<Vec<PathBuf>>();
    // A file is made by its owner, who knows what has to stand in it.
    for folder in places.iter().filter(|place| make && place.extension().is_none_or(|e| e != "json")) {
        // What cannot be made is not there, and its owner will say so.
        let _ = std::fs::create_dir_all(folder);
    }
    places
}

/// What of a repository that lies elsewhere a commit in the workspace writes: objects, refs, and what is of this worktree alone.
/// What the worktree's own files say of where the repository is is not believed: they can be written from inside.
fn repository(workspace: &Path) -> Vec<PathBuf> {
    let own = || -> Option<Vec<PathBuf>> {
        let file = workspace.join(".git");
        if !std::fs::symlink_metadata(&file).ok()?.is_file() {
            return None;
        }
        let text = std::fs::read_to_string(&file).ok()?;
        let folder = workspace.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let common = folder.parent().filter(|parent| parent.ends_with("worktrees"))?.parent()?;
        if folder.starts_with(real(workspace)) || !common.join("HEAD").is_file() {
            return None;
        }
        // It must know of this workspace: else the file was pointed at somebody else's.
        let back = std::fs::read_to_string(folder.join("gitdir")).ok()?;
        if folder.join(back.trim()).canonicalize().ok()? != file.canonicalize().ok()? {
            return None;
        }
        let parts = ["objects", "refs", "logs"].map(|part| common.join(part));
        let is_plain = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        Some(parts.into_iter().filter(is_plain).chain([folder]).collect())
    };
    own().unwrap_or_default()
}

/// Where a run's own temporary folder is, so that a later process finds it again.
fn temp_of(run: &RunId) -> PathBuf {
    let digest = Digest::of(run.as_str());
    let name = format!("triphammer-{}", digest.as_str().get(..10).unwrap_or_default());
    real(&std::env::temp_dir()).join(name)
}

/// Removes the temporary folder of a run that nobody works on: a process that was killed could not.
pub(crate) fn remove_temp(run: &RunId) {
    let folder = temp_of(run);
    if is_private(&folder) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Whether a folder is there that is the user's and nobody else's.
fn is_private(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder).is_ok_and(|meta| {
        meta.is_dir()
            && meta.uid() == rustix::process::geteuid().as_raw()
            && meta.mode().trailing_zeros() >= 6
    })
}

/// Makes the run's own temporary folder.
fn private_temp(run: &RunId) -> Result<PathBuf, StartError> {
    let folder = temp_of(run);
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
    if is_private(&folder) {
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
        assert_eq!(places, [at("objects"), at("refs"), at("logs"), at("worktrees/linked")]);
        assert!(repository(&main).is_empty(), "its own folder lies in it");
        // A file that points at another's repository opens nothing.
        let other = room.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::copy(linked.join(".git"), other.join(".git")).unwrap();
        assert!(repository(&other).is_empty());
        // Nor does a repository that was made up inside.
        let forged = other.join("fake/worktrees/x");
        std::fs::create_dir_all(&forged).unwrap();
        std::fs::create_dir_all(other.join("fake/refs")).unwrap();
        std::fs::write(other.join("fake/HEAD"), "ref: refs/heads/x\n").unwrap();
        std::os::unix::fs::symlink(room.path(), other.join("fake/objects")).unwrap();
        std::fs::write(other.join(".git"), "gitdir: fake/worktrees/x\n").unwrap();
        std::fs::write(forged.join("gitdir"), other.join(".git").display().to_string()).unwrap();
        assert!(repository(&other).is_empty());
        // Where the worktree's own file leads is not asked.
        std::fs::write(at("worktrees/linked/commondir"), other.join("fake").display().to_string()).unwrap();
        assert_eq!(repository(&linked), places);
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
