//! The folder of all runs of a home.

use std::path::{Path, PathBuf};

use triphammer_model::{Redactor, RunId, RunSummary};

use crate::file::{FileError, write_whole};
use crate::journal::{JournalError, is_live, read_journal};
use crate::run_dir::RunDir;

/// How much of an id is the second at which its run began: `20261130-170601`.
const SECOND: usize = 15;

/// `runs/` of a home.
#[derive(Clone, Debug)]
pub struct Runs(PathBuf);

/// A run that cannot be read; it disturbs no other.
#[derive(Debug)]
pub struct DamagedRun {
    /// Its folder's name.
    pub run: RunId,
    /// What is wrong.
    pub error: JournalError,
}

/// All runs, oldest first.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that can be read, with whether a process works on them now.
    pub runs: Vec<(RunSummary, bool)>,
    /// Those that cannot.
    pub damaged: Vec<DamagedRun>,
}

/// The folder of runs could not be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RunsError(#[from] pub FileError);

/// No single run goes by that name.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is none.
    #[error("no run in `{}` begins with `{wanted}`; `triphammer runs` lists them", runs.display())]
    Unknown {
        /// The name.
        wanted: String,
        /// Where it was looked for.
        runs: PathBuf,
    },
    /// There is none at all.
    #[error("there is no run in `{}` yet; `triphammer run <spec>` makes one", runs.display())]
    None {
        /// Where it was looked for.
        runs: PathBuf,
    },
    /// There are several.
    #[error("`{wanted}` names {} runs ({}); write more of the id", matches.len(), first_few(matches))]
    Ambiguous {
        /// The name.
        wanted: String,
        /// The runs.
        matches: Vec<RunId>,
    },
    /// The folder cannot be listed.
    #[error(transparent)]
    Runs(#[from] RunsError),
}

fn first_few(runs: &[RunId]) -> String {
    let mut names: Vec<&str> = runs.iter().take(3).map(RunId::as_str).collect();
    if runs.len() > 3 {
        names.push("...");
    }
    names.join(", ")
}

fn is_race(error: &FileError) -> bool {
    matches!(error.source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::AlreadyExists)
}

impl Runs {
    /// The folder at `path`; it need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, with the files that keep git and search tools out of it.
    ///
    /// # Errors
    /// [`RunsError`].
    pub fn prepare(&self) -> Result<(), RunsError> {
        std::fs::create_dir_all(&self.0).map_err(|e| FileError::new("making folder", &self.0, e))?;
        for (name, text) in [(".gitignore", "*\n!golden/\n!golden/**\n"), (".ignore", "*\n")] {
            let path = self.0.join(name);
            // Runs that begin at the same time write the same; each may take the other's half-written file away.
            let mut tries = 0;
            while !path.exists() {
                tries += 1;
                match write_whole(&path, text.as_bytes()) {
                    Err(e) if tries < 100 && is_race(&e) => {}
                    written => written?,
                }
            }
        }
        Ok(())
    }

    /// Makes the folder of a new run.
    ///
    /// # Errors
    /// [`RunsError`], also when it exists already.
    pub fn create(&self, id: &RunId, redactor: Redactor) -> Result<RunDir, RunsError> {
        let path = self.0.join(id.as_str());
        std::fs::create_dir(&path).map_err(|e| FileError::new("making folder", &path, e))?;
        Ok(RunDir::new(path, id.clone(), redactor))
    }

    /// The folder of an existing run.
    pub fn open(&self, id: &RunId, redactor: Redactor) -> RunDir {
        RunDir::new(self.0.join(id.as_str()), id.clone(), redactor)
    }

    /// Ids of all runs, oldest first.
    ///
    /// # Errors
    /// [`RunsError`] when the folder cannot be listed; a missing folder holds no run.
    pub fn ids(&self) -> Result<Vec<RunId>, RunsError> {
        let failed = |e| FileError::new("listing", &self.0, e);
        let entries = match std::fs::read_dir(&self.0) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_run = !name.starts_with('.') && name != "golden";
            if is_run && entry.file_type().map_err(failed)?.is_dir() {
                ids.push(RunId::new(name));
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Finds the one run that `wanted` names: a unique prefix of its id, or `latest`.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve(&self, wanted: &str) -> Result<RunId, ResolveError> {
        let ids = self.ids()?;
        if ids.is_empty() {
            return Err(ResolveError::None { runs: self.0.clone() });
        }
        if wanted == "latest" {
            return self.latest(&ids).ok_or_else(|| ResolveError::None { runs: self.0.clone() });
        }
        if let Some(exact) = ids.iter().find(|id| id.as_str() == wanted) {
            return Ok(exact.clone());
        }
        let mut matches: Vec<RunId> =
            ids.into_iter().filter(|id| !wanted.is_empty() && id.as_str().starts_with(wanted)).collect();
        match matches.len() {
            0 => Err(ResolveError::Unknown { wanted: wanted.to_owned(), runs: self.0.clone() }),
            1 => Ok(matches.remove(0)),
            _ => Err(ResolveError::Ambiguous { wanted: wanted.to_owned(), matches }),
        }
    }

    /// The newest of runs in order: an id tells the second of its start, the journal the rest.
    fn latest(&self, ids: &[RunId]) -> Option<RunId> {
        let second = |id: &RunId| id.as_str().get(..SECOND).map(str::to_owned);
        // A folder without a journal never was a run, whoever made it; a damaged journal still is one, and no
        // older run may be taken for it.
        let exists = |id: &&RunId| self.0.join(id.as_str()).join("journal.jsonl").symlink_metadata().is_ok();
        let last = ids.iter().rev().find(exists)?;
        let same: Vec<&RunId> =
            ids.iter().rev().filter(exists).take_while(|id| second(id) == second(last)).collect();
        if let [only] = same[..] {
            return Some(only.clone());
        }
        let begun = |id: &RunId| {
            let journal = read_journal(&self.0.join(id.as_str()).join("journal.jsonl")).ok()?;
            journal.lines.first().map(|line| line.at)
        };
        same.into_iter().max_by_key(|id| (begun(id), (*id).clone())).cloned()
    }

    /// All runs with their summaries, from their journals, by the time at which they began.
    ///
    /// # Errors
    /// [`RunsError`] when the folder cannot be listed; a damaged run is in the listing.
    pub fn list(&self) -> Result<Listing, RunsError> {
        let mut listing = Listing::default();
        for id in self.ids()? {
            let path = self.0.join(id.as_str()).join("journal.jsonl");
            match read_journal(&path) {
                Ok(text) => match RunSummary::fold(&text.lines) {
                    Some(summary) => listing.runs.push((summary, is_live(&path))),
                    None => listing.damaged.push(DamagedRun {
                        run: id,
                        error: JournalError::Damaged {
                            path,
                            line: 1,
                            why: "the first event is no `started`".to_owned(),
                        },
                    }),
                },
                Err(error) => listing.damaged.push(DamagedRun { run: id, error }),
            }
        }
        listing.runs.sort_by(|(a, _), (b, _)| (a.started, &a.run).cmp(&(b.started, &b.run)));
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use triphammer_model::{Event, Stamp};

    use super::*;
    use crate::journal::Journal;

    /// A run whose journal begins at `second`.
    fn run(runs: &Runs, id: &str, second: i64) {
        let dir = runs.create(&RunId::new(id), Redactor::default()).unwrap();
        let stamp = Stamp { at: jiff::Timestamp::from_second(second).unwrap(), elapsed_ms: 0 };
        let event = Event::Told { by: "ann".to_owned(), text: "x".to_owned() };
        Journal::create(&dir.journal(), Redactor::default()).unwrap().append(stamp, &event, &[]).unwrap();
    }

    #[test]
    fn many_may_begin_at_once() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let runs = Runs::new(dir.path().join("runs"));
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(|| runs.prepare())).collect();
                for one in all {
                    one.join().unwrap().unwrap();
                }
            });
            assert!(
                dir.path().join("runs/.gitignore").is_file() && dir.path().join("runs/.ignore").is_file()
            );
        }
    }

    #[test]
    fn a_prefix_names_one_run_and_latest_the_newest() {
        let home = tempfile::tempdir().unwrap();
        let runs = Runs::new(home.path().join("runs"));
        assert!(matches!(runs.resolve("latest"), Err(ResolveError::None { .. })));
        runs.prepare().unwrap();
        std::fs::create_dir(runs.path().join("golden")).unwrap();
        run(&runs, "20261130-170601-roman-ffff", 1);
        // Of the same second, the one that sorts first began last.
        run(&runs, "20261130-170602-b-0000", 3);
        run(&runs, "20261130-170602-a-ffff", 4);
        run(&runs, "20261130-170602-c-ffff", 2);
        std::fs::create_dir(runs.path().join("20991231-000000-planted-ffff")).unwrap();
        let named = |wanted: &str| runs.resolve(wanted).map(|id| id.to_string());
        assert_eq!(named("latest").unwrap(), "20261130-170602-a-ffff");
        assert_eq!(named("20261130-170602-b").unwrap(), "20261130-170602-b-0000");
        for (wanted, many) in [("20261130-170602", true), ("roman", false), ("", false), ("golden", false)] {
            let error = runs.resolve(wanted).unwrap_err();
            assert_eq!(matches!(error, ResolveError::Ambiguous { .. }), many, "{wanted}: {error}");
        }
    }

    #[test]
    fn a_damaged_run_disturbs_no_other() {
        let home = tempfile::tempdir().unwrap();
        let runs = Runs::new(home.path().to_owned());
        run(&runs, "1-no-start", 1);
        std::fs::create_dir(runs.path().join("2-empty")).unwrap();
        let listing = runs.list().unwrap();
        assert!(listing.runs.is_empty());
        let damaged: Vec<&str> = listing.damaged.iter().map(|d| d.run.as_str()).collect();
        assert_eq!(damaged, ["1-no-start", "2-empty"]);
    }
}
