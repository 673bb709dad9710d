//! What holds a launch, with all that it starts: where it may write, which network it has, how much it may use.
//!
//! A [holder](crate::holder) lays it upon itself and then becomes the program. The shim that watches over it stays outside:
//! what is inside cannot reach it. Reading, running and local sockets
//! are not restricted. What cannot be held is an error and nothing is started: a fence that was asked for and is not
//! there would be believed.

mod bubblewrap;
mod fence;
mod limits;
mod network;
mod rights;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use triphammer_model::config::NetworkChoice;

pub use bubblewrap::program as bubblewrap_program;
pub use fence::{Fence, Hold};
pub use limits::TreeLimits;
pub(crate) use limits::{Groups, PREFIX as GROUP};

/// What holds a launch. The default holds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Containment {
    /// Where it may write; anywhere without one.
    pub fence: Option<Fence>,
    /// Which network it has.
    pub network: NetworkChoice,
    /// How much it may use.
    pub limits: TreeLimits,
}

/// A part of it, as the shim names the one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Fence,
    Network,
    Limits,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Fence, Self::Network, Self::Limits];

    /// What was attempted, for a message.
    pub(crate) const fn attempt(self) -> &'static str {
        match self {
            Self::Fence => "laying its write fence",
            Self::Network => "giving it a network of its own",
            Self::Limits => "setting its limits",
        }
    }
}

/// What a [holder](crate::holder) is told to lay.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    fence: Option<Fence>,
    network: NetworkChoice,
    file_size: Option<u64>,
    /// The files through which a process joins its control groups.
    join: Vec<PathBuf>,
}

impl Containment {
    /// Holds nothing.
    pub const NONE: Self = Self { fence: None, network: NetworkChoice::All, limits: TreeLimits::NONE };

    /// The arguments that tell a shim of it. `groups` are the control groups that were made for the launch.
    pub(crate) fn to_args(&self, groups: Option<&Groups>) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |flag: &str, value: &Path| args.extend([flag.into(), value.as_os_str().to_owned()]);
        if let Some(fence) = &self.fence {
            match &fence.hold {
                Hold::Landlock => add("--fence", Path::new("landlock")),
                Hold::Bubblewrap(program) => add("--fence", program),
            }
            fence.writable.iter().for_each(|path| add("--writable", path));
            fence.read_only.iter().for_each(|path| add("--read-only", path));
        }
        match self.network {
            NetworkChoice::All => {}
            NetworkChoice::Loopback => add("--network", Path::new("loopback")),
            NetworkChoice::None => add("--network", Path::new("none")),
        }
        if let Some(size) = self.limits.file_size {
            add("--file-size", Path::new(&size.bytes().to_string()));
        }
        groups.into_iter().flat_map(Groups::doors).for_each(|door| add("--join", &door));
        args
    }
}

impl Orders {
    /// Takes one argument in, and its value. `None` where it is none of ours, or has no sense.
    pub(crate) fn take(
        &mut self,
        flag: &OsString,
        mut value: impl FnMut() -> Option<OsString>,
    ) -> Option<()> {
        match flag.to_str()? {
            "--fence" => {
                let value = value()?;
                let hold = if value == "landlock" { Hold::Landlock } else { Hold::Bubblewrap(value.into()) };
                self.fence = Some(Fence { hold, writable: Vec::new(), read_only: Vec::new() });
            }
            "--writable" => self.fence.as_mut()?.writable.push(value()?.into()),
            "--read-only" => self.fence.as_mut()?.read_only.push(value()?.into()),
            "--network" => {
                self.network = match value()?.to_str()? {
                    "loopback" => NetworkChoice::Loopback,
                    "none" => NetworkChoice::None,
                    _ => return None,
                }
            }
            "--file-size" => self.file_size = Some(value()?.to_str()?.parse().ok()?),
            "--join" => self.join.push(value()?.into()),
            _ => return None,
        }
        Some(())
    }

    /// Whether there is anything to lay.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Lays everything upon this process, but for what is laid upon the program itself by [`Self::program`].
    ///
    /// # Errors
    /// The part that the system cannot hold.
    pub(crate) fn enforce(&self) -> Result<(), (Part, io::Error)> {
        network::enter(self.network).map_err(|e| (Part::Network, e))?;
        limits::join(&self.join).map_err(|e| (Part::Limits, e))?;
        limits::file_size(self.file_size).map_err(|e| (Part::Limits, e))?;
        if let Some(fence) = &self.fence {
            fence.enforce().map_err(|e| (Part::Fence, e))?;
        }
        // bubblewrap needs the rights itself, and withholds them from what it starts.
        let by_another = self.fence.as_ref().is_some_and(|fence| fence.hold != Hold::Landlock);
        if !by_another && (self.fence.is_some() || self.network != NetworkChoice::All) {
            rights::withhold().map_err(|e| (Part::Fence, e))?;
        }
        Ok(())
    }

    /// What is started: the program itself, or a holder of its fence that starts it.
    pub(crate) fn program(
        &self,
        program: OsString,
        args: Vec<OsString>,
        dir: &Path,
    ) -> io::Result<Vec<OsString>> {
        match &self.fence {
            Some(fence @ Fence { hold: Hold::Bubblewrap(holder), .. }) => {
                bubblewrap::around(holder, fence, program, args, dir)
            }
            _ => Ok(std::iter::once(program).chain(args).collect()),
        }
    }
}
