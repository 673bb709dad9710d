//! The fence as bubblewrap holds it: a read-only view of everything, with what may be written to bound into it.
//!
//! Inside, only what was started inside is seen as a process: through the `/proc` of a process outside one would come to its
//! view of the file system. Devices are the few that every program needs.
//!
//! bubblewrap stays as the parent of what it starts: a program that was ended by signal n shows as exit 128 + n.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::fence::Fence;
use super::rights::WITHHELD;
use crate::command::find_program;

/// What of `/proc` an administrator would change the system by.
const SWITCHES: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Where bubblewrap is, by this process's own PATH.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    find_program("bwrap", &path, Path::new("/"))
}

/// The command line that starts `program` inside of the fence.
///
/// # Errors
/// `NotFound` when there is no such program: bubblewrap itself would say so only in words.
pub(super) fn around(
    holder: &Path,
    fence: &Fence,
    program: OsString,
    args: Vec<OsString>,
    dir: &Path,
) -> io::Result<Vec<OsString>> {
    let program = if program == "/proc/self/exe" {
        // There it would name bubblewrap.
        std::env::current_exe()?.into_os_string()
    } else {
        program
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = program
        .to_str()
        .map_or_else(|| dir.join(&program).is_file(), |name| find_program(name, &path, dir).is_some());
    if !found {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut line = vec![holder.into()];
    line.extend(
        ["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"].map(OsString::from),
    );
    for switch in SWITCHES {
        line.extend(["--ro-bind-try".into(), switch.into(), switch.into()]);
    }
    line.extend(WITHHELD.iter().flat_map(|right| [OsString::from("--cap-drop"), right.into()]));
    for (path, may_write) in places(fence) {
        line.push(if may_write { "--bind-try" } else { "--ro-bind-try" }.into());
        line.extend([path.as_os_str().to_owned(), path.into()]);
    }
    line.extend(["--chdir".into(), dir.into(), "--".into(), program]);
    line.extend(args);
    Ok(line)
}

/// The places in the order in which they are bound: what lies in another one after it, and read-only last of all that
/// have the same path.
fn places(fence: &Fence) -> Vec<(&Path, bool)> {
    let all = fence
        .writable
        .iter()
        .map(|path| (path, true))
        .chain(fence.read_only.iter().map(|path| (path, false)));
    let mut places: Vec<(&Path, bool)> = all.map(|(path, may_write)| (path.as_path(), may_write)).collect();
    places.sort_by_key(|(path, may_write)| (path.components().count(), !may_write));
    places
}

#[cfg(test)]
mod tests {
    use super::super::Hold;
    use super::*;

    #[test]
    fn what_lies_in_another_comes_after_it() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let fence = Fence {
            hold: Hold::Bubblewrap("/usr/bin/bwrap".into()),
            writable: paths(&["/h/runs/r/live/scratch", "/tmp/t", "/h"]),
            read_only: paths(&["/h/runs", "/h"]),
        };
        let order: Vec<String> = places(&fence)
            .iter()
            .map(|(path, may_write)| format!("{} {may_write}", path.display()))
            .collect();
        assert_eq!(
            order,
            ["/h true", "/h false", "/tmp/t true", "/h/runs false", "/h/runs/r/live/scratch true"]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_said_to_be_missing() {
        let fence = Fence { hold: Hold::Landlock, writable: Vec::new(), read_only: Vec::new() };
        let around =
            |program: &str| around(Path::new("/b"), &fence, program.into(), vec!["x".into()], Path::new("/"));
        assert_eq!(around("no-such-program-here").unwrap_err().kind(), io::ErrorKind::NotFound);
        let argv = around("/bin/sh").unwrap();
        assert_eq!(argv[argv.len() - 3..], ["--", "/bin/sh", "x"].map(OsString::from));
    }
}
