//! What lies in the workspace, without what git ignores.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::inside::Inside;
use super::shown::{self, Lines};

/// Folders below the listed one whose content is shown.
const DEPTH: usize = 3;
/// Entries that are looked at, at most.
const MOST: u64 = 200_000;

/// Walks what lies at `target`, sorted, links not followed. Ignore files above it count where they lie in the workspace;
/// a folder that is itself ignored can be walked when it is named.
pub(super) fn walk(inside: &Inside, target: &Path, depth: Option<usize>) -> Result<Vec<DirEntry>, String> {
    if target.parent().is_some() {
        let parent = target.parent().unwrap_or(Path::new(""));
        let there = inside.folder(parent).is_ok() && inside.root().join(target).symlink_metadata().is_ok();
        if !there {
            return Err(format!("there is no `{}`, or a link leads to it", shown::path(target)));
        }
    }
    let goal = inside.root().join(target);
    let levels = target.components().count();
    let wanted = goal.clone();
    let from_root = entries(inside.root(), depth.map(|depth| depth + levels), move |path| {
        path.starts_with(&wanted) || wanted.starts_with(path)
    });
    let mut found: Vec<DirEntry> =
        from_root.into_iter().filter(|entry| entry.path().starts_with(&goal)).collect();
    if found.is_empty() {
        found = entries(&goal, depth, |_| true);
    }
    // The folder itself is no part of its content.
    found.retain(|entry| entry.path() != goal || entry.file_type().is_some_and(|kind| !kind.is_dir()));
    Ok(found)
}

fn entries(
    root: &Path,
    depth: Option<usize>,
    wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> Vec<DirEntry> {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .follow_links(false);
    walk.max_depth(depth).sort_by_file_name(std::ffi::OsStr::cmp);
    walk.filter_entry(move |entry| entry.file_name() != ".git" && wanted(entry.path()));
    let most = usize::try_from(MOST).unwrap_or(usize::MAX);
    walk.build().filter_map(Result::ok).take(most).collect()
}

/// Shows a folder.
pub(super) fn list(inside: &Inside, target: &Path, room: usize) -> Result<String, String> {
    let entries = walk(inside, target, Some(DEPTH))?;
    let mut lines = Lines::new(room.saturating_sub(200));
    for entry in &entries {
        let mut line = shown::path(&below(inside, entry.path()));
        match entry.file_type() {
            Some(kind) if kind.is_dir() => line.push('/'),
            Some(kind) if kind.is_symlink() => line.push('@'),
            _ => {}
        }
        lines.push(&line);
    }
    if entries.is_empty() {
        return Ok("[nothing is in it, or git ignores all of it]".to_owned());
    }
    let left_out = lines.left_out;
    let mut text = lines.text();
    if left_out > 0 {
        let at_least = if entries.len() as u64 >= MOST { "at least " } else { "" };
        let _ = writeln!(
            text,
            "[{at_least}{left_out} of {} entries are left out; list a folder of them]",
            entries.len()
        );
    }
    let _ = write!(text, "[{DEPTH} levels are shown; what git ignores is not]");
    Ok(text)
}

/// A path as the model knows it.
pub(super) fn below(inside: &Inside, path: &Path) -> PathBuf {
    path.strip_prefix(inside.root()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Inside) {
        let dir = tempfile::tempdir().expect("a folder");
        for (path, text) in [
            (".gitignore", "out/\n*.log\n"),
            (".git/config", ""),
            ("a.rs", ""),
            ("sub/b.rs", ""),
            ("sub/x.log", ""),
            ("sub/out/o", ""),
            ("sub/1/2/3/deep", ""),
            ("out/made", ""),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("sub/etc")).expect("a link");
        let inside = Inside::new(dir.path()).expect("a workspace");
        (dir, inside)
    }

    fn check(target: &str, expected: &[&str]) {
        let (_dir, inside) = workspace();
        let text = list(&inside, Path::new(target), 10_000).expect("a list");
        let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with('[')).collect();
        assert_eq!(shown, expected, "{target}");
    }

    #[test]
    fn what_git_ignores_is_not_shown() {
        check("", &[".gitignore", "a.rs", "sub/", "sub/1/", "sub/1/2/", "sub/b.rs", "sub/etc@"]);
        check("sub", &["sub/1/", "sub/1/2/", "sub/1/2/3/", "sub/b.rs", "sub/etc@"]);
        check("out", &["out/made"]);
        check("a.rs", &["a.rs"]);
        check("sub/etc", &["sub/etc@"]);
    }

    #[test]
    fn places_that_are_none() {
        let (_dir, inside) = workspace();
        for target in ["none", "sub/etc/ssl", "a.rs/x"] {
            assert!(list(&inside, Path::new(target), 1000).is_err(), "{target}");
        }
        std::fs::create_dir(inside.root().join("empty")).expect("a folder");
        assert!(list(&inside, Path::new("empty"), 1000).expect("a list").starts_with("[nothing is in it"));
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let (_dir, inside) = workspace();
        let text = list(&inside, Path::new(""), 220).expect("a list");
        assert!(text.contains(".gitignore\na.rs\n[5 of 7 entries are left out"), "{text}");
    }
}
