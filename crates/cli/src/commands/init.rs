//! `triphammer init`: makes a home. Nothing that is there is written over.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::json;
use triphammer_agent::Vendor;
use triphammer_gate::{Discovered, Origin, Packs, WorkFiles};
use triphammer_model::config::VendorName;
use triphammer_model::spec::template;
use triphammer_store::Runs;

use crate::args::InitArgs;
use crate::commands::doctor::on_path;
use crate::commands::spec::write_new;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, CONFIG};
use crate::say;

/// The draft that every home begins with.
const EXAMPLE: &str = "specs/example.md";

pub(crate) fn init(args: &InitArgs) -> Outcome {
    let dir = home::absolute(&args.dir)?;
    let config = dir.join(CONFIG);
    if config.symlink_metadata().is_ok() {
        return Err(Failure::refused(format!(
            "`{}` is a home already: it has a {CONFIG}, which was left as it is; edit it, or remove it to begin anew",
            dir.display()
        )));
    }
    let failed =
        |what: &Path, e: std::io::Error| Failure::refused(format!("writing `{}`: {e}", what.display()));
    std::fs::create_dir_all(dir.join("specs")).map_err(|e| failed(&dir.join("specs"), e))?;
    let packs = fitting(&dir)?;
    let known = VendorName::ALL.map(Vendor::of).into_iter();
    let found: Vec<&str> = known.filter(|v| on_path(v.program).is_some()).map(|v| v.kind).collect();

    let (mut written, mut kept) = (Vec::new(), Vec::new());
    let mut put = |name: &str, text: &str| match write_new(&dir.join(name), text.as_bytes()) {
        Ok(()) => {
            written.push(name.to_owned());
            Ok(())
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            kept.push(name.to_owned());
            Ok(())
        }
        Err(e) => Err(failed(&dir.join(name), e)),
    };
    put(EXAMPLE, &template("example", ""))?;
    let ignores = ["runs/.gitignore", "runs/.ignore"];
    let before = ignores.map(|name| dir.join(name).exists());
    Runs::new(dir.join("runs")).prepare().map_err(Failure::refused)?;
    // The file that makes the folder a home comes last: an `init` that failed half-way can be repeated.
    put(CONFIG, &configuration(&packs, &found))?;
    for (name, there) in ignores.into_iter().zip(before) {
        let list = if there { &mut kept } else { &mut written };
        list.push(name.to_owned());
    }

    if args.json {
        let object = json!({
            "schema": 1, "home": dir.display().to_string(), "written": written, "kept": kept, "packs": packs,
            "agents_found": found,
        });
        say::data(&object.to_string());
        return Ok(Exit::Done);
    }
    say::talk(&format!("made a home in {}", dir.display()));
    for name in &written {
        say::talk(&format!("  wrote {name}"));
    }
    for name in &kept {
        say::talk(&format!("  kept {name}, which was there"));
    }
    if packs.is_empty() {
        say::talk("  no shipped pack fits yet; gates are looked for again at each attempt");
    }
    for (pack, gates) in &packs {
        say::talk(&format!("  pack {pack} fits: {}", gates.join(", ")));
    }
    say::talk(&format!(
        "next: say in {CONFIG} who works, fill in {EXAMPLE}, then triphammer spec check {EXAMPLE}"
    ));
    Ok(Exit::Done)
}

/// Packs that have something to do in a folder, with their gates.
fn fitting(dir: &Path) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let texts = triphammer_gate::collect(None, &dir.join("gates")).map_err(Failure::refused)?;
    let packs = Packs::parse(&texts, None).map_err(Failure::refused)?;
    let mut discovered = Discovered::default();
    let names = discovered.look(&packs, &WorkFiles::walk(dir));
    let mut fit: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for gate in packs.gates().iter().filter(|g| names.contains(g.name())) {
        if let Origin::Pack(pack) = gate.origin() {
            fit.entry(pack).or_default().push(gate.name().to_string());
        }
    }
    Ok(fit)
}

/// The configuration's text: valid as it is, and every line that is commented out shows what could stand there.
fn configuration(packs: &BTreeMap<String, Vec<String>>, agents: &[&str]) -> String {
    let fit = if packs.is_empty() {
        "none of the shipped packs fits this folder yet".to_owned()
    } else {
        format!("found here: {}", packs.keys().cloned().collect::<Vec<_>>().join(", "))
    };
    let on_path = if agents.is_empty() {
        "None of those that Triphammer knows by name is on PATH.".to_owned()
    } else {
        format!("On PATH: {}.", agents.join(", "))
    };
    // A suggestion is of use only where it can work; `mine` is the command that stands below.
    let agent = format!("# agent = \"{}\"", agents.first().unwrap_or(&"mine"));
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        r#"# Triphammer's home. Flags go over the environment, that over this file, this over your own
# (~/.config/triphammer/config.toml). What is commented out is optional.

[run]
{agent:27} # who works when neither spec nor flag says so; a list is a fallback chain
# attempts = 5              # 1 to 50; the breaker needs 3 to speak
# budget = "4h"             # wall clock
# max_cost = 5.00           # USD; an agent that does not say what it spent then suspends the run
# isolate = "in-place"      # or "worktree" (a private clone) or "copy": then `triphammer apply` lands the work

# Who can work. {on_path}
# Those work by their names, with their own logins and keys, and need no section here; `auto` is the first that can work.
# `triphammer doctor` says which are logged in, and what holds them.
# [agents.claude]
# kind = "claude"
# model = "opus"            # its own choice where none is named
# continue = true           # goes on in its session at the next attempt
# timeout = "45m"
# idle_timeout = "15m"

# [agents.coder]
# kind = "native"           # a loop of our own, for whoever has a key or a local server
# model = "qwen2.5-coder"
# base_url = "http://127.0.0.1:8080/v1"

# [agents.server]
# kind = "acp"              # any server of the Agent Client Protocol
# argv = ["opencode", "acp"]

# [agents.mine]
# kind = "command"          # any command; it gets the brief on its standard input
# argv = ["my-agent", "--quiet"]
# env = ["MY_KEY"]          # beyond the shared environment; this is how a secret reaches an agent

# Gates come from packs: {fit}.
# Your own packs are files gates/NAME.toml; one of the name of a shipped pack replaces it. A spec's `gates: [..]`
# names those that judge it. The pack `honesty` (stubs, skipped tests, swallowed errors) judges only where named.

# [workspace]
# setup = ["npm ci"]        # makes an isolated workspace usable
# carry = [".env"]          # ignored files that it gets

# [prices]
# "my-model*" = {{ input = 1.00, cached = 0.10, output = 4.00 }}   # USD per million tokens

# [sandbox]
# writable = ["~/.config/my-tool"]   # beside the workspace, tool caches and the agent's own state
# network = "all"           # or "loopback", "none"

# [secrets]
# names = ["MY_TOKEN"]      # redacted in all that is written, beside what looks secret by name
"#
    );
    out
}

#[cfg(test)]
mod tests {
    use triphammer_model::config::Config;

    use super::*;

    #[test]
    fn the_configuration_is_valid_as_it_is_and_with_every_comment_taken_off() {
        let packs = BTreeMap::from([("rust".to_owned(), vec!["rust-test".to_owned()])]);
        let text = configuration(&packs, &["claude"]);
        assert!(text.contains("# agent = \"claude\""), "{text}");
        let of = |agents: &[&str]| configuration(&packs, agents);
        assert!(of(&["pi", "qwen"]).contains("# agent = \"pi\" ") && of(&[]).contains("# agent = \"mine\" "));
        assert!(text.contains("found here: rust") && text.contains("On PATH: claude."), "{text}");
        Config::parse(CONFIG, text.as_bytes()).unwrap();
        // Lines that are settings begin with a key or a section.
        let setting = |line: &str| {
            line.starts_with('[') || line.split_once(" = ").is_some_and(|(k, _)| !k.contains(' '))
        };
        let bare: String = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| setting(rest)).unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        let config =
            Config::parse(CONFIG, bare.clone().into_bytes()).unwrap_or_else(|e| panic!("{e}\n{bare}"));
        let agents: Vec<&str> = config.agents.keys().map(triphammer_model::AgentName::as_str).collect();
        assert_eq!(agents, ["claude", "coder", "mine", "server"], "{bare}");
        assert!(config.prices.contains_key("my-model*") && config.sandbox.writable.is_some());
        assert_eq!(config.run.attempts, Some(5));
        assert_eq!(config.secrets.names, ["MY_TOKEN"]);
    }

    #[test]
    fn finds_the_packs_that_fit() {
        let dir = tempfile::tempdir().unwrap();
        assert!(fitting(dir.path()).unwrap().is_empty());
        std::fs::write(dir.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(fitting(dir.path()).unwrap().keys().collect::<Vec<_>>(), ["rust"]);
    }
}
