//! Whether a program can be found, by looking for it: never by reading what a shell said.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// A variable's value in an environment list; the last one wins, as in a process.
pub(crate) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str())
}

/// Whether `path` is a regular file that may be executed. Links are followed: tools are often links.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// Where `program` is found: as a path from `dir` when it holds a `/`, else on the `PATH` of `env`.
pub(crate) fn resolve(program: &str, env: &[(OsString, OsString)], dir: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let path = dir.join(program);
        return is_executable(&path).then_some(path);
    }
    let path = variable(env, "PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
    path.as_bytes()
        .split(|b| *b == b':')
        .map(|entry| dir.join(OsStr::from_bytes(entry)).join(program))
        .find(|candidate| is_executable(candidate))
}

/// The program that an argument list names: behind `env` and its assignments, or the first word of a shell line
/// when that is a plain word. `None` when it cannot be told.
pub(crate) fn program(argv: &[String]) -> Option<&str> {
    match argv {
        [sh, flag, script, ..] if is_shell(sh) && flag == "-c" => shell_word(script),
        [env, rest @ ..] if env == "env" => {
            rest.iter().map(String::as_str).find(|a| !is_assignment(a)).filter(|a| !a.starts_with('-'))
        }
        [program, ..] => Some(program),
        [] => None,
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash"))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.as_bytes()[0].is_ascii_digit()
    })
}

/// Words that a shell knows by itself.
const BUILTINS: [&str; 49] = [
    "!", ".", ":", "[", "{", "}", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fi", "for", "hash", "if",
    "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "then", "time",
    "times", "trap", "true", "type", "ulimit", "umask", "unset", "until", "wait",
];

/// The first word of a shell line that is a program's plain name.
fn shell_word(script: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+/".contains(c);
    let word = script.split_whitespace().find(|w| !is_assignment(w))?;
    let word = word.strip_suffix(';').unwrap_or(word);
    // An assignment whose value is quoted may hold white space: then nothing can be told from words.
    let quoted =
        script.split_whitespace().take_while(|w| is_assignment(w)).any(|w| w.contains(['"', '\'', '$', '`']));
    let known = BUILTINS.contains(&word) || word == "while";
    (!quoted && !known && !word.is_empty() && word.chars().all(plain)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_program() {
        let argv = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        for (line, want) in [
            ("cargo|test", Some("cargo")),
            ("env|A=1|pytest|-q", Some("pytest")),
            ("env|-i|pytest", None),
            ("sh|-c|no-such-tool --check", Some("no-such-tool")),
            ("sh|-c|RUST_LOG=1 ./run.sh x", Some("./run.sh")),
            ("sh|-c|A=\"x y\" tool", None),
            ("sh|-c|test -f x", None),
            ("sh|-c|[ -f x ]", None),
            ("sh|-c|! grep x y", None),
            ("sh|-c|if true; then x; fi", None),
            ("sh|-c|$TOOL x", None),
            ("sh|-c|\"a b\" x", None),
            ("sh|-c|", None),
        ] {
            assert_eq!(program(&argv(line)), want, "{line}");
        }
    }

    #[test]
    fn finds_it_where_the_process_would() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("bin/tool");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::write(&tool, "#!/bin/sh\n").unwrap();
        let env = vec![(OsString::from("PATH"), dir.path().join("bin").into_os_string())];
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(resolve("tool", &env, dir.path()), None);
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve("tool", &env, dir.path()), Some(tool.clone()));
        assert_eq!(resolve("bin/tool", &[], dir.path()), Some(tool));
        assert_eq!(resolve("sh", &env, dir.path()), None);
    }
}
