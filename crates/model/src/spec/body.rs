//! The body: sections below headings.

use crate::suggest::closest;

use super::fault::{Faults, SpecFault};
use super::parse::Line;
use super::text::{self, heading, opens_comment};
use super::{Check, Spec};

/// The sections' titles, in the order in which they are printed.
pub(super) const TITLES: &[&str] = &[GOAL, ACCEPTANCE, CHECKS, KEEP_GREEN, CONSTRAINTS, NON_GOALS];

pub(super) const GOAL: &str = "Goal";
pub(super) const ACCEPTANCE: &str = "Acceptance";
pub(super) const CHECKS: &str = "Checks";
pub(super) const KEEP_GREEN: &str = "Keep green";
pub(super) const CONSTRAINTS: &str = "Constraints";
pub(super) const NON_GOALS: &str = "Non-goals";

/// A heading with the lines below it.
struct Section<'a> {
    /// One of [`TITLES`].
    title: &'static str,
    line: usize,
    lines: Vec<Line<'a>>,
}

/// Reads the lines after the frontmatter into `spec`.
pub(super) fn read(lines: &[Line<'_>], spec: &mut Spec, faults: &mut Faults<'_>) {
    let end = lines.last().map_or(1, |l| l.number);
    let lines = without_comments(lines, faults);
    let sections = split(&lines, faults);
    let mut checks = Vec::new();
    for section in &sections {
        match section.title {
            GOAL => {
                let text: Vec<&str> = section.lines.iter().map(|l| text::unprotect_line(l.text)).collect();
                spec.goal = text::paragraphs(&text.join("\n"));
                if spec.goal.is_empty() {
                    faults.push(section.line, SpecFault::EmptyGoal);
                }
            }
            ACCEPTANCE => spec.acceptance = texts(section, faults),
            CONSTRAINTS => spec.constraints = texts(section, faults),
            NON_GOALS => spec.non_goals = texts(section, faults),
            CHECKS => spec.checks = commands(section, &mut checks, faults),
            _ => spec.keep_green = commands(section, &mut checks, faults),
        }
    }
    if !sections.iter().any(|s| s.title == GOAL) {
        faults.push(end, SpecFault::NoGoal);
    }
}

/// Leaves out comments: from a line that begins with `<!--` to the line that ends with the next `-->`.
fn without_comments<'a>(lines: &[Line<'a>], faults: &mut Faults<'_>) -> Vec<Line<'a>> {
    let mut kept = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if !opens_comment(line.text) {
            kept.push(*line);
            continue;
        }
        let mut at = *line;
        let mut inside = &line.text[4..];
        loop {
            if let Some((_, after)) = inside.split_once("-->") {
                if !after.trim().is_empty() {
                    faults.push(at.number, SpecFault::TextAfterComment(after.trim().to_owned()));
                }
                break;
            }
            let Some(next) = lines.next() else {
                faults.push(line.number, SpecFault::UnterminatedComment);
                break;
            };
            at = *next;
            inside = next.text;
        }
    }
    kept
}

/// Splits the lines at their headings. Lines of unknown and repeated sections are dropped after the report.
fn split<'a>(lines: &[Line<'a>], faults: &mut Faults<'_>) -> Vec<Section<'a>> {
    let plain = |t: &str| t.to_lowercase().replace(['-', '_'], " ");
    let mut sections: Vec<Section<'a>> = Vec::new();
    // `None`: before the first heading; `Some(false)`: below one that is dropped.
    let mut inside: Option<bool> = None;
    let mut told = false;
    for line in lines {
        let Some(name) = heading(line.text) else {
            match (inside, sections.last_mut()) {
                (Some(true), Some(section)) => section.lines.push(*line),
                (None, _) if !line.text.trim().is_empty() && !told => {
                    faults.push(line.number, SpecFault::TextOutside(line.text.trim().to_owned()));
                    told = true;
                }
                _ => {}
            }
            continue;
        };
        let title = TITLES.iter().copied().find(|t| plain(t) == plain(name));
        let first = title.and_then(|t| sections.iter().find(|s| s.title == t)).map(|s| s.line);
        inside = Some(title.is_some() && first.is_none());
        match (title, first) {
            (Some(title), None) => sections.push(Section { title, line: line.number, lines: Vec::new() }),
            (Some(title), Some(first)) => {
                faults.push(line.number, SpecFault::RepeatedSection { name: title.to_owned(), first });
            }
            (None, _) => {
                let meant = closest(name, TITLES.iter().copied()).map(str::to_owned);
                faults.push(line.number, SpecFault::UnknownSection { name: name.to_owned(), meant });
            }
        }
    }
    sections
}

/// A bullet and the lines that continue it.
struct Bullet<'a> {
    line: usize,
    indent: usize,
    text: &'a str,
    more: Vec<&'a str>,
}

/// Splits a section at its bullets. A line indented deeper than the bullet continues it; with `lazy`, so does
/// an unindented line right below.
fn bullets<'a>(section: &Section<'a>, lazy: bool, faults: &mut Faults<'_>) -> Vec<Bullet<'a>> {
    let mut found: Vec<Bullet<'a>> = Vec::new();
    let mut blank = false;
    let mut told = false;
    for line in &section.lines {
        let body = line.text.trim_start_matches([' ', '\t']);
        if body.trim().is_empty() {
            if let Some(open) = found.last_mut() {
                open.more.push("");
            }
            (blank, told) = (true, false);
            continue;
        }
        let indent = line.text.len() - body.len();
        let bullet = body
            .strip_prefix(['-', '*'])
            .filter(|rest| rest.trim().is_empty() || rest.starts_with([' ', '\t']));
        match (bullet, found.last_mut()) {
            (Some(text), open) if open.as_ref().is_none_or(|o| indent <= o.indent) => {
                found.push(Bullet { line: line.number, indent, text: text.trim(), more: Vec::new() });
                told = false;
            }
            (_, Some(open)) if !told && (indent > open.indent || (lazy && !blank)) => {
                open.more.push(line.text);
            }
            _ => {
                if !told {
                    let found = line.text.trim().to_owned();
                    faults.push(line.number, SpecFault::BulletExpected { section: section.title, found });
                    told = true;
                }
            }
        }
        blank = false;
    }
    found
}

fn texts(section: &Section<'_>, faults: &mut Faults<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for bullet in bullets(section, true, faults) {
        let text = text::one_line(&format!("{}\n{}", bullet.text, bullet.more.join("\n")));
        if text.is_empty() {
            faults.push(bullet.line, SpecFault::EmptyBullet { section: section.title });
        } else {
            texts.push(text);
        }
    }
    texts
}

/// Reads `- name: command` bullets. `taken` holds the names of this and the other section of commands.
fn commands(section: &Section<'_>, taken: &mut Vec<(String, usize)>, faults: &mut Faults<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    for bullet in bullets(section, false, faults) {
        if bullet.text.is_empty() {
            faults.push(bullet.line, SpecFault::EmptyBullet { section: section.title });
            continue;
        }
        let Some((name, first)) = bullet.text.split_once(':') else {
            let found = bullet.text.to_owned();
            faults.push(bullet.line, SpecFault::UnnamedCheck { section: section.title, found });
            continue;
        };
        let name = name.trim_end().to_owned();
        if name.is_empty() {
            let found = bullet.text.to_owned();
            faults.push(bullet.line, SpecFault::UnnamedCheck { section: section.title, found });
            continue;
        }
        if !text::is_check_name(&name) {
            faults.push(bullet.line, SpecFault::BadCheckName(name));
            continue;
        }
        if let Some((_, first)) = taken.iter().find(|(n, _)| *n == name) {
            faults.push(bullet.line, SpecFault::RepeatedCheck { name, first: *first });
            continue;
        }
        taken.push((name.clone(), bullet.line));
        // A `|` alone says that the command begins on the next line.
        let first = Some(first.trim()).filter(|first| *first != "|");
        let lines: Vec<&str> = first.into_iter().chain(dedent(&bullet.more)).collect();
        let command = text::command(&lines.join("\n"));
        if command.is_empty() {
            faults.push(bullet.line, SpecFault::EmptyCommand { name });
        } else {
            checks.push(Check { name, command });
        }
    }
    checks
}

/// Takes away the indentation that all lines share.
fn dedent<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indent = |l: &'a str| &l[..l.len() - l.trim_start_matches([' ', '\t']).len()];
    let mut shared: Option<&str> = None;
    for line in lines.iter().filter(|l| !l.trim().is_empty()) {
        let own = indent(line);
        let both = shared.map_or(own, |s| {
            let len = s.bytes().zip(own.bytes()).take_while(|(a, b)| a == b).count();
            &own[..len]
        });
        shared = Some(both);
    }
    let width = shared.map_or(0, str::len);
    lines.iter().map(|l| l.get(width..).unwrap_or("")).collect()
}
