//! What the tests need beyond a Rust toolchain, and how it gets here.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::steps;

/// A program that tests start.
pub(crate) struct Tool {
    /// Its name on PATH.
    name: &'static str,
    /// The Debian package that holds it.
    package: &'static str,
    /// The packages of this workspace whose tests are not run without it.
    needed_by: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "git",
        package: "git",
        needed_by: &["triphammer-workspace", "triphammer-runner", "triphammer", "triphammer-tests"],
    },
    // Without it the tests of its fence check that it is missed.
    Tool { name: "bwrap", package: "bubblewrap", needed_by: &[] },
    Tool { name: "python3", package: "python3", needed_by: &["triphammer-agent", "triphammer-tests"] },
    Tool { name: "kill", package: "procps", needed_by: &["triphammer-agent"] },
    Tool { name: "mkfifo", package: "coreutils", needed_by: &["triphammer-agent", "triphammer-workspace"] },
];

/// Installs what is missing where that can be done, and returns what is missing still.
pub(crate) fn set_up() -> Vec<&'static Tool> {
    let missing = missing();
    if missing.is_empty() {
        println!("nothing is missing");
        return missing;
    }
    if !is_root_on_debian() {
        for tool in &missing {
            println!(
                "{} is missing: install it (Debian package {}) and run this again",
                tool.name, tool.package
            );
        }
        return missing;
    }
    let packages: BTreeSet<&str> = missing.iter().map(|tool| tool.package).collect();
    println!("installing {}", packages.iter().copied().collect::<Vec<_>>().join(", "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        steps::run(command)
    };
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(packages);
    if let Err(what) = apt(&["update", "--quiet"]).and_then(|()| apt(&install)) {
        println!("{what}");
    }
    self::missing()
}

fn missing() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !is_on_path(tool.name)).collect()
}

/// Whether PATH leads to an executable file of that name.
pub(crate) fn is_on_path(name: &str) -> bool {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| executable(&folder.join(name))))
}

fn is_root_on_debian() -> bool {
    // The owner of a process's folder in /proc is its effective user.
    let root = Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0);
    root && Path::new("/etc/debian_version").exists() && is_on_path("apt-get")
}

/// The packages whose tests cannot be run, each with the tool that it lacks.
pub(crate) fn blocked(missing: &[&'static Tool], packages: &[String]) -> Vec<(String, &'static str)> {
    let lacks = |package: &String| {
        let tool = missing.iter().find(|tool| tool.needed_by.contains(&package.as_str()))?;
        Some((package.clone(), tool.name))
    };
    packages.iter().filter_map(lacks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_programs_and_only_those() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program-anywhere"));
    }

    #[test]
    fn a_missing_tool_blocks_who_needs_it() {
        let git: Vec<&Tool> = TOOLS.iter().filter(|tool| tool.name == "git").collect();
        let packages = ["triphammer-model".to_owned(), "triphammer-runner".to_owned()];
        assert_eq!(blocked(&git, &packages), [("triphammer-runner".to_owned(), "git")]);
        assert_eq!(blocked(&[], &packages), []);
    }
}
