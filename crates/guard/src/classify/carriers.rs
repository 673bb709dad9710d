//! Programs that start others with arguments of their own making, or somewhere else.

use super::arg::{Arg, UNKNOWN, joined};
use super::call::Verdict;
use super::classes::deletion;
use super::feed::Feed;
use super::options::Options;
use super::state::State;
use super::walk::{Around, Judge};

/// Items that are tried one by one; beyond, they count as one that is not known.
const ITEMS: usize = 64;

/// Whether a program gets something from the network and prints it.
pub(super) fn is_download(name: &str) -> bool {
    matches!(
        name.rsplit('/').next().unwrap_or(name),
        "curl" | "wget" | "fetch" | "http" | "https" | "xh" | "aria2c" | "lynx"
    )
}

/// What a command prints for the next one in a pipe, as far as that is known.
pub(super) fn printed(command: &[Arg], feed: &Feed) -> Feed {
    let mut command = command;
    for _ in 0..super::command::WRAPPED {
        let Some((first, args)) = command.split_first() else { break };
        match super::wrappers::unwrap(super::command::base(&first.text), args) {
            Some(skipped) if skipped < args.len() => command = &args[skipped..],
            _ => break,
        }
    }
    let Some((first, args)) = command.split_first() else { return Feed::Program };
    let name = super::command::base(&first.text);
    let quiet = args.iter().all(Arg::is_option);
    match (name, feed) {
        (name, _) if is_download(name) => Feed::Download,
        ("echo", _) => {
            let start = args
                .iter()
                .take_while(|arg| matches!(arg.text.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E"))
                .count();
            Feed::Text(joined(&args[start..]).replace("\\n", "\n"))
        }
        ("printf", _) => {
            let texts: Vec<String> = args.iter().map(|arg| arg.text.replace("\\n", "\n")).collect();
            Feed::Text(texts.join("\n"))
        }
        ("find", _) => Feed::Paths(Search::read(args).items()),
        ("fd" | "fdfind", _) => Feed::Paths(fd_items(args)),
        (_, Feed::Download) => Feed::Download,
        ("tee", feed) => feed.clone(),
        ("cat", feed) if quiet || args.iter().all(|arg| arg.is("-")) => feed.clone(),
        ("sort" | "head" | "tail" | "uniq" | "grep" | "egrep" | "rg", Feed::Paths(paths)) => {
            Feed::Paths(paths.clone())
        }
        _ => Feed::Program,
    }
}

/// Judges what a carrier starts; false when `name` is none.
pub(super) fn run(judge: &mut Judge<'_>, name: &str, args: &[Arg], around: &mut Around<'_>) -> bool {
    match name {
        "find" => find(judge, args, around),
        "fd" | "fdfind" => {
            let Some(at) = args
                .iter()
                .position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"))
            else {
                return true;
            };
            each(judge, &args[at + 1..], &fd_items(&args[..at]), "{}", around);
        }
        "xargs" => xargs(judge, args, around),
        "parallel" => parallel(judge, args, around),
        "watch" => {
            let (_, at) = Options::leading(args, "n", &["--interval"]);
            text(judge, &joined(&args[at..]), around);
        }
        "ssh" | "mosh" => {
            let (_, at) = Options::leading(args, "BbcDEeFIiJLlmOopPQRSWw", &[]);
            elsewhere(judge, &joined(args.get(at + 1..).unwrap_or_default()), around);
        }
        "docker" | "podman" | "nerdctl" | "docker-compose" => return container(judge, name, args, around),
        "kubectl" | "oc" | "lxc" | "incus" | "distrobox" | "toolbox" | "k" => {
            let runs = args.iter().any(|arg| matches!(arg.text.as_str(), "exec" | "enter" | "run"));
            let Some(at) = args.iter().position(|arg| arg.is("--")).filter(|_| runs) else { return false };
            inside(judge, &args[at + 1..], around);
        }
        "env" => return after(judge, args, &["-S", "--split-string"], around),
        "npx" => return after(judge, args, &["-c", "--call"], around),
        "su" | "script" | "runuser" => {
            if !after(judge, args, &["-c", "--command", "-qc"], around) && name == "su" {
                super::shells::from_feed(judge, &mut around.state.child(), around);
            }
        }
        "flock" => {
            let (_, at) = Options::leading(args, "wE", &["--timeout", "--conflict-exit-code"]);
            let rest = args.get(at + 1..).unwrap_or_default();
            if rest.first().is_none_or(|arg| arg.is("-c") || arg.is("--command")) {
                return after(judge, rest, &["-c", "--command"], around);
            }
            judge.command(rest, around);
        }
        "nix-shell" => return after(judge, args, &["--run", "--command"], around),
        "vagrant" | "flyctl" | "fly" if args.first().is_some_and(|arg| arg.is("ssh")) => {
            let Some(at) = args.iter().position(|arg| matches!(arg.text.as_str(), "-c" | "-C" | "--command"))
            else {
                return true;
            };
            elsewhere(judge, args.get(at + 1).map_or("", |arg| arg.text.as_str()), around);
        }
        "heroku" if args.first().is_some_and(|arg| arg.is("run")) => {
            elsewhere(judge, &joined(&args[1..]), around);
        }
        "tmux" | "screen" => {
            for arg in args.iter().filter(|arg| arg.text.contains(' ')) {
                text(judge, &arg.text, around);
            }
        }
        _ => return false,
    }
    true
}

fn text(judge: &mut Judge<'_>, line: &str, around: &Around<'_>) {
    super::shells::given(judge, line, &mut around.state.child(), around);
}

/// Judges the text behind one of these options; false when there is none.
fn after(judge: &mut Judge<'_>, args: &[Arg], options: &[&str], around: &Around<'_>) -> bool {
    for (index, arg) in args.iter().enumerate() {
        if options.contains(&arg.text.as_str()) {
            text(judge, &joined(args.get(index + 1..).unwrap_or_default()), around);
            return true;
        }
        let attached = options.iter().find_map(|option| {
            let rest = arg.text.strip_prefix(option)?;
            rest.strip_prefix('=').or((!option.starts_with("--") && !rest.is_empty()).then_some(rest))
        });
        if let Some(line) = attached {
            text(judge, line, around);
            return true;
        }
    }
    false
}

/// Judges a line that runs on another machine.
fn elsewhere(judge: &mut Judge<'_>, line: &str, around: &Around<'_>) {
    let mut state = State::elsewhere();
    if line.trim().is_empty() {
        super::shells::from_feed(judge, &mut state, around);
        return;
    }
    let there = Around {
        state: &mut state.clone(),
        feed: around.feed,
        text: around.text,
        sure: around.sure,
        fetched: false,
    };
    // A shell at the other end (`ssh host bash -s`) reads what is fed here.
    if matches!(line.trim(), "sh" | "bash" | "bash -s" | "sh -s" | "bash -se" | "sh -se") {
        super::shells::from_feed(judge, &mut state, &there);
        return;
    }
    if line.chars().all(|c| c == UNKNOWN || c.is_whitespace()) {
        judge.doubt(super::judgement::What::NotLiteral, &there);
        return;
    }
    judge.nested_line(line, &mut state, &there);
}

/// Judges a command that runs in a container, whose folders may or may not be ours.
fn inside(judge: &mut Judge<'_>, command: &[Arg], around: &mut Around<'_>) {
    let mut state = State::elsewhere();
    let mut there = Around {
        state: &mut state,
        feed: around.feed,
        text: around.text,
        sure: false,
        fetched: around.fetched,
    };
    judge.command(command, &mut there);
}

fn container(judge: &mut Judge<'_>, name: &str, args: &[Arg], around: &mut Around<'_>) -> bool {
    const LONG: [&str; 34] = [
        "--name",
        "--volume",
        "--env",
        "--workdir",
        "--user",
        "--network",
        "--entrypoint",
        "--mount",
        "--publish",
        "--label",
        "--env-file",
        "--platform",
        "--memory",
        "--cpus",
        "--gpus",
        "--hostname",
        "--add-host",
        "--restart",
        "--pull",
        "--shm-size",
        "--device",
        "--cap-add",
        "--cap-drop",
        "--security-opt",
        "--ulimit",
        "--tmpfs",
        "--log-driver",
        "--link",
        "--net",
        "--ipc",
        "--pid",
        "--runtime",
        "--detach-keys",
        "--index",
    ];
    let global = [
        "--context",
        "--host",
        "--config",
        "--log-level",
        "--file",
        "--project-name",
        "--profile",
        "--project-directory",
        "--env-file",
    ];
    let (_, mut at) = Options::leading(args, "cHlfp", &global);
    if name != "docker-compose" && args.get(at).is_some_and(|arg| arg.is("compose") || arg.is("container")) {
        at += 1;
        at += Options::leading(&args[at..], "fp", &global).1;
    }
    if !args.get(at).is_some_and(|arg| arg.is("exec") || arg.is("run")) {
        return false;
    }
    let rest = &args[at + 1..];
    let (_, image) = Options::leading(rest, "evpuwhlmca", &LONG);
    inside(judge, rest.get(image + 1..).unwrap_or_default(), around);
    true
}

/// What `find` looks for, and where.
struct Search<'a> {
    roots: Vec<&'a Arg>,
    tests: &'a [Arg],
}

impl<'a> Search<'a> {
    fn read(args: &'a [Arg]) -> Self {
        let mut start = 0;
        while let Some(arg) = args.get(start) {
            match arg.text.as_str() {
                "-H" | "-L" | "-P" => start += 1,
                "-D" => start += 2,
                text if text.starts_with("-O") => start += 1,
                _ => break,
            }
        }
        let start = start.min(args.len());
        let end = args[start..]
            .iter()
            .position(|arg| arg.is_option() || matches!(arg.text.as_str(), "(" | ")" | "!"));
        let end = end.map_or(args.len(), |end| start + end);
        Self { roots: args[start..end].iter().collect(), tests: &args[end..] }
    }

    /// Whether a test leaves most of what is there alone.
    fn narrow(&self) -> bool {
        const TESTS: [&str; 26] = [
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-iwholename",
            "-regex",
            "-iregex",
            "-newer",
            "-mtime",
            "-mmin",
            "-atime",
            "-amin",
            "-ctime",
            "-cmin",
            "-size",
            "-empty",
            "-perm",
            "-user",
            "-group",
            "-inum",
            "-links",
            "-samefile",
            "-lname",
            "-newermt",
            "-nouser",
        ];
        self.tests.iter().enumerate().any(|(index, test)| {
            let negated = index > 0 && matches!(self.tests[index - 1].text.as_str(), "!" | "-not");
            let value = self.tests.get(index + 1).map_or("", |arg| arg.text.as_str());
            let all = value.chars().all(|c| matches!(c, '*' | '.' | '/' | '?')) && test.text != "-empty";
            TESTS.contains(&test.text.as_str()) && !negated && !all
        })
    }

    /// What it finds: something below each root, or everything.
    fn items(&self) -> Vec<Arg> {
        let below = if self.narrow() { "[found]" } else { "*" };
        let here = Arg::new(".");
        let roots = if self.roots.is_empty() { vec![&here] } else { self.roots.clone() };
        roots
            .into_iter()
            .map(|root| Arg {
                glob: true,
                ..Arg::new(format!("{}/{below}", root.text.trim_end_matches('/')))
            })
            .collect()
    }
}

fn find(judge: &mut Judge<'_>, args: &[Arg], around: &mut Around<'_>) {
    let search = Search::read(args);
    let items = search.items();
    let mut index = 0;
    while let Some(test) = search.tests.get(index) {
        index += 1;
        match test.text.as_str() {
            "-delete" => {
                for item in &items {
                    let verdict = deletion::target(judge.place, around.state, item, "`find -delete`");
                    if let Some(Verdict { class, why, sure }) = verdict {
                        judge.found(class, why, sure, around);
                    }
                }
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &search.tests[index..];
                let end = rest
                    .iter()
                    .position(|arg| matches!(arg.text.as_str(), ";" | "+" | "\\;"))
                    .unwrap_or(rest.len());
                index += end;
                each(judge, &rest[..end], &items, "{}", around);
            }
            _ => {}
        }
    }
}

/// Judges a command once with each item put in for `place`, or behind it where it has none.
fn each(judge: &mut Judge<'_>, command: &[Arg], items: &[Arg], place: &str, around: &mut Around<'_>) {
    let unknown = [Arg::unknown()];
    let items = if items.is_empty() || items.len() > ITEMS { &unknown[..] } else { items };
    let holds = command.iter().any(|arg| arg.text.contains(place));
    for item in items {
        let mut one: Vec<Arg> = command
            .iter()
            .map(|arg| {
                if arg.text.contains(place) {
                    let text = arg.text.replace(place, &item.text);
                    Arg { glob: arg.glob || item.glob, ..Arg::new(text) }
                } else {
                    arg.clone()
                }
            })
            .collect();
        if !holds {
            one.push(item.clone());
        }
        // Deleting what a search finds deletes many, with or without `-r`.
        if item.glob && one.first().is_some_and(|name| super::command::base(&name.text) == "rm") {
            one.insert(1, Arg::new("-r"));
        }
        if !judge.pays(&one, around) {
            return;
        }
        judge.command(&one, around);
    }
}

/// `fd` looks for a pattern below its folders, or the current one.
fn fd_items(args: &[Arg]) -> Vec<Arg> {
    let options =
        Options::read(args, "tedEcjS", &["--type", "--extension", "--max-depth", "--exclude", "--size"]);
    let narrow =
        options.operands.first().is_some_and(|pattern| !matches!(pattern.text.as_str(), "." | "" | ".*"))
            || options.has(&["-e", "--extension", "-S", "--size"]);
    let below = if narrow { "[found]" } else { "*" };
    let mut roots: Vec<&str> = options.operands.iter().skip(1).map(|arg| arg.text.as_str()).collect();
    if roots.is_empty() {
        roots.push(".");
    }
    roots
        .iter()
        .map(|root| Arg { glob: true, ..Arg::new(format!("{}/{below}", root.trim_end_matches('/'))) })
        .collect()
}

fn xargs(judge: &mut Judge<'_>, args: &[Arg], around: &mut Around<'_>) {
    let long = [
        "--arg-file",
        "--delimiter",
        "--max-args",
        "--max-procs",
        "--max-chars",
        "--process-slot-var",
        "--max-lines",
    ];
    let (options, at) = Options::leading(args, "aEILnPsd", &long);
    let command = &args[at..];
    let items = fed(around.feed);
    let replaced = options.values(&["-I", "--replace"]).next().map(str::to_owned);
    let braces = options.has(&["-i", "--replace"]).then(|| "{}".to_owned());
    match replaced.or(braces) {
        Some(place) if !place.is_empty() => each(judge, command, &items, &place, around),
        _ => each(judge, command, &items, "\u{1}", around),
    }
}

/// What comes in, item by item; none when it is not known.
fn fed(feed: &Feed) -> Vec<Arg> {
    match feed {
        Feed::Paths(paths) => paths.clone(),
        Feed::Text(text) => text.split_whitespace().map(Arg::new).collect(),
        _ => Vec::new(),
    }
}

fn parallel(judge: &mut Judge<'_>, args: &[Arg], around: &mut Around<'_>) {
    let (_, at) = Options::leading(
        args,
        "jSIaNnLsC",
        &["--jobs", "--colsep", "--arg-file", "--delay", "--retries", "--joblog"],
    );
    let rest = &args[at..];
    let split = rest.iter().position(|arg| arg.starts_with(":::"));
    let (command, items) = match split {
        Some(split) => (&rest[..split], rest[split + 1..].to_vec()),
        None => (rest, fed(around.feed)),
    };
    let line = joined(command);
    if line.trim().is_empty() {
        return text(
            judge,
            &items.iter().map(|item| item.text.clone()).collect::<Vec<_>>().join("\n"),
            around,
        );
    }
    let items = if items.is_empty() || items.len() > ITEMS { vec![Arg::unknown()] } else { items };
    for item in items {
        if !judge.pays(command, around) {
            return;
        }
        let filled = if line.contains("{}") {
            line.replace("{}", &item.text)
        } else {
            format!("{line} {}", item.text)
        };
        text(judge, &filled, around);
    }
}
