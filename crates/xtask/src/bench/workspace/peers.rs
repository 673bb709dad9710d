//! Those who look at a tree as programs of their own. What they print goes nowhere while they are timed.

use std::process::{Command, Stdio};

use super::forest::Forest;
use crate::tools;

/// Reads every directory and stats every file, and keeps what a fingerprint keeps; then prints the paths if asked to.
const NODE: &str = r#"
const fs = require("fs"), tree = process.argv[1], how = process.argv[2], list = process.argv[3] === "list";
const kept = [];
function sync(dir, below) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const path = below + entry.name;
    if (entry.isDirectory()) {
      if (entry.name !== ".git") sync(dir + "/" + entry.name, path + "/");
    } else {
      const found = fs.lstatSync(dir + "/" + entry.name);
      kept.push([path, found.size, found.mtimeMs]);
    }
  }
}
async function async_(dir, below) {
  for (const entry of await fs.promises.readdir(dir, { withFileTypes: true })) {
    const path = below + entry.name;
    if (entry.isDirectory()) {
      if (entry.name !== ".git") await async_(dir + "/" + entry.name, path + "/");
    } else {
      const found = await fs.promises.lstat(dir + "/" + entry.name);
      kept.push([path, found.size, found.mtimeMs]);
    }
  }
}
function end() {
  if (list) fs.writeSync(1, kept.map(([path]) => path + "\0").join(""));
}
if (how === "sync") { sync(tree, ""); end(); } else { async_(tree, "").then(end); }
"#;

/// A program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Find,
    GitStatus,
    NodeSync,
    NodeAsync,
}

/// Those that are installed.
pub(crate) fn installed() -> Vec<Peer> {
    let all = [Peer::Find, Peer::GitStatus, Peer::NodeSync, Peer::NodeAsync];
    all.into_iter().filter(|peer| tools::is_on_path(peer.program())).collect()
}

impl Peer {
    fn program(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::GitStatus => "git",
            Self::NodeSync | Self::NodeAsync => "node",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::GitStatus => "git-status",
            Self::NodeSync => "node-sync",
            Self::NodeAsync => "node-async",
        }
    }

    /// One look at the tree.
    pub(crate) fn look(self, forest: &Forest) -> Command {
        let mut command = match self {
            Self::Find => find(forest, "%s %T@ %C@ %i %P\\n"),
            // Its index stays as it is, so that every round finds the same.
            Self::GitStatus => forest.git(&["--no-optional-locks", "status", "--porcelain", "-unormal"]),
            Self::NodeSync => node(forest, &["sync"]),
            Self::NodeAsync => node(forest, &["async"]),
        };
        command.stdout(Stdio::null());
        command
    }

    /// The paths it sees, each ended by a zero byte.
    pub(crate) fn list(self, forest: &Forest) -> Command {
        match self {
            Self::Find => find(forest, "%P\\0"),
            // A status names what differs, and nothing does: what it compares is what it tracks.
            Self::GitStatus => forest.git(&["ls-files", "-z", "--cached", "--others"]),
            Self::NodeSync => node(forest, &["sync", "list"]),
            Self::NodeAsync => node(forest, &["async", "list"]),
        }
    }
}

fn find(forest: &Forest, format: &str) -> Command {
    let mut find = Command::new("find");
    find.arg(&forest.tree).args(["-name", ".git", "-prune", "-o", "!", "-type", "d", "-printf", format]);
    find.env("LC_ALL", "C").stdin(Stdio::null());
    find
}

fn node(forest: &Forest, words: &[&str]) -> Command {
    let mut node = Command::new("node");
    node.args(["--eval", NODE, "--"]).arg(&forest.tree).args(words);
    node.env_remove("NODE_OPTIONS").stdin(Stdio::null());
    node
}
