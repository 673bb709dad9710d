//! Trees to look at: built once for each size, and used again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools;

/// Part of the path of a tree, so that one that was built by other rules is not used again.
const RULES: &str = "rules-1";

/// How deep directories lie, at most.
const DEPTH: usize = 13;

/// A tree, with a git repository in it where git is installed.
pub(crate) struct Forest {
    pub(crate) files: u64,
    pub(crate) tree: PathBuf,
    /// For what is written beside the tree.
    pub(crate) beside: PathBuf,
}

impl Forest {
    /// Builds the tree in `folder` unless it is there.
    pub(crate) fn plant(folder: &Path, files: u64) -> Result<Self, String> {
        let beside = folder.join(RULES).join(files.to_string());
        let (tree, complete) = (beside.join("tree"), beside.join("complete"));
        if !complete.exists() {
            if beside.exists() {
                std::fs::remove_dir_all(&beside)
                    .map_err(|e| format!("removing {}: {e}", beside.display()))?;
            }
            fill(&tree, files)?;
            std::fs::write(&complete, "").map_err(|e| format!("writing {}: {e}", complete.display()))?;
        }
        let beside = beside.canonicalize().map_err(|e| format!("{}: {e}", beside.display()))?;
        let forest = Self { files, tree: beside.join("tree"), beside };
        if tools::is_on_path("git") {
            forest.commit()?;
        }
        Ok(forest)
    }

    /// `git` in the tree, with a configuration that is the same on every machine.
    pub(crate) fn git(&self, words: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.tree).args(["-c", "core.untrackedCache=false", "-c", "core.fsmonitor=false"]);
        git.args(words).stdin(Stdio::null());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", &self.beside);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            git.env_remove(name);
        }
        git
    }

    /// Commits the tree, and makes it as it was committed.
    fn commit(&self) -> Result<(), String> {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        // The threshold has all content written into one pack instead of a file each.
        let packed = ["-c", "core.bigFileThreshold=1", "-c", "core.compression=0", "-c", "gc.auto=0"];
        let run = |words: &[&str]| {
            let all: Vec<&str> = identity.iter().chain(&packed).chain(words).copied().collect();
            let output = self.git(&all).output().map_err(|e| format!("starting git: {e}"))?;
            if output.status.success() {
                return Ok(output.stdout);
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("`git {}` in {} failed: {said}", words.join(" "), self.tree.display()))
        };
        if run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() || !self.tree.join(".git").exists() {
            run(&["init", "--quiet", "--initial-branch=main"])?;
            run(&["add", "--all", "--force"])?;
            run(&["commit", "--quiet", "--message", "start"])?;
        }
        // An earlier bench may have ended in the middle of an attempt.
        run(&["reset", "--quiet", "--hard"])?;
        match run(&["status", "--porcelain"])?.as_slice() {
            [] => Ok(()),
            differs => Err(format!(
                "{} is not what was built: remove it and run this again\n{}",
                self.tree.display(),
                String::from_utf8_lossy(&differs[..differs.len().min(1_000)])
            )),
        }
    }
}

/// About ten files in a directory, small ones, under names of mixed length.
fn fill(tree: &Path, files: u64) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("writing {}: {e}", path.display());
    std::fs::create_dir_all(tree).map_err(|e| failed(tree, e))?;
    let mut dice = Dice(files);
    let mut directories = vec![(tree.to_path_buf(), 0)];
    let mut made = 0;
    while made < files {
        let (parent, depth) = &directories[dice.below(directories.len())];
        if *depth < DEPTH {
            let directory = parent.join(dice.name(directories.len() as u64, 14));
            let depth = depth + 1;
            std::fs::create_dir(&directory).map_err(|e| failed(&directory, e))?;
            for _ in 0..dice.below(20).min(usize::try_from(files - made).unwrap_or(usize::MAX)) {
                made += 1;
                let name = dice.name(made, 20) + [".rs", ".txt", ".json", ""][dice.below(4)];
                let path = directory.join(name);
                let text = format!("file number {made}{}\n", ".".repeat(dice.below(100)));
                std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
            }
            directories.push((directory, depth));
        }
    }
    Ok(())
}

/// The same chance every time.
struct Dice(u64);

impl Dice {
    /// A number below `end`, by Marsaglia's xorshift.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap_or(0)
    }

    /// A name of up to so many letters and a number that makes it unique.
    fn name(&mut self, number: u64, letters: usize) -> String {
        let length = 1 + self.below(letters);
        let letters: String =
            (0..length).map(|_| char::from(b'a' + self.below(26).to_le_bytes()[0])).collect();
        format!("{letters}{number}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn chance_is_the_same_every_time_and_names_differ() {
        let names = |seed| {
            let mut dice = Dice(seed);
            (0..1_000).map(|n| dice.name(n, 20)).collect::<Vec<_>>()
        };
        assert_eq!(names(7), names(7));
        assert_ne!(names(7), names(8));
        let lengths: BTreeSet<usize> = names(7).iter().map(String::len).collect();
        assert!(lengths.len() > 15, "{lengths:?}");
        assert_eq!(names(7).iter().collect::<BTreeSet<_>>().len(), 1_000);
    }
}
