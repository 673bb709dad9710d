//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use triphammer_model::Size;
use triphammer_model::{MicroUsd, Span};

/// A software factory in one binary: it strikes a spec until its gates pass, and proves what it says.
#[derive(Debug, Parser)]
#[command(name = "triphammer", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes of run and resume: 0 accepted, 1 rejected, 2 usage or spec error, 3 stalled, 4 budget exhausted,
5 suspended or failed, 6 nothing to do, 130 interrupted. A RUN is a unique id prefix or `latest`.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a home here: configuration, an example spec, the gates that fit.
    Init(InitArgs),
    /// Tell what this machine has: tools, agents, gates that can run, disk.
    Doctor(HomeArgs),
    /// Print a shell's completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Make, check or lock a spec.
    Spec {
        #[command(subcommand)]
        command: SpecCommand,
    },
    /// Forge a spec: implement, observe, gate, feed back, again.
    Run(Box<RunArgs>),
    /// Go on with a suspended or interrupted run.
    Resume(ResumeArgs),
    /// Tell a run something: it goes into the next brief, verbatim and attributed.
    Tell(TellArgs),
    /// Decide about a run that is suspended as needs-review.
    Decide(DecideArgs),
    /// Land accepted isolated work in your own folder by a three-way merge.
    Apply(ApplyArgs),
    /// Put an in-place workspace back to how it was before the run.
    Undo(UndoArgs),
    /// Write an attempt's tree into a folder (0 is the start).
    Restore(RestoreArgs),
    /// List the runs of this home.
    Runs(ListArgs),
    /// Show a run, or one attempt: brief, touched files, verdicts, why it ended.
    Show(ShowArgs),
    /// Show what differs between two attempts' trees (0 is the start).
    Diff(DiffArgs),
    /// Print an attempt's agent output.
    Logs(LogsArgs),
    /// Check that a run's record holds together: chain, decisions, artifacts, pins, trees, summary.
    Verify(VerifyArgs),
    /// Decide a recorded run again: as it was, or under another policy.
    Replay(ReplayArgs),
    /// Write a run in a format of other tools: test reports, code scanning, annotations, trajectories.
    Export(ExportArgs),
    /// The guard for agents that ask before they run a command.
    Hook {
        #[command(subcommand)]
        command: HookCommand,
    },
    /// Remove old runs and what nothing refers to; never the only copy of accepted or unfinished work.
    Gc(GcArgs),
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct HomeArgs {
    /// The home; by default the nearest folder above with a triphammer.toml.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// The folder to make a home of.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SpecCommand {
    /// Write a draft to fill in.
    New {
        /// The spec's file.
        spec: PathBuf,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Validate a spec and run its checks on the untouched workspace: they should be red.
    Check {
        /// The spec's file.
        spec: PathBuf,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Give consent: refuses checks that are green already and keep-greens that are red.
    Lock {
        /// The spec's file.
        spec: PathBuf,
        #[command(flatten)]
        home: HomeArgs,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Isolate {
    /// In the workspace itself.
    InPlace,
    /// In a private clone of its git repository, uncommitted work included.
    Worktree,
    /// In a copy.
    Copy,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Judge {
    Auto,
    Required,
    Off,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// The spec's file.
    #[arg(required_unless_present = "task", conflicts_with = "task")]
    pub(crate) spec: Option<PathBuf>,
    /// A task in words instead of a spec; implies --allow-green.
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// The home; by default the nearest folder above with a triphammer.toml.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The folder to work on, or `new` for an empty one outside any repository.
    #[arg(long, value_name = "DIR|new")]
    pub(crate) workspace: Option<PathBuf>,
    /// The agent by name; several, separated by commas, are a fallback chain.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "agent_cmd")]
    pub(crate) agent: Vec<String>,
    /// A shell line that works on the brief it gets on its standard input.
    #[arg(long, value_name = "SH LINE")]
    pub(crate) agent_cmd: Option<String>,
    /// A variable that the agent of --agent-cmd gets beyond the shared environment; repeatable.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "agent_cmd")]
    pub(crate) agent_env: Vec<String>,
    /// Where the agent works.
    #[arg(long, value_enum)]
    pub(crate) isolate: Option<Isolate>,
    /// Attempts, 1 to 50.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) attempts: Option<u32>,
    /// Wall clock, such as 90m or 4h.
    #[arg(long, value_name = "DURATION")]
    pub(crate) budget: Option<Span>,
    /// Money in USD.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<MicroUsd>,
    /// Tokens: input, cached and output together.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Whether a model judges.
    #[arg(long, value_enum)]
    pub(crate) judge: Option<Judge>,
    /// Go on although every gate is green before any work.
    #[arg(long)]
    pub(crate) allow_green: bool,
    /// Run a spec that is still a draft.
    #[arg(long)]
    pub(crate) draft: bool,
    /// Show what would happen and stop; no agent is called.
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

impl RunArgs {
    /// What `run --draft SPEC` means.
    pub(crate) fn of_spec(spec: PathBuf, home: Option<PathBuf>) -> Self {
        Self {
            spec: Some(spec),
            task: None,
            home,
            workspace: None,
            agent: Vec::new(),
            agent_cmd: None,
            agent_env: Vec::new(),
            isolate: None,
            attempts: None,
            budget: None,
            max_cost: None,
            max_tokens: None,
            judge: None,
            allow_green: false,
            draft: true,
            plan: false,
            json: false,
        }
    }
}

fn dollars(text: &str) -> Result<MicroUsd, String> {
    let text = text.strip_prefix('$').unwrap_or(text);
    text.parse().map_err(|e: triphammer_model::money::BadMoney| e.to_string())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The run.
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TellArgs {
    /// The run.
    pub(crate) run: String,
    /// What to tell it.
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decision {
    Accept,
    Reject,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DecideArgs {
    /// The run.
    pub(crate) run: String,
    /// The decision.
    pub(crate) decision: Decision,
    /// Why; kept in the journal beside who decided.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// The run.
    pub(crate) run: String,
    /// An attempt, when it is not the accepted one.
    pub(crate) attempt: Option<u32>,
    /// The folder to land in; by default the one that the workspace was made from.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// The run.
    pub(crate) run: String,
    /// Overwrite edits made since the run ended; they are kept as a tree.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// The run.
    pub(crate) run: String,
    /// The attempt; 0 is the start.
    pub(crate) attempt: u32,
    /// The folder to write into.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Write over what is there: the folder's deliverable becomes the tree.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The run.
    pub(crate) run: String,
    /// The attempt.
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// The run.
    pub(crate) run: String,
    /// Also read the contents of the files in its trees.
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// The run.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) run: Option<String>,
    /// Every run of this home.
    #[arg(long)]
    pub(crate) all: bool,
    /// Decide under another policy, such as `breaker.proofs=2`; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) policy: Vec<String>,
    /// Run gates on the trees of its attempts instead: those that it was pinned to, or a pack, or a pack's file.
    #[arg(long, value_name = "PACK|FILE", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["all", "policy"])]
    pub(crate) gates: Option<String>,
    /// Of this attempt only (0 is the start).
    #[arg(long, value_name = "N", requires = "gates")]
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("format").required(true))]
pub(crate) struct ExportArgs {
    /// The run.
    pub(crate) run: String,
    /// A test report in the XML of `JUnit`: a suite for each attempt, a case for each gate.
    #[arg(long, group = "format")]
    pub(crate) junit: bool,
    /// SARIF 2.1.0: what the gates found in the accepted attempt, or else the last one.
    #[arg(long, group = "format")]
    pub(crate) sarif: bool,
    /// GitHub: annotations on standard output, a step summary into -o or where the runner takes it from.
    #[arg(long, group = "format")]
    pub(crate) github: bool,
    /// Trajectories in ATIF 1.8: one JSON document a line for each attempt.
    #[arg(long, group = "format")]
    pub(crate) atif: bool,
    /// Of this attempt only.
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Write into this file instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The home; by default the nearest folder above with a triphammer.toml.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// The run.
    pub(crate) run: String,
    /// An attempt; 0 is the start.
    pub(crate) from: u32,
    /// Another attempt.
    pub(crate) to: u32,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogsArgs {
    /// Go on printing while the run is worked on.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The run.
    pub(crate) run: String,
    /// The attempt; by default the last one.
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GcArgs {
    /// Remove runs that ended at least so many days ago.
    #[arg(long, value_name = "N")]
    pub(crate) keep_days: Option<u32>,
    /// Remove the oldest runs until runs/ takes at most this, such as 500M or 20G.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<Size>,
    /// Remove runs beyond the newest N.
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<usize>,
    /// Drop the trees of runs whose folder is gone, whatever they hold.
    #[arg(long)]
    pub(crate) orphans: bool,
    /// Only say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Have an agent ask the guard before it runs a command; backs up, merges, can be undone.
    Install(HookInstallArgs),
    /// Judge the tool call on standard input: exit 0 lets it through, exit 2 refuses it with the reason on stderr.
    PreTool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookInstallArgs {
    /// The agent.
    #[arg(long, value_enum, default_value = "claude")]
    pub(crate) agent: HookAgent,
    /// In this project's folder instead of for all that you do.
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Take it out again.
    #[arg(long)]
    pub(crate) undo: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An agent that asks before it runs a command.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HookAgent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Opencode,
    Pi,
}
