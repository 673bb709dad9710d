//! Writing a spec in its one canonical form.

use std::fmt::Write as _;

use crate::ids::AgentName;

use super::{Allowance, Check, JudgeMode, Spec, Status, WorkspaceChoice, body, text, value};

impl Spec {
    /// The spec as text, such that [`Spec::parse`] reads the same spec from it. Comments of a file that it was
    /// read from are not kept. Texts are brought into the shape that parsing gives them: a bullet is one line, a
    /// goal has no white space at its ends.
    pub fn print(&self) -> String {
        let mut out = String::from("---\n");
        self.print_front(&mut out);
        out.push_str("---\n");
        let _ = writeln!(out, "# {}", body::GOAL);
        for line in text::paragraphs(&self.goal).split('\n') {
            out.push_str(&text::protect_line(line));
            out.push('\n');
        }
        print_texts(&mut out, body::ACCEPTANCE, &self.acceptance);
        print_checks(&mut out, body::CHECKS, &self.checks);
        print_checks(&mut out, body::KEEP_GREEN, &self.keep_green);
        print_texts(&mut out, body::CONSTRAINTS, &self.constraints);
        print_texts(&mut out, body::NON_GOALS, &self.non_goals);
        out
    }

    // Writing to a String cannot fail.
    fn print_front(&self, out: &mut String) {
        let _ = writeln!(out, "status: {}", self.status.as_str());
        if let Some(attempts) = self.attempts {
            let _ = writeln!(out, "attempts: {attempts}");
        }
        if let Some(budget) = self.budget {
            let _ = writeln!(out, "budget: {budget}");
        }
        if let Some(cost) = self.max_cost {
            let _ = writeln!(out, "max_cost: {}", cost.to_decimal());
        }
        if let Some(tokens) = self.max_tokens {
            let _ = writeln!(out, "max_tokens: {tokens}");
        }
        if let Some(gates) = &self.gates {
            let _ = writeln!(out, "gates: {}", list(gates.iter().map(String::as_str)));
        }
        if !self.protect.is_empty() {
            let _ = writeln!(out, "protect: {}", list(self.protect.iter().map(String::as_str)));
        }
        if !self.allow.is_empty() {
            let _ = writeln!(out, "allow: {}", list(self.allow.iter().map(|a| a.as_str())));
        }
        if let Some(judge) = self.judge {
            let _ = writeln!(out, "judge: {}", judge.as_str());
        }
        match self.agents.as_slice() {
            [] => {}
            [agent] => {
                let _ = writeln!(out, "agent: {}", value::write(agent.as_str()));
            }
            chain => {
                let _ = writeln!(out, "agent: {}", list(chain.iter().map(AgentName::as_str)));
            }
        }
        match &self.workspace {
            None => {}
            Some(WorkspaceChoice::New) => out.push_str("workspace: new\n"),
            // The bare word means an empty folder; a folder of that name is reached as `./new`.
            Some(WorkspaceChoice::Path(path)) if path == "new" => out.push_str("workspace: ./new\n"),
            Some(WorkspaceChoice::Path(path)) => {
                let _ = writeln!(out, "workspace: {}", value::write(path));
            }
        }
    }
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(value::write).collect();
    format!("[{}]", words.join(", "))
}

fn print_texts(out: &mut String, title: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {title}");
    for text in texts {
        let _ = writeln!(out, "- {}", text::one_line(text));
    }
}

fn print_checks(out: &mut String, title: &str, checks: &[Check]) {
    if checks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {title}");
    for check in checks {
        let command = text::command(&check.command);
        if !command.contains('\n') && command != "|" {
            let _ = writeln!(out, "- {}: {command}", check.name);
            continue;
        }
        let _ = writeln!(out, "- {}: |", check.name);
        for line in command.split('\n') {
            if line.is_empty() {
                out.push('\n');
            } else {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
}

impl Status {
    /// The word in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Locked => "locked",
        }
    }
}

impl JudgeMode {
    /// The word in a spec and in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Off => "off",
        }
    }
}

impl Allowance {
    /// The word in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TestsRemoved => "tests-removed",
        }
    }
}
