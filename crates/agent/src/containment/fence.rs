//! The fence: where a process tree may write. Reading and running are not restricted.
//!
//! Landlock is what a process lays upon itself and everything below it and which nothing takes off again. The shim does
//! so before it starts the program. It grants whole hierarchies: what lies in a folder that may be written to may be
//! written to. bubblewrap starts the program in a view of the file system that is read-only but for what is bound into
//! it, so that a folder can be writable and one in it not.

use std::io;
use std::path::PathBuf;

/// Where a process tree may write. Files and folders that are not there are passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// What holds it.
    pub hold: Hold,
    /// Folders, with all below them, and files.
    pub writable: Vec<PathBuf>,
    /// What is read-only below a writable folder all the same; only bubblewrap holds that.
    pub read_only: Vec<PathBuf>,
}

/// What holds a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Landlock.
    Landlock,
    /// The bubblewrap program at this path.
    Bubblewrap(PathBuf),
}

/// Devices that every program may write to.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

impl Fence {
    /// Lays Landlock's fence upon this thread and what it starts from now on. It cannot be taken off. Another holder's is
    /// laid by starting the program through it.
    ///
    /// # Errors
    /// The system cannot hold it.
    #[cfg(target_os = "linux")]
    pub fn enforce(&self) -> io::Result<()> {
        if self.hold != Hold::Landlock {
            return Ok(());
        }
        use landlock::{
            AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
            RulesetCreatedAttr, RulesetStatus,
        };
        let all: BitFlags<AccessFs> = AccessFs::from_write(NEWEST);
        let failed = |error: &dyn std::fmt::Display| io::Error::other(format!("Landlock: {error}"));
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)
            .and_then(Ruleset::create)
            .map_err(|e| failed(&e))?;
        for path in self.writable.iter().map(PathBuf::as_path).chain(DEVICES.iter().map(std::path::Path::new))
        {
            let Ok(fd) = PathFd::new(path) else { continue };
            let allowed = if path.is_dir() { all } else { all & AccessFs::from_file(NEWEST) };
            ruleset = ruleset.add_rule(PathBeneath::new(fd, allowed)).map_err(|e| failed(&e))?;
        }
        let status = ruleset.restrict_self().map_err(|e| failed(&e))?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel has no Landlock"));
        }
        Ok(())
    }

    /// Lays the fence upon this thread and what it starts from now on, which nothing here can.
    ///
    /// # Errors
    /// This system has none.
    #[cfg(not(target_os = "linux"))]
    pub fn enforce(&self) -> io::Result<()> {
        if self.hold != Hold::Landlock {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is no write fence on this system"))
    }

    /// Whether this system's Landlock is one that does not hold all of it: cutting files short came with its third version,
    /// renaming between folders with its second.
    pub fn is_partial() -> bool {
        #[cfg(target_os = "linux")]
        {
            use landlock::{ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
            let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
            ruleset.handle_access(AccessFs::from_write(ABI::V3)).is_err()
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Whether this system has Landlock: tried on a thread of its own, which ends with it.
    pub fn is_available() -> bool {
        let nowhere = Self { hold: Hold::Landlock, writable: Vec::new(), read_only: Vec::new() };
        std::thread::spawn(move || nowhere.enforce().is_ok()).join().unwrap_or(false)
    }
}

/// What we know of; an older kernel holds what it can.
#[cfg(target_os = "linux")]
const NEWEST: landlock::ABI = landlock::ABI::V5;
