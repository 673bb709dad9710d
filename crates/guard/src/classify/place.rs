//! Where a line runs, and where a path in it leads. Lexical only: links are not followed, nothing is looked up.

use super::arg::{Arg, UNKNOWN};

/// Where a line runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The workspace, an absolute path.
    pub workspace: String,
    /// The home folder, for `~` and `$HOME`.
    pub home: Option<String>,
    /// The current directory when the line begins, an absolute path.
    pub cwd: String,
    /// The folder for temporary files; what is below it may be deleted and overwritten, itself not.
    pub temp: String,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Below the workspace's root.
    Inside,
    /// The workspace's root, or all that is in it.
    Workspace,
    /// The workspace's repository, or the part of it that holds the work.
    Repository,
    /// Below the temporary folder.
    Temporary,
    /// Anywhere else, or a folder above the workspace.
    Outside(String),
    /// Hangs on what only the running shell knows.
    Unknown,
}

/// Bytes of a directory's path that is followed; it is what systems take.
const PATH: usize = 4096;

/// What of the repository's folder holds the work; locks and states of an unfinished merge do not.
const KEPT: [&str; 4] = ["objects", "refs", "logs", "HEAD"];

impl Place {
    /// The workspace itself. A home that is no absolute path is none.
    pub fn new(workspace: impl Into<String>, home: Option<String>, temp: impl Into<String>) -> Self {
        let workspace = workspace.into();
        let home = home.filter(|home| home.starts_with('/'));
        Self { cwd: workspace.clone(), workspace, home, temp: temp.into() }
    }

    /// The same for a line that runs in this folder, absolute or from the current directory.
    #[must_use]
    pub fn within(mut self, folder: &str) -> Self {
        if folder.starts_with('/') {
            folder.clone_into(&mut self.cwd);
        } else if !folder.is_empty() {
            self.cwd = format!("{}/{folder}", self.cwd);
        }
        self
    }

    /// Where `arg` leads from `cwd`; `None` where that is not known.
    pub(crate) fn spot(&self, cwd: Option<&str>, arg: &Arg) -> Spot {
        let text = arg.text.as_str();
        let mut path = if text.starts_with('/') {
            Vec::new()
        } else if text.starts_with(UNKNOWN) {
            return Spot::Unknown;
        } else {
            match cwd {
                Some(cwd) => components(cwd),
                None => return Spot::Unknown,
            }
        };
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        for (index, part) in parts.iter().enumerate() {
            let rest = &parts[index + 1..];
            let all = |part: &&str| is_all(part, arg.glob);
            if part.contains(UNKNOWN) {
                if rest.contains(&"..") {
                    return Spot::Unknown;
                }
                let may_be_empty = part.chars().all(|c| c == UNKNOWN) && rest.iter().all(all);
                return if may_be_empty { self.perhaps(&path) } else { self.below(&path) };
            }
            if arg.glob && part.contains(['*', '?', '[']) {
                if rest.contains(&"..") {
                    return Spot::Unknown;
                }
                if is_all(part, true) && rest.iter().all(all) {
                    return self.of(&path);
                }
                if path == components(&self.workspace) && rest.is_empty() && is_match(part, ".git") {
                    return Spot::Repository;
                }
                return self.below(&path);
            }
            if *part == ".." {
                path.pop();
            } else {
                path.push((*part).to_owned());
            }
        }
        self.of(&path)
    }

    fn of(&self, path: &[String]) -> Spot {
        let workspace = components(&self.workspace);
        let temp = components(&self.temp);
        if let Some(inner) = path.strip_prefix(workspace.as_slice()) {
            return match inner {
                [] => Spot::Workspace,
                [git] if git == ".git" => Spot::Repository,
                [git, part, ..] if git == ".git" && KEPT.contains(&part.as_str()) => Spot::Repository,
                _ => Spot::Inside,
            };
        }
        let above = workspace.starts_with(path);
        if !above && path.len() > temp.len() && path.starts_with(&temp) {
            return Spot::Temporary;
        }
        Spot::Outside(format!("/{}", path.join("/")))
    }

    /// Something below `path`, but not all of it.
    fn below(&self, path: &[String]) -> Spot {
        match self.of(path) {
            Spot::Workspace => Spot::Inside,
            Spot::Outside(_) if *path == components(&self.temp) => Spot::Temporary,
            other => other,
        }
    }

    /// `path` itself, or something below it.
    fn perhaps(&self, path: &[String]) -> Spot {
        match self.of(path) {
            Spot::Workspace => Spot::Unknown,
            Spot::Outside(_) if *path == components(&self.temp) => Spot::Unknown,
            other => other,
        }
    }
}

/// The directory that `arg` names from `cwd`, where that is known.
pub(crate) fn directory(cwd: Option<&str>, arg: &Arg) -> Option<String> {
    if !arg.is_known() || arg.glob {
        return None;
    }
    let mut path = if arg.starts_with("/") { Vec::new() } else { components(cwd?) };
    for part in arg.text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            path.pop();
        } else {
            path.push(part.to_owned());
        }
    }
    let path = format!("/{}", path.join("/"));
    (path.len() <= PATH).then_some(path)
}

/// A path's parts, `.` and `..` taken out.
fn components(path: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                out.pop();
            }
            part => out.push(part.to_owned()),
        }
    }
    out
}

/// A pattern that all entries of a directory fit, or all hidden ones.
fn is_all(part: &str, glob: bool) -> bool {
    glob && part.contains('*') && part.chars().all(|c| matches!(c, '*' | '?' | '.'))
}

/// Whether a pattern of `*` and `?` fits; a bracket fits any character.
fn is_match(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    if pattern.first() != name.first() || pattern.len() > 64 {
        return false;
    }
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    let mut index = 0;
    while index < pattern.len() {
        let mut next = vec![false; name.len() + 1];
        let any = pattern[index] == '*';
        for at in 0..=name.len() {
            if any {
                next[at] = fits[at] || (at > 0 && next[at - 1]);
            } else if at > 0 {
                next[at] =
                    fits[at - 1] && matches!(pattern[index], c if c == '?' || c == '[' || c == name[at - 1]);
            }
        }
        if pattern[index] == '[' {
            index += pattern[index..].iter().position(|c| *c == ']').unwrap_or(0);
        }
        fits = next;
        index += 1;
    }
    fits[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &Spot) {
        let place = Place::new("/w/app", Some("/home/me".into()), "/tmp").within("sub");
        let arg = Arg { text: path.replace('X', "\0"), glob: true, variable: None };
        assert_eq!(place.spot(Some("/w/app/sub"), &arg), *expected, "{path}");
    }

    #[test]
    fn a_path_leads_where_the_shell_would_take_it() {
        let outside = |path: &str| Spot::Outside(path.to_owned());
        for (path, expected) in [
            ("build", Spot::Inside),
            ("./build/..", Spot::Inside),
            ("..", Spot::Workspace),
            ("../*", Spot::Workspace),
            ("../*/*", Spot::Workspace),
            ("../.*", Spot::Workspace),
            ("../*.o", Spot::Inside),
            ("../*/target", Spot::Inside),
            ("../.git", Spot::Repository),
            ("../.g*", Spot::Repository),
            ("../.g[ij]t", Spot::Repository),
            ("../.gitignore*", Spot::Inside),
            ("../.git/refs/heads", Spot::Repository),
            ("../.git/index.lock", Spot::Inside),
            ("*", Spot::Inside),
            ("../..", outside("/w")),
            ("../../*.log", outside("/w")),
            ("../../other", outside("/w/other")),
            ("/w/app", Spot::Workspace),
            ("/w/app/", Spot::Workspace),
            ("/w/app2", outside("/w/app2")),
            ("/w/./app//sub/../x", Spot::Inside),
            ("/", outside("/")),
            ("/*", outside("/")),
            ("/../..", outside("/")),
            ("/tmp", outside("/tmp")),
            ("/tmp/*", outside("/tmp")),
            ("/tmp/x", Spot::Temporary),
            ("/tmp/x*", Spot::Temporary),
            ("/tmp/X", Spot::Unknown),
            ("/tmp/aX", Spot::Temporary),
            ("/tmp/X/a", Spot::Temporary),
            ("X", Spot::Unknown),
            ("X/a", Spot::Unknown),
            ("../X", Spot::Unknown),
            ("../X/*", Spot::Unknown),
            ("../X/a", Spot::Inside),
            ("../X/../../a", Spot::Unknown),
            ("build/X", Spot::Inside),
            ("/X", outside("/")),
            ("*/../..", Spot::Unknown),
        ] {
            check(path, &expected);
        }
    }

    #[test]
    fn what_holds_the_workspace_is_outside_even_below_the_temporary_folder() {
        let place = Place::new("/tmp/a/w", None, "/tmp");
        assert_eq!(place.spot(None, &Arg::new("/tmp/a")), Spot::Outside("/tmp/a".into()));
        assert_eq!(place.spot(None, &Arg::new("/tmp/b")), Spot::Temporary);
        assert_eq!(place.spot(None, &Arg::new("b")), Spot::Unknown);
    }

    #[test]
    fn a_folder_is_taken_from_the_one_before() {
        let place = Place::new("/w", Some("me".to_owned()), "/tmp");
        assert_eq!((place.cwd.as_str(), &place.home), ("/w", &None));
        assert_eq!(place.clone().within("").cwd, "/w");
        assert_eq!(place.clone().within("a").within("../b").cwd, "/w/a/../b");
        assert_eq!(place.within("a").within("/x").cwd, "/x");
    }
}
