//! The files of the house, and the lines of Rust in them that are code.

use std::path::Path;

/// A text file.
pub(crate) struct Source {
    /// Its path below the root.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// Hidden folders that belong to the house.
const HIDDEN: [&str; 4] = [".cargo", ".ci", ".config", ".github"];

/// All text files below `root`, sorted, but for what git ignores or keeps for itself.
pub(crate) fn all(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let place = root.join(&folder);
        let failed = |e| format!("reading {}: {e}", place.display());
        for entry in std::fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                let foreign = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
                let made = entry.path().join("CACHEDIR.TAG").exists() || path == "runs" || name == "target";
                if !foreign && !made {
                    folders.push(path);
                }
            } else if kind.is_file() {
                // What is not text has no lines to judge; what vanished under the walk is no finding.
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    sources.push(Source { path, text });
                }
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

impl Source {
    pub(crate) fn is(&self, path: &str) -> bool {
        self.path == path
    }

    /// Whether its name ends with a dot and `end`.
    pub(crate) fn has_end(&self, end: &str) -> bool {
        self.path.strip_suffix(end).is_some_and(|stem| stem.ends_with('.'))
    }

    /// The lines that are not comments, numbered from 1.
    pub(crate) fn code_and_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The lines that are neither comments nor in a test module.
    pub(crate) fn code(&self) -> Vec<(usize, &str)> {
        let mut kept = Vec::new();
        let mut lines = self.code_and_tests().peekable();
        while let Some((number, line)) = lines.next() {
            if line.trim() != "#[cfg(test)]" {
                kept.push((number, line));
                continue;
            }
            // Formatted code closes an item with a brace in the column where the item began.
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            while lines.next_if(|(_, line)| line.trim_start().starts_with("#[")).is_some() {}
            let opens = lines.next().is_some_and(|(_, line)| line.trim_end().ends_with('{'));
            if opens {
                let _ = lines.by_ref().find(|(_, line)| line.trim_end() == end);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_test_modules_are_no_code() {
        let text = "//! doc\nuse a;\n#[cfg(test)]\nmod tests;\nfn f() {}\n#[cfg(test)]\n#[path = \"x\"]\nmod t {\n    \
                    fn g() {\n    }\n}\nfn h() {}\n";
        let source = Source { path: "x.rs".to_owned(), text: text.to_owned() };
        let code: Vec<usize> = source.code().into_iter().map(|(number, _)| number).collect();
        assert_eq!(code, [2, 5, 12]);
    }
}
