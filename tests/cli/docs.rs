//! What the documentation shows is what the program takes.

use std::path::{Path, PathBuf};

use triphammer_agent::Script;
use triphammer_model::config::Config;

/// A block between fences.
struct Block {
    /// The file and the line, from 1.
    place: String,
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// `README.md` and all pages below `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The blocks of a page. A fence that is not closed is an error of the page.
fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, &mut open) {
            (Some(info), None) => {
                let place = format!("{}:{}", page.display(), number + 1);
                open = Some(Block { place, info: info.trim().to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: the last fence is not closed", page.display());
    found
}

#[test]
fn every_configuration_that_is_shown_is_taken() {
    let mut taken = 0;
    let mut wrong = Vec::new();
    for block in pages().iter().flat_map(|page| blocks(page)) {
        // What is not a `triphammer.toml` says so behind the language.
        let read = match block.info.as_str() {
            "toml" => Config::parse(&block.place, &block.text).map(drop).map_err(|e| e.to_string()),
            "toml session" => Script::parse(&block.place, &block.text).map(drop).map_err(|e| e.to_string()),
            // Other programs' own files.
            "toml codex" => continue,
            info if info.starts_with("toml") => Err(format!("{}: nobody reads `{info}`", block.place)),
            _ => continue,
        };
        taken += 1;
        wrong.extend(read.err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 10, "only {taken} blocks were found");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://");
            if !outside && !page.parent().unwrap().join(target).exists() {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links to nothing:\n{}", wrong.join("\n"));
}
