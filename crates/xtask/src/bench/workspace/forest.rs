//! Trees to look at: built once for each size, and used again.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools;

/// Part of the path of a tree, so that one that was built by other rules is not used again.
const RULES: &str = "rules-2";

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
        let run = |words: &[&str]| {
            let output = self.git(words).output().map_err(|e| format!("starting git: {e}"))?;
            if output.status.success() {
                return Ok(output.stdout);
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("`git {}` in {} failed: {said}", words.join(" "), self.tree.display()))
        };
        if !self.tree.join(".git").exists() || run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
            run(&["init", "--quiet", "--initial-branch=main"])?;
            self.import()?;
            run(&["read-tree", "HEAD"])?;
            // Learns the stats, so that the next step finds nothing to write.
            run(&["update-index", "-q", "--refresh"])?;
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

    /// Has git take in all files as one commit and one pack: `git add` would write a file for each of them.
    fn import(&self) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("git fast-import in {}: {e}", self.tree.display());
        let mut git = self.git(&["-c", "core.compression=0", "fast-import", "--quiet", "--depth=0"]);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
        let told = match child.stdin.take() {
            Some(stdin) => tell(BufWriter::new(stdin), &self.tree).map_err(failed),
            None => Ok(()),
        };
        let status = child.wait().map_err(failed)?;
        told?;
        if status.success() { Ok(()) } else { Err(failed(std::io::Error::other(status.to_string()))) }
    }
}

/// The tree as `git fast-import` takes it.
fn tell(mut to: impl Write, tree: &Path) -> std::io::Result<()> {
    to.write_all(b"commit refs/heads/main\ncommitter bench <bench@localhost> 0 +0000\ndata 5\nstart\n")?;
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.extend((!path.ends_with(".git")).then_some(path));
                continue;
            }
            let text = std::fs::read(&path)?;
            let name = path.strip_prefix(tree).map_err(std::io::Error::other)?;
            writeln!(to, "M 100644 inline {}\ndata {}", name.display(), text.len())?;
            to.write_all(&text)?;
        }
    }
    to.flush()
}

/// About ten files in a directory, small ones, under names of mixed length: as long, and directories' paths as long, as
/// below `/usr` of a developer's machine (21 and 58 bytes on average).
fn fill(tree: &Path, files: u64) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("writing {}: {e}", path.display());
    std::fs::create_dir_all(tree).map_err(|e| failed(tree, e))?;
    let mut dice = Dice(files);
    let mut directories = vec![(tree.to_path_buf(), 0)];
    let mut made = 0;
    while made < files {
        let (parent, depth) = &directories[dice.below(directories.len())];
        if *depth < DEPTH {
            let directory = parent.join(dice.name(directories.len() as u64, 5));
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
        format!("{letters}{}", base36(number))
    }
}

/// A number in digits and letters.
fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        let digit = usize::try_from(number % 36).unwrap_or(0);
        digits.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[digit]));
        number /= 36;
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn chance_is_the_same_every_time() {
        let names = |seed| {
            let mut dice = Dice(seed);
            (0..1_000).map(|n| dice.name(n, 20)).collect::<Vec<_>>()
        };
        assert_eq!(names(7), names(7));
        assert_ne!(names(7), names(8));
        let lengths: BTreeSet<usize> = names(7).iter().map(String::len).collect();
        assert!(lengths.len() > 15, "{lengths:?}");
        assert_eq!(
            (base36(0), base36(35), base36(36 * 36 + 1)),
            ("0".to_owned(), "z".to_owned(), "101".to_owned())
        );
    }
}
