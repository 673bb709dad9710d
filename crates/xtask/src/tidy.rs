//! Checks on the sources that no compiler makes: the house rules, as code.

mod arrows;
mod hosts;
mod purity;
mod source;

use crate::house;
use source::Source;

/// Lines of a file, at most.
const LONGEST: usize = 1200;

/// Makes all checks; an error that lists what was found.
pub(crate) fn check() -> Result<(), String> {
    let sources = source::all(&house::root())?;
    let mut found = arrows::check(&arrows::packages(&house::metadata()?));
    for source in &sources {
        found.extend(length(source));
        found.extend(lints_apply(source));
        found.extend(purity::check(source));
        found.extend(attributes(source));
        found.extend(hosts::check(source));
    }
    if found.is_empty() {
        println!("{} files are tidy", sources.len());
        return Ok(());
    }
    Err(format!("{} findings\n  {}", found.len(), found.join("\n  ")))
}

/// A file that is too long holds more than one noun.
fn length(source: &Source) -> Option<String> {
    let exempt = source.is("Cargo.lock") || source.has_end("schema.json") || source.has_end("snap");
    let lines = source.text.lines().count();
    (!exempt && lines > LONGEST)
        .then(|| format!("{}: {lines} lines, at most {LONGEST}; split it by noun", source.path))
}

/// A crate that does not take part in the workspace's lints escapes all of them.
fn lints_apply(source: &Source) -> Option<String> {
    let member = source.path.ends_with("/Cargo.toml")
        && (source.path.starts_with("crates/") || source.path == "tests/Cargo.toml")
        && source.path.matches('/').count() <= 2;
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let takes_part = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
    (member && !takes_part).then(|| format!("{}: add `[lints]` with `workspace = true`", source.path))
}

/// Attributes that the house does without.
fn attributes(source: &Source) -> Vec<String> {
    if !source.has_end("rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, code) in source.code() {
        let bare = ["#[allow(", "#![allow("];
        if bare.iter().any(|attribute| code.trim_start().starts_with(attribute)) {
            found.push(format!(
                "{}:{line}: write `#[expect(.., reason = \"..\")]`, never a bare allow",
                source.path
            ));
        }
    }
    if source.path.starts_with("crates/") {
        for (line, word) in serde_words(source) {
            found.push(format!(
                "{}:{line}: no serde `{word}`: such a type cannot be versioned; spell the fields or the variants out",
                source.path
            ));
        }
    }
    found
}

/// Where serde is told to guess (`untagged`) or to mix (`flatten`), over as many lines as the attribute takes.
fn serde_words(source: &Source) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for (line, code) in source.code_and_tests() {
        let mut rest = code;
        loop {
            if depth == 0 {
                let Some(at) = opening(rest) else { break };
                rest = &rest[at..];
                depth = 1;
            }
            let mut end = rest.len();
            for (at, c) in rest.char_indices() {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    end = at;
                    break;
                }
            }
            let words = rest[..end].split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words {
                found.extend(["flatten", "untagged"].into_iter().filter(|w| *w == word).map(|w| (line, w)));
            }
            rest = &rest[end..];
            if depth > 0 {
                break;
            }
        }
    }
    found
}

/// Just past the opening parenthesis of a serde attribute.
fn opening(code: &str) -> Option<usize> {
    const NAME: &str = "serde(";
    code.match_indices(NAME)
        .find(|(at, _)| code[..*at].chars().next_back().is_some_and(|c| matches!(c, '[' | ' ' | ',' | '(')))
        .map(|(at, _)| at + NAME.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let mut found = attributes(&source);
        found.extend(length(&source));
        found.extend(lints_apply(&source));
        assert_eq!(found.len(), expected.len(), "{path}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} does not say {expected}");
        }
    }

    #[test]
    fn finds_what_the_house_does_without() {
        let serde = |inner: &str| format!("#[ser{}(\n{inner})]\nstruct A;\n", "de");
        check("crates/a/src/x.rs", &serde("    default,\n    flatten\n"), &["x.rs:3: no serde `flatten`"]);
        check("crates/a/src/x.rs", &serde("tag = \"a\", untagged"), &["x.rs:2: no serde `untagged`"]);
        check("crates/a/src/x.rs", &serde("with = \"flat(ten)\", untagged_not"), &[]);
        check("crates/a/src/x.rs", "// it would be flatten\nfn f() { x.iter().flatten(); }\n", &[]);
        check("crates/a/src/x.rs", "#[schemars(untagged)]\nenum A {}\n", &[]);
        check("crates/a/src/x.rs", "    #[allow(dead_code)]\nfn f() {}\n", &["x.rs:1: write `#[expect"]);
        check("crates/a/src/x.rs", "#[expect(dead_code, reason = \"r\")]\nfn f() {}\n", &[]);
    }

    #[test]
    fn files_are_short() {
        check("README.md", &"x\n".repeat(LONGEST), &[]);
        check("README.md", &"x\n".repeat(LONGEST + 1), &["1201 lines"]);
        check("Cargo.lock", &"x\n".repeat(LONGEST + 1), &[]);
    }

    #[test]
    fn every_crate_takes_part_in_the_lints() {
        check("crates/a/Cargo.toml", "[package]\n", &["add `[lints]`"]);
        check("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n", &[]);
        check("crates/a/tests/samples/Cargo.toml", "[package]\n", &[]);
        check("Cargo.toml", "[workspace]\n", &[]);
    }
}
