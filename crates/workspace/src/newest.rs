//! Newest first: which files a reader with little room is shown. What the run moved comes first, the newest attempt's
//! before earlier ones', then everything else by its time. A bulk of new files is one line, so that what a tool
//! unpacked does not push out the work.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use triphammer_model::{Attempt, Change, Content, Observed, WorkPath};

use crate::root::{ancestors, work_path};
use crate::snapshot::{Entry, Snapshot};

/// More new files than this under one directory are a bulk.
pub const BULK: usize = 200;

/// What a run moved, by path: the latest attempt that did, and whether the path is new since the start.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    paths: BTreeMap<WorkPath, Attempt>,
}

impl Moves {
    /// Takes in what an attempt moved. What only got other timestamps did not move.
    pub fn add(&mut self, attempt: Attempt, observed: &[Observed]) {
        for one in observed.iter().filter(|one| one.content != Content::Same) {
            if one.change == Change::Deleted {
                self.paths.remove(&one.path);
                continue;
            }
            let latest = self.paths.entry(one.path.clone()).or_insert(attempt);
            *latest = attempt.max(*latest);
        }
    }
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Newest {
    /// A file, link or special file.
    File {
        /// Its path.
        path: WorkPath,
        /// Its size in bytes.
        size: u64,
        /// When it was changed, in nanoseconds since 1970.
        mtime_ns: i64,
        /// The latest attempt that moved it.
        attempt: Option<Attempt>,
    },
    /// New files under one directory, too many to be named.
    Bulk {
        /// The directory.
        dir: WorkPath,
        /// How many new files there are.
        files: usize,
        /// The latest attempt that moved one of them.
        attempt: Attempt,
    },
}

/// The first lines of the list, with exact counts of what they leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestFirst {
    /// The lines.
    pub shown: Vec<Newest>,
    /// Files that neither stand in a line of their own nor in a bulk that is shown.
    pub left_out: usize,
    /// All files there are.
    pub total: usize,
}

/// Lists what `now` holds, newest first, at most `top` lines. `start` tells which directories are new; more than
/// `bulk` new files under the same one are one line.
pub fn newest_first(start: &Snapshot, now: &Snapshot, moves: &Moves, top: usize, bulk: usize) -> NewestFirst {
    let mut marked: Vec<(usize, Attempt)> = Vec::with_capacity(moves.paths.len());
    let mut groups: BTreeMap<Vec<u8>, (usize, Attempt)> = BTreeMap::new();
    for (path, attempt) in &moves.paths {
        let Some(index) = now.position(path.as_bytes()) else { continue };
        marked.push((index, *attempt));
        if start.position(path.as_bytes()).is_none() {
            let entry = now.at(index);
            let (files, latest) = groups.entry(top_of(start, &entry)).or_insert((0, *attempt));
            *files += 1;
            *latest = (*latest).max(*attempt);
        }
    }
    marked.sort_unstable();
    groups.retain(|_, (files, _)| *files > bulk);

    // Moved ones first, and of those the latest attempt's; then the youngest; ties by the order of the snapshot. A
    // bulk follows the files of its attempt.
    let mut lines: Vec<Line> = Vec::with_capacity(now.len());
    let mut marked = marked.into_iter().peekable();
    for (index, entry) in now.iter().enumerate() {
        let attempt = marked.next_if(|(at, _)| *at == index).map(|(_, attempt)| attempt);
        let in_bulk = attempt.is_some()
            && !groups.is_empty()
            && groups.contains_key(&top_of(start, &entry))
            && start.position(&entry.path()).is_none();
        if !in_bulk {
            lines.push((Reverse(attempt), Reverse(entry.mtime_ns()), index));
        }
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let bulks = groups.iter().enumerate();
    lines.extend(
        bulks.map(|(i, (_, (_, attempt)))| (Reverse(Some(*attempt)), Reverse(i64::MIN), now.len() + i)),
    );
    if lines.len() > top {
        if top > 0 {
            lines.select_nth_unstable(top - 1);
        }
        lines.truncate(top);
    }
    lines.sort_unstable();
    let mut left_out = now.len();
    let mut show = |(Reverse(attempt), _, index): Line| {
        if let Some(bulk) = index.checked_sub(now.len()) {
            let (dir, (files, attempt)) = &groups[bulk];
            left_out -= files;
            return Newest::Bulk { dir: work_path(dir), files: *files, attempt: *attempt };
        }
        left_out -= 1;
        let entry = now.at(index);
        let (path, size) = (entry.work_path(), entry.size());
        Newest::File { path, size, mtime_ns: entry.mtime_ns(), attempt }
    };
    let shown = lines.into_iter().map(&mut show).collect();
    NewestFirst { shown, left_out, total: now.len() }
}

/// The latest attempt that moved it, its time, and its number: that of an entry, or beyond those of a bulk.
type Line = (Reverse<Option<Attempt>>, Reverse<i64>, usize);

/// The outermost directory above an entry that is new since the start, or else its own directory.
fn top_of(start: &Snapshot, entry: &Entry<'_>) -> Vec<u8> {
    let own = entry.dir;
    let new = ancestors(own).chain([own]).find(|dir| !dir.is_empty() && start.directory(dir).is_none());
    new.unwrap_or(own).to_vec()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::root::Root;
    use crate::zones::{ZoneConfig, ZoneMap};

    fn look(dir: &Path) -> Snapshot {
        let root = Root::open(dir).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        Snapshot::deliverable(&root, &zones).unwrap()
    }

    fn put(dir: &Path, path: &str, mtime: u64) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(mtime)).unwrap();
    }

    fn observed(path: &str, change: Change, content: Content) -> Observed {
        let path = WorkPath::from(path);
        Observed { path, change, before: None, after: None, content, renamed_from: None }
    }

    fn lines(found: &NewestFirst) -> Vec<String> {
        let line = |line: &Newest| match line {
            Newest::File { path, attempt, .. } => format!("{path} {}", attempt.map_or(0, Attempt::get)),
            Newest::Bulk { dir, files, attempt } => format!("{dir}/ {files} {}", attempt.get()),
        };
        found.shown.iter().map(line).collect()
    }

    #[test]
    fn moved_ones_come_before_younger_ones() {
        let dir = tempfile::tempdir().unwrap();
        for (path, mtime) in [("old", 10), ("young", 90), ("src/sunk", 1), ("src/first", 50), ("gone", 5)] {
            put(dir.path(), path, mtime);
        }
        let start = look(dir.path());
        std::fs::remove_file(dir.path().join("gone")).unwrap();
        let now = look(dir.path());
        let mut moves = Moves::default();
        let touched = observed("young", Change::Changed, Content::Same);
        moves.add(Attempt::new(1), &[observed("src/first", Change::Changed, Content::Changed), touched]);
        moves.add(
            Attempt::new(2),
            &[
                observed("src/sunk", Change::Changed, Content::Unknown),
                observed("gone", Change::Deleted, Content::Changed),
            ],
        );
        let all = newest_first(&start, &now, &moves, 10, BULK);
        assert_eq!(lines(&all), ["src/sunk 2", "src/first 1", "young 0", "old 0"]);
        assert_eq!((all.left_out, all.total), (0, 4));
        let few = newest_first(&start, &now, &moves, 3, BULK);
        assert_eq!(lines(&few), lines(&all)[..3]);
        assert_eq!((few.left_out, few.total), (1, 4));
        assert_eq!(newest_first(&start, &now, &moves, 0, BULK).left_out, 4);
    }

    #[test]
    fn a_bulk_is_one_line_and_hides_no_work() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "src/a", 1);
        put(dir.path(), "data/old", 1);
        let start = look(dir.path());
        let mut came = vec![observed("src/a", Change::Changed, Content::Changed)];
        let new = (0..30).map(|n| format!("venv/lib/p{}/m{n}", n % 7));
        for path in new.chain((0..12).map(|n| format!("data/d{n}"))).chain(["src/b".to_owned()]) {
            put(dir.path(), &path, 100);
            came.push(observed(&path, Change::Added, Content::Changed));
        }
        let now = look(dir.path());
        let mut moves = Moves::default();
        moves.add(Attempt::new(3), &came);
        let found = newest_first(&start, &now, &moves, 100, 10);
        assert_eq!(lines(&found), ["src/b 3", "src/a 3", "data/ 12 3", "venv/ 30 3", "data/old 0"]);
        assert_eq!((found.left_out, found.total), (0, 45));
        let cut = newest_first(&start, &now, &moves, 3, 10);
        assert_eq!((lines(&cut).len(), cut.left_out), (3, 31));
        assert_eq!(newest_first(&start, &now, &moves, 100, 30).shown.len(), 45);
    }
}
