//! A recorded session as text: steps, per attempt, that really run.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use toml::Spanned;
use triphammer_model::{Change, Fault, MicroUsd, Tokens};

use crate::receipt_file::fault_kind;

/// A script that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct ScriptError {
    /// The script's file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there and what to do.
    pub what: String,
}

/// A recorded session.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    attempts: Vec<Strike>,
    repeat: Repeat,
}

/// What becomes of attempts beyond the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Repeat {
    /// They do the last again.
    #[default]
    Last,
    /// They do nothing.
    None,
}

/// One attempt of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Strike {
    /// The agent's own exit code.
    pub(crate) exit: i32,
    pub(crate) steps: Vec<Step>,
}

/// One thing that the scripted agent does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Prints a text.
    Say(String),
    /// Runs a line in the workspace.
    Shell { line: String, claim: bool },
    /// Writes a file beneath the workspace.
    Write { path: PathBuf, content: String, executable: bool, claim: bool },
    /// Deletes a file beneath the workspace.
    Delete { path: PathBuf, claim: bool },
    /// Says that it touched a file, whether or not it did.
    Claim { path: String, kind: Change },
    /// Says that it used tokens.
    Usage(Tokens),
    /// Says that it spent money.
    Cost(MicroUsd),
    /// Says that something went wrong.
    Fault(Fault),
    /// Does nothing for a while.
    Sleep { millis: u64 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    repeat: Repeat,
    attempt: Vec<RawStrike>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStrike {
    #[serde(default)]
    exit: i32,
    #[serde(default)]
    steps: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    say: Option<String>,
    shell: Option<String>,
    write: Option<Spanned<String>>,
    delete: Option<Spanned<String>>,
    claim: Option<Spanned<RawClaim>>,
    usage: Option<RawUsage>,
    cost_usd: Option<Spanned<f64>>,
    fault: Option<Spanned<String>>,
    sleep_ms: Option<u64>,
    content: Option<String>,
    executable: Option<bool>,
    kind: Option<Change>,
    reset_at: Option<Spanned<String>>,
    message: Option<String>,
}

/// `claim` is a path that is claimed, or, beside a verb, whether that is claimed.
enum RawClaim {
    Path(String),
    Whether(bool),
}

impl<'de> Deserialize<'de> for RawClaim {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = RawClaim;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a path, or true or false beside another step")
            }

            fn visit_str<E>(self, text: &str) -> Result<RawClaim, E> {
                Ok(RawClaim::Path(text.to_owned()))
            }

            fn visit_bool<E>(self, whether: bool) -> Result<RawClaim, E> {
                Ok(RawClaim::Whether(whether))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What is wrong, and where in the text.
type Wrong = (Range<usize>, String);

impl Script {
    /// Reads a script; `file` is only named in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        let error = |at: usize, what: String| ScriptError {
            file: file.to_owned(),
            line: 1 + text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count(),
            what,
        };
        let raw: RawScript = toml::from_str(text).map_err(|e| {
            // The offset of an error at the end of the text is the text's length, which is its last line.
            error(e.span().map_or(0, |s| s.start), e.message().trim().replace('\n', ", "))
        })?;
        if raw.attempt.is_empty() {
            return Err(error(0, "a script needs at least one [[attempt]]".to_owned()));
        }
        let mut attempts = Vec::new();
        for strike in raw.attempt {
            let mut steps = Vec::new();
            for step in strike.steps {
                let span = step.span();
                let step = read_step(step.into_inner(), span).map_err(|(at, what)| error(at.start, what))?;
                steps.push(step);
            }
            attempts.push(Strike { exit: strike.exit, steps });
        }
        Ok(Self { attempts, repeat: raw.repeat })
    }

    /// What happens in attempt `number`, from 1.
    pub(crate) fn strike(&self, number: u32) -> Option<&Strike> {
        let index = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
        match self.repeat {
            Repeat::Last => self.attempts.get(index).or(self.attempts.last()),
            Repeat::None => self.attempts.get(index),
        }
    }

    /// Whether any step speaks of money.
    pub(crate) fn has_cost(&self) -> bool {
        self.attempts.iter().flat_map(|a| &a.steps).any(|s| matches!(s, Step::Cost(_)))
    }
}

fn read_step(raw: RawStep, span: Range<usize>) -> Result<Step, Wrong> {
    let path_claim = raw.claim.as_ref().is_some_and(|c| matches!(c.get_ref(), RawClaim::Path(_)));
    let verbs = [
        ("say", raw.say.is_some()),
        ("shell", raw.shell.is_some()),
        ("write", raw.write.is_some()),
        ("delete", raw.delete.is_some()),
        ("claim", path_claim),
        ("usage", raw.usage.is_some()),
        ("cost_usd", raw.cost_usd.is_some()),
        ("fault", raw.fault.is_some()),
        ("sleep_ms", raw.sleep_ms.is_some()),
    ];
    let given: Vec<&str> = verbs.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    let [verb] = given[..] else {
        let known: Vec<&str> = verbs.iter().map(|(name, _)| *name).collect();
        let found = if given.is_empty() { "none".to_owned() } else { given.join(", ") };
        return Err((span, format!("a step does exactly one of {}; this one has {found}", known.join(", "))));
    };
    let companions: &[&str] = match verb {
        "write" => &["content", "executable", "claim"],
        "shell" | "delete" => &["claim"],
        "claim" => &["kind", "claim"],
        "fault" => &["reset_at", "message"],
        _ => &[],
    };
    for (name, given) in [
        ("content", raw.content.is_some()),
        ("executable", raw.executable.is_some()),
        ("kind", raw.kind.is_some()),
        ("reset_at", raw.reset_at.is_some()),
        ("message", raw.message.is_some()),
        ("claim", raw.claim.is_some()),
    ] {
        if given && !companions.contains(&name) {
            return Err((span, format!("`{name}` means nothing beside `{verb}`: remove it")));
        }
    }
    let (claimed, claim) = match raw.claim.map(Spanned::into_inner) {
        Some(RawClaim::Path(path)) => (Some(path), true),
        Some(RawClaim::Whether(whether)) => (None, whether),
        None => (None, true),
    };
    if let Some(text) = raw.say {
        Ok(Step::Say(text))
    } else if let Some(line) = raw.shell {
        Ok(Step::Shell { line, claim })
    } else if let Some(path) = raw.write {
        let path = beneath(path)?;
        let content = raw.content.ok_or((span, "`write` needs `content`".to_owned()))?;
        Ok(Step::Write { path, content, executable: raw.executable.unwrap_or(false), claim })
    } else if let Some(path) = raw.delete {
        Ok(Step::Delete { path: beneath(path)?, claim })
    } else if let Some(path) = claimed {
        // A claim may name anything: that it is untrue or outside is for the world to say.
        let kind = raw
            .kind
            .ok_or((span, "`claim` needs `kind`: \"added\", \"changed\" or \"deleted\"".to_owned()))?;
        Ok(Step::Claim { path, kind })
    } else if let Some(RawUsage { input, cached, output }) = raw.usage {
        Ok(Step::Usage(Tokens { input, cached, output }))
    } else if let Some(cost) = raw.cost_usd {
        let amount = MicroUsd::from_dollars(*cost.get_ref());
        Ok(Step::Cost(amount.ok_or((cost.span(), "`cost_usd` is no amount from 0".to_owned()))?))
    } else if let Some(fault) = raw.fault {
        let kind = fault_kind(fault.get_ref())
            .ok_or_else(|| (fault.span(), format!("`{}` is no known fault", fault.get_ref())))?;
        let reset_at = match raw.reset_at {
            None => None,
            Some(text) => Some(
                text.get_ref()
                    .parse::<Timestamp>()
                    .map_err(|_| (text.span(), format!("`{}` is no RFC 3339 time", text.get_ref())))?,
            ),
        };
        Ok(Step::Fault(Fault { kind, reset_at, message: raw.message }))
    } else {
        Ok(Step::Sleep { millis: raw.sleep_ms.unwrap_or(0) })
    }
}

/// A path that cannot lead out of the workspace by its own words.
fn beneath(path: Spanned<String>) -> Result<PathBuf, Wrong> {
    let span = path.span();
    let text = path.into_inner();
    let plain = Path::new(&text).components().all(|c| matches!(c, Component::Normal(_)));
    if text.is_empty() || text.contains('\0') || text.ends_with('/') || !plain {
        return Err((
            span,
            format!("{text:?} is no path beneath the workspace: write it relative, without `.` or `..`"),
        ));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use triphammer_model::FaultKind;

    const WHOLE: &str = r#"
repeat = "none"

[[attempt]]
exit = 1
[[attempt.steps]]
say = "working"
[[attempt.steps]]
write = "src/lib.rs"
content = '''
fn main() {}
'''
[[attempt.steps]]
delete = "old"
claim = false

[[attempt]]
steps = [
  { shell = "cargo check" },
  { claim = "../phantom", kind = "changed" },
  { usage = { input = 10, output = 2 } },
  { cost_usd = 0.5 },
  { fault = "rate-limit", reset_at = "2026-12-01T00:00:00Z", message = "slow down" },
  { sleep_ms = 5 },
  { write = "run.sh", content = "", executable = true, claim = false },
]
"#;

    #[test]
    fn reads_every_kind_of_step() {
        let script = Script::parse("s.toml", WHOLE).unwrap();
        let first = script.strike(1).unwrap();
        assert_eq!(first.exit, 1);
        assert_eq!(
            first.steps,
            [
                Step::Say("working".into()),
                Step::Write {
                    path: "src/lib.rs".into(),
                    content: "fn main() {}\n".into(),
                    executable: false,
                    claim: true
                },
                Step::Delete { path: "old".into(), claim: false },
            ]
        );
        let reset_at = "2026-12-01T00:00:00Z".parse().ok();
        assert_eq!(
            script.strike(2).unwrap().steps,
            [
                Step::Shell { line: "cargo check".into(), claim: true },
                Step::Claim { path: "../phantom".into(), kind: Change::Changed },
                Step::Usage(Tokens { input: 10, cached: 0, output: 2 }),
                Step::Cost(MicroUsd::new(500_000)),
                Step::Fault(Fault {
                    kind: FaultKind::RateLimit,
                    reset_at,
                    message: Some("slow down".into())
                }),
                Step::Sleep { millis: 5 },
                Step::Write { path: "run.sh".into(), content: String::new(), executable: true, claim: false },
            ]
        );
        assert!(script.strike(3).is_none());
        assert!(script.has_cost());
        let script = Script::parse("s.toml", &WHOLE.replace("\"none\"", "\"last\"")).unwrap();
        assert_eq!(script.strike(9), script.strike(2));
    }

    #[test]
    fn errors_name_file_line_and_what() {
        let step = |step: &str| format!("[[attempt]]\n[[attempt.steps]]\n{step}\n");
        for (text, line, what) in [
            (String::new(), 1, "missing field `attempt`"),
            ("attempt = []".into(), 1, "at least one"),
            ("x = 1\n[[attempt]]".into(), 1, "unknown field `x`"),
            ("[[attempt]]\nexits = 1".into(), 2, "unknown field `exits`"),
            ("repeat = \"first\"\n[[attempt]]".into(), 1, "unknown variant `first`"),
            (step("sey = \"x\""), 3, "unknown field `sey`"),
            (step("say = \"x\"\nshell = \"y\""), 2, "this one has say, shell"),
            (step("executable = true"), 2, "this one has none"),
            (step("claim = true"), 2, "this one has none"),
            (step("claim = 3"), 3, "a path, or true or false"),
            (step("say = \"x\"\ncontent = \"y\""), 2, "`content` means nothing beside `say`"),
            (step("say = \"x\"\nclaim = false"), 2, "`claim` means nothing beside `say`"),
            (step("shell = \"x\"\nkind = \"added\""), 2, "`kind` means nothing"),
            (step("write = \"a\""), 2, "needs `content`"),
            (step("claim = \"a\""), 2, "needs `kind`"),
            (step("claim = \"a\"\nkind = \"moved\""), 4, "unknown variant `moved`"),
            (step("write = \"../x\"\ncontent = \"\""), 3, "\"../x\" is no path beneath"),
            (step("content = \"\"\nwrite = \"/etc/x\""), 4, "\"/etc/x\" is no path beneath"),
            (step("delete = \"a/../../b\""), 3, "no path beneath"),
            (step("delete = \"\""), 3, "no path beneath"),
            (step("delete = \"./a\""), 3, "no path beneath"),
            (step("delete = \"a/\""), 3, "no path beneath"),
            (step("cost_usd = -1.0"), 3, "no amount"),
            (step("cost_usd = nan"), 3, "no amount"),
            (step("usage = { input = -1 }"), 3, "-1"),
            (step("usage = { in = 1 }"), 3, "unknown field `in`"),
            (step("fault = \"tired\""), 3, "no known fault"),
            (step("fault = \"quota\"\nreset_at = \"soon\""), 4, "`soon` is no RFC 3339"),
            ("[[attempt]]\n\nexit = \n".into(), 3, ""),
        ] {
            let error = Script::parse("s.toml", &text).unwrap_err();
            assert!(error.what.contains(what), "{text:?}: {error}");
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.to_string().starts_with(&format!("s.toml:{line}: ")));
            assert!(!error.what.contains('\n'));
        }
    }
}
