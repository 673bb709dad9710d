//! Newest first: which files a reader with little room is shown. What the run moved comes first, the newest attempt's
//! before earlier ones', then everything else by its time. A bulk of new files is one line, so that what a tool
//! unpacked does not push out the work.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use triphammer_model::{Attempt, Change, Content, Observed, WorkPath};

use crate::root::{ancestors, split, work_path};
use crate::snapshot::Snapshot;

/// More new files than this under one directory are a bulk.
pub const BULK: usize = 200;

/// What a run moved and what is still there, by path, with the latest attempt that did.
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

/// Lists what `now` holds, newest first, at most `top` lines. Where not all files fit, more than `bulk` files under one
/// directory that are not in `start` are one line: that of the smallest such directory.
pub fn newest_first(start: &Snapshot, now: &Snapshot, moves: &Moves, top: usize, bulk: usize) -> NewestFirst {
    let mut marked: Vec<(usize, Attempt)> = Vec::with_capacity(moves.paths.len());
    let mut new: BTreeMap<WorkPath, Attempt> = BTreeMap::new();
    for (path, attempt) in &moves.paths {
        let Some(index) = now.position(path.as_bytes()) else { continue };
        marked.push((index, *attempt));
        if start.position(path.as_bytes()).is_none() {
            new.insert(path.clone(), *attempt);
        }
    }
    marked.sort_unstable();
    // As long as there is room for every file each is named.
    let groups = if now.len() > top { bulks(&new, bulk) } else { BTreeMap::new() };

    // Moved ones first, and of those the latest attempt's; then the youngest; ties by the order of the snapshot. A
    // bulk follows the files of its attempt.
    let mut lines: Vec<Line> = Vec::with_capacity(now.len());
    let mut marked = marked.into_iter().peekable();
    for (index, entry) in now.iter().enumerate() {
        let attempt = marked.next_if(|(at, _)| *at == index).map(|(_, attempt)| attempt);
        let in_bulk = !groups.is_empty()
            && new.contains_key(&entry.work_path())
            && bulk_of(&groups, entry.dir).is_some();
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

/// New files by the smallest directory that holds more than `bulk` of them, with the latest attempt that moved one.
fn bulks(new: &BTreeMap<WorkPath, Attempt>, bulk: usize) -> BTreeMap<Vec<u8>, (usize, Attempt)> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for path in new.keys() {
        for dir in ancestors(path.as_bytes()) {
            *counts.entry(dir).or_default() += 1;
        }
    }
    let mut groups: BTreeMap<Vec<u8>, (usize, Attempt)> = BTreeMap::new();
    // A directory comes after those that it lies in, so the innermost ones are first here.
    let dirs: Vec<&[u8]> = counts.keys().rev().copied().collect();
    for dir in dirs {
        let count = counts[dir];
        if count > bulk {
            groups.insert(dir.to_vec(), (0, Attempt::FIRST));
            for above in ancestors(dir) {
                counts.entry(above).and_modify(|rest| *rest -= count);
            }
        }
    }
    for (path, attempt) in new {
        let dir = split(path.as_bytes()).0;
        if let Some(top) = bulk_of(&groups, dir).map(<[u8]>::to_vec)
            && let Some((files, latest)) = groups.get_mut(&top)
        {
            *files += 1;
            *latest = (*latest).max(*attempt);
        }
    }
    groups
}

/// The innermost of the groups that the directory `dir` lies in.
fn bulk_of<'a>(groups: &BTreeMap<Vec<u8>, (usize, Attempt)>, dir: &'a [u8]) -> Option<&'a [u8]> {
    let above = ancestors(dir).chain((!dir.is_empty()).then_some(dir));
    above.filter(|dir| groups.contains_key(*dir)).last()
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
        let found = newest_first(&start, &now, &moves, 40, 10);
        assert_eq!(lines(&found), ["src/b 3", "src/a 3", "data/ 12 3", "venv/lib/ 30 3", "data/old 0"]);
        assert_eq!((found.left_out, found.total), (0, 45));
        let cut = newest_first(&start, &now, &moves, 3, 10);
        assert_eq!((lines(&cut).len(), cut.left_out), (3, 31));
        // Where all fit, and where there is no bulk, every file is named.
        assert_eq!(newest_first(&start, &now, &moves, 45, 10).shown.len(), 45);
        assert_eq!(newest_first(&start, &now, &moves, 40, 30).shown.len(), 40);
    }
}
