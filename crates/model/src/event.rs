//! What happened: everything that a decision depends on enters the machine as one of these.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{AgentName, Attempt, GateName, RunId, TreeId};
use crate::money::MicroUsd;
use crate::movement::MovementFacts;
use crate::outcome::{FailReason, SuspendReason};
use crate::policy::{Limits, Policy};
use crate::process::WaitStatus;
use crate::receipt::{CostBy, Fault, Tokens};
use crate::report::ReportFacts;

/// When an event happened, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Wall clock.
    pub at: Timestamp,
    /// Monotonic milliseconds since this process took the run up. Budgets count these, so a clock that is set
    /// back or a suspended machine spends nothing.
    pub elapsed_ms: u64,
}

/// How the workspace is kept apart from the person's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// The agent works in the workspace itself.
    #[default]
    InPlace,
    /// A private clone of the workspace's git repository, uncommitted work included.
    Worktree,
    /// A copy of the deliverable.
    Copy,
    /// An empty folder.
    New,
}

impl Isolation {
    /// Whether the agent works in a folder of its own, apart from the person's.
    pub const fn is_apart(self) -> bool {
        !matches!(self, Self::InPlace)
    }
}

/// The first event of a run: what was consented to and pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The run.
    pub run: RunId,
    /// The spec's name: its file stem, or `task`.
    pub spec: String,
    /// The spec's goal line.
    pub goal: String,
    /// Where the spec came from, as the person named it; `None` for `--task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_path: Option<String>,
    /// Pinned inputs: path below `pinned/` to digest.
    pub pins: BTreeMap<String, Digest>,
    /// Triphammer's version.
    pub version: String,
    /// The machine's own version; another one may decide otherwise.
    pub machine: u32,
    /// The breaker's policy.
    pub policy: Policy,
    /// What may be spent.
    pub limits: Limits,
    /// The fallback chain; never empty.
    pub agents: Vec<AgentName>,
    /// All green before any work is no reason to stop.
    pub allow_green: bool,
    /// The workspace folder, as a path escaped by [`crate::path::escape`].
    pub workspace: String,
    /// How it is kept apart.
    pub isolation: Isolation,
    /// The person's folder that an isolated workspace was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The deliverable before any work.
    pub tree: TreeId,
    /// Whether the workspace held no deliverable at all.
    pub empty: bool,
    /// The run that this one was branched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
}

/// What the gates say about the untouched workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightFacts {
    /// Gates that apply.
    pub gates: u32,
    /// Whether all of them are green.
    pub green: bool,
    /// Gates whose tool is missing and that nobody was asked to provide: gate to command.
    #[serde(default)]
    pub tools_missing: BTreeMap<GateName, String>,
    /// Spec checks that are green already: they prove nothing.
    #[serde(default)]
    pub vacuous: Vec<GateName>,
    /// Keep-greens that are red.
    #[serde(default)]
    pub keep_green_red: Vec<GateName>,
    /// Checks (spec checks and test gates on a non-empty workspace) that are red and may turn green.
    #[serde(default)]
    pub red_checks: Vec<GateName>,
}

/// How the agent's process tree ended, and what its side claims about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// How the leader ended.
    pub wait: WaitStatus,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Tokens; `None` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Money; `None` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// How the cost was come by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_by: Option<CostBy>,
    /// A fault read from structured fields or from the supervision itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Event {
    /// The run began.
    Started(Box<Started>),
    /// The gates ran on the untouched workspace.
    Preflighted(PreflightFacts),
    /// The fingerprint before the attempt is written down; the agent is not spawned yet.
    Looked {
        /// The attempt.
        attempt: Attempt,
    },
    /// The agent's process tree is dead.
    AgentEnded {
        /// The attempt.
        attempt: Attempt,
        /// The agent that ran.
        agent: AgentName,
        /// Which try within the attempt, from 1.
        try_no: u32,
        /// How it ended.
        facts: AgentFacts,
    },
    /// The pause before a retry is over.
    Waited {
        /// The attempt.
        attempt: Attempt,
    },
    /// The fingerprint after the attempt is taken, the trees are stored.
    Observed {
        /// The attempt.
        attempt: Attempt,
        /// What moved.
        movement: MovementFacts,
        /// The tree as the agent left it.
        left: TreeId,
        /// The tree as judged: protected bytes restored.
        tree: TreeId,
        /// Protected paths that were changed and restored.
        offences: u32,
        /// Whether anything that an agent moved differs from the start; what gates write does not count.
        moved_since_start: bool,
    },
    /// The gates have judged the attempt's tree.
    Judged {
        /// The attempt.
        attempt: Attempt,
        /// What they said.
        report: ReportFacts,
    },
    /// A signal or a person asked the run to stop.
    Interrupted {
        /// By what: `signal` or `cancel`.
        by: String,
    },
    /// Something the run needs failed. Suspends it, or fails it before the first attempt.
    Hindered {
        /// What kind of thing.
        reason: SuspendReason,
        /// What exactly.
        detail: String,
    },
    /// The run could not be set up.
    SetupFailed {
        /// Why.
        reason: FailReason,
        /// What exactly.
        detail: String,
    },
    /// What was pinned has been altered.
    PinsBroken {
        /// Which pins.
        pins: Vec<String>,
    },
    /// A process took the run up again.
    Resumed {
        /// Triphammer's version now.
        version: String,
        /// Processes that the dead run left behind and that were ended.
        #[serde(default)]
        ended: Vec<u32>,
        /// What was cut off the journal's torn end, in bytes.
        #[serde(default)]
        torn_bytes: u64,
    },
    /// A person answered or steered.
    Told {
        /// Who.
        by: String,
        /// What, verbatim.
        text: String,
    },
    /// A person decided what the machine left open.
    Decided {
        /// Accept or reject.
        accept: bool,
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
    /// Accepted work was merged into a person's tree.
    Applied {
        /// Which attempt's tree.
        attempt: Attempt,
        /// Where to.
        to: String,
        /// Paths that git left in conflict.
        conflicts: Vec<String>,
    },
    /// An in-place workspace was put back to tree 0.
    Undone {
        /// Whether edits made since were overwritten.
        forced: bool,
    },
    /// Every artifact's digest at the end of a process's work on the run.
    Sealed {
        /// Path below the run directory to digest.
        artifacts: BTreeMap<String, Digest>,
    },
}

impl Event {
    /// The event's word in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Preflighted(_) => "preflighted",
            Self::Looked { .. } => "looked",
            Self::AgentEnded { .. } => "agent-ended",
            Self::Waited { .. } => "waited",
            Self::Observed { .. } => "observed",
            Self::Judged { .. } => "judged",
            Self::Interrupted { .. } => "interrupted",
            Self::Hindered { .. } => "hindered",
            Self::SetupFailed { .. } => "setup-failed",
            Self::PinsBroken { .. } => "pins-broken",
            Self::Resumed { .. } => "resumed",
            Self::Told { .. } => "told",
            Self::Decided { .. } => "decided",
            Self::Applied { .. } => "applied",
            Self::Undone { .. } => "undone",
            Self::Sealed { .. } => "sealed",
        }
    }
}
