//! Programs that run the program that their arguments name.

use super::arg::Arg;
use super::options::Options;

/// A program that runs another one.
struct Wrapper {
    /// Its name, and the words that must follow it.
    names: &'static [&'static str],
    /// Letters of options that take a value.
    short: &'static str,
    /// Long options that take the next argument as their value.
    long: &'static [&'static str],
    /// Operands in front of the program.
    operands: usize,
}

const fn wrapper(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { names, short, long, operands }
}

const SUDO: &[&str] = &[
    "--user",
    "--group",
    "--host",
    "--prompt",
    "--chdir",
    "--role",
    "--type",
    "--other-user",
    "--close-from",
    "--command-timeout",
    "--chroot",
];

const WRAPPERS: &[Wrapper] = &[
    wrapper(&["sudo", "doas", "pkexec", "run0", "sudo-rs"], "ughpCTRDrtU", SUDO, 0),
    wrapper(&["env"], "uC", &["--unset", "--chdir"], 0),
    wrapper(&["nice"], "n", &["--adjustment"], 0),
    wrapper(
        &["nohup", "setsid", "command", "builtin", "fakeroot", "unbuffer", "caffeinate", "winpty"],
        "",
        &[],
        0,
    ),
    wrapper(&["time", "gtime"], "fo", &["--format", "--output"], 0),
    wrapper(&["timeout", "gtimeout"], "ks", &["--kill-after", "--signal"], 1),
    wrapper(&["stdbuf"], "ioe", &["--input", "--output", "--error"], 0),
    wrapper(&["ionice"], "cnpPu", &["--class", "--classdata"], 0),
    wrapper(&["chrt"], "TPD", &[], 1),
    wrapper(&["taskset", "chroot", "gosu", "su-exec", "setarch"], "", &[], 1),
    wrapper(&["exec"], "a", &[], 0),
    wrapper(&["busybox", "toybox"], "", &[], 0),
    wrapper(&["strace", "ltrace", "perf", "valgrind"], "eopsaEuPX", &[], 0),
    wrapper(&["unshare", "nsenter"], "tSG", &["--target", "--setuid", "--setgid"], 0),
    wrapper(&["runuser"], "ugG", &["--user", "--group"], 0),
    wrapper(&["systemd-run"], "pMHEu", &["--unit", "--property", "--slice", "--uid", "--gid", "--setenv"], 0),
    wrapper(&["proxychains", "proxychains4", "torsocks", "torify", "dumb-init", "tini"], "f", &[], 0),
    wrapper(&["dotenv", "dotenvx", "cross-env", "corepack", "entr", "noglob"], "fe", &[], 0),
    wrapper(&["npx", "bunx", "pnpx", "uvx"], "p", &["--package", "--from", "--with", "--python"], 0),
];

/// Tools with a subcommand that runs a program.
const RUNNERS: &[(&[&str], usize)] = &[
    (&["bundle", "exec"], 0),
    (&["uv", "run"], 0),
    (&["uv", "tool", "run"], 0),
    (&["poetry", "run"], 0),
    (&["pdm", "run"], 0),
    (&["pipenv", "run"], 0),
    (&["pipx", "run"], 0),
    (&["hatch", "run"], 0),
    (&["rye", "run"], 0),
    (&["npm", "exec"], 0),
    (&["npm", "x"], 0),
    (&["pnpm", "exec"], 0),
    (&["pnpm", "dlx"], 0),
    (&["yarn", "exec"], 0),
    (&["yarn", "dlx"], 0),
    (&["bun", "x"], 0),
    (&["dotenvx", "run"], 0),
    (&["op", "run"], 0),
    (&["doppler", "run"], 0),
    (&["infisical", "run"], 0),
    (&["aws-vault", "exec"], 1),
    (&["direnv", "exec"], 1),
    (&["mise", "exec"], 0),
    (&["mise", "x"], 0),
    (&["asdf", "exec"], 0),
    (&["rtx", "exec"], 0),
    (&["nix", "develop"], 0),
    (&["conda", "run"], 0),
    (&["k3s", "kubectl"], 0),
    (&["microk8s", "kubectl"], 0),
];

/// Programs that package managers run by their bare name.
const LOCAL: [&str; 9] =
    ["wrangler", "vercel", "netlify", "firebase", "serverless", "sls", "cdk", "lerna", "semantic-release"];

/// How many arguments stand in front of the program that `name` runs; `None` when it runs none.
pub(super) fn unwrap(name: &str, args: &[Arg]) -> Option<usize> {
    for (words, operands) in RUNNERS {
        if words[0] == name
            && words[1..].iter().zip(args).filter(|(word, arg)| arg.is(word)).count() == words.len() - 1
        {
            let start = words.len() - 1;
            let long = [
                "--package",
                "--with",
                "--python",
                "--from",
                "--env-file",
                "--directory",
                "--project",
                "--name",
            ];
            return Some(start + program(&args[start..], "pnc", &long, *operands, words[0] == "nix"));
        }
    }
    if matches!(name, "yarn" | "pnpm" | "bun")
        && args.first().is_some_and(|arg| LOCAL.contains(&arg.text.as_str()))
    {
        return Some(0);
    }
    // The program is behind `rustup run TOOLCHAIN`, and `cargo +TOOLCHAIN` is cargo itself.
    if name == "rustup" && args.first().is_some_and(|arg| arg.is("run")) {
        return Some(2.min(args.len()));
    }
    if is_python(name) {
        let (_, module) = Options::leading(args, "WX", &[]);
        let at = args[..module]
            .iter()
            .position(|arg| arg.is("-m") || (arg.is_option() && arg.text.ends_with('m')));
        return at.map(|at| at + 1).filter(|at| *at < args.len());
    }
    if name == "command" && args.first().is_some_and(|arg| arg.is("-v") || arg.is("-V")) {
        return Some(args.len());
    }
    if gives_text(name, args) {
        return None;
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))?;
    if name == "nice"
        && args
            .first()
            .is_some_and(|arg| arg.is_option() && arg.text[1..].bytes().all(|b| b.is_ascii_digit()))
    {
        return Some(1 + program(&args[1..], "", &[], 0, false));
    }
    Some(program(args, wrapper.short, wrapper.long, wrapper.operands, false))
}

/// `env -S 'text'`, `npx -c 'text'`: the program is in a text.
fn gives_text(name: &str, args: &[Arg]) -> bool {
    if !matches!(name, "env" | "npx" | "runuser") {
        return false;
    }
    let (options, _) =
        Options::leading(args, "SuCcps", &["--split-string", "--unset", "--chdir", "--call", "--package"]);
    match name {
        "env" => options.has(&["-S", "--split-string"]),
        "npx" => options.has(&["-c", "--call"]),
        _ => !options.has(&["-u", "--user"]),
    }
}

fn is_python(name: &str) -> bool {
    matches!(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'), "python" | "py" | "pypy")
}

/// The place of the program: behind options, operands, and variables that are set for it.
fn program(args: &[Arg], short: &str, long: &[&str], operands: usize, command_option: bool) -> usize {
    if command_option {
        let at = args.iter().position(|arg| arg.is("-c") || arg.is("--command"));
        return at.map_or(args.len(), |at| at + 1);
    }
    let (_, mut at) = Options::leading(args, short, long);
    let mut left = operands;
    while let Some(arg) = args.get(at) {
        let sets = arg.text.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        });
        if left > 0 {
            left -= 1;
        } else if !(sets || arg.is("--") || arg.is("-")) {
            break;
        }
        at += 1;
        // Options may stand behind an operand (`direnv exec . -- make`), and behind variables.
        let (_, more) = Options::leading(&args[at..], short, long);
        at += more;
    }
    at
}
