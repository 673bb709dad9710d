//! `triphammer tell`: a person's word to a run, verbatim and attributed.

use serde_json::json;

use crate::args::TellArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

pub(crate) fn tell(args: &TellArgs) -> Outcome {
    if args.text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to tell: give a text, such as 'use a BTreeMap'"));
    }
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let by = who();
    let recorded = triphammer_runner::tell(&runs, &id, &by, &args.text).map_err(Failure::refused)?;
    if args.home.json {
        say::data(&json!({"schema": 1, "run": id, "by": by, "recorded": recorded}).to_string());
    } else if recorded {
        say::talk(&format!("told run {id}; it reads it in its next brief: triphammer resume {id}"));
    } else {
        say::talk(&format!("told run {id}, which is being worked on; it goes into the next attempt's brief"));
    }
    Ok(Exit::Done)
}

/// The person at the keyboard: who acts is part of the record.
pub(crate) fn who() -> String {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    if let Some(name) = named.map(|n| n.trim().to_owned()).find(|n| !n.is_empty()) {
        return name;
    }
    let uid = rustix::process::getuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_of(&passwd, uid).unwrap_or_else(|| format!("uid {uid}"))
}

fn user_of(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_uid_has_a_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(super::user_of(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(super::user_of(passwd, 7), None);
    }
}
