//! The shapes that texts of a spec have in memory. Parsing yields them and printing brings texts into them, so
//! that `parse(print(spec)) == spec` for every spec whose texts have their shape.

/// Paragraphs: no white space at the ends of lines, no blank lines at either end.
pub(super) fn paragraphs(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    lines.join("\n").trim().replace('\0', "\u{fffd}")
}

/// One line: the trimmed lines joined by a space.
pub(super) fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect();
    parts.join(" ")
}

/// A shell command: no carriage returns at line ends, nothing in blank lines, no white space at either end.
pub(super) fn command(text: &str) -> String {
    let lines: Vec<&str> =
        text.split('\n').map(|l| if l.trim().is_empty() { "" } else { l.trim_end_matches('\r') }).collect();
    lines.join("\n").trim().to_owned()
}

/// The heading text of a line that is a heading: one to six `#`, then white space or the end.
pub(super) fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| rest.trim().trim_end_matches('#').trim_end())
}

/// Whether a comment begins on this line. It does at the line's start only, so that shell text stays shell text.
pub(super) fn opens_comment(line: &str) -> bool {
    line.starts_with("<!--")
}

/// Protects a goal's line that would read as a heading, a comment or a protected line.
pub(super) fn protect_line(line: &str) -> String {
    let looks_protected = ["\\#", "\\<", "\\\\"].iter().any(|p| line.starts_with(p));
    if line.starts_with('#') || opens_comment(line) || looks_protected {
        format!("\\{line}")
    } else {
        line.to_owned()
    }
}

/// Undoes [`protect_line`].
pub(super) fn unprotect_line(line: &str) -> &str {
    match line.strip_prefix('\\') {
        Some(rest) if rest.starts_with(['#', '<', '\\']) => rest,
        _ => line,
    }
}

/// Whether a text can name a check: it becomes part of a gate's name.
pub(super) fn is_check_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Whether a text can name an agent or a pack: it may become a file's name, so it has no `/` and no dot in front.
pub(crate) fn is_name(name: &str) -> bool {
    !name.starts_with('.')
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
