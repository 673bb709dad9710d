//! A workspace that is lost comes back from any attempt, and any git tool reads the trees.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use triphammer_testkit::TestHome;

use crate::common::{git, strike};

/// Every path below a folder with its mode, and its content or link target. `.git` folders are left out.
fn plain(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_dir() {
                if path.file_name().unwrap() == ".git" {
                    continue;
                }
                pending.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let mode = if meta.is_symlink() { 0 } else { meta.permissions().mode() };
            all.insert(path.strip_prefix(dir).unwrap().to_owned(), (mode, content));
        }
    }
    all
}

/// What each attempt does; then the agent copies the workspace to where the test finds it.
const AGENT: &str = r#"
case $TRIPHAMMER_ATTEMPT in
1)  printf 'a\r\nb' > crlf; printf '* text=auto\n' > .gitattributes
    mkdir -p src/deep empty/er locked .local/bin; echo one > src/deep/file
    echo '#!/bin/sh' > run.sh; chmod 755 run.sh; echo secret > private; chmod 600 private; chmod 700 locked
    ln -s src/deep/file link; ln -s /nowhere dangling; echo tool > .local/bin/tool; chmod 755 .local/bin/tool
    mkdir -p nested; git init -q nested; echo inner > nested/inner;;
2)  echo two > src/deep/file; rm -r empty; chmod 644 run.sh; ln -sf run.sh link; echo more > .local/bin/other;;
3)  mv src moved; rm nested/inner; printf 'new\nline' > "$(printf 'odd\nname')";;
4)  truncate -s 65M large; mkfifo pipe; echo four > four;;
esac
cp -a . "$BESIDE/left-$TRIPHAMMER_ATTEMPT"
"#;

fn forged() -> (TestHome, PathBuf) {
    let home = TestHome::with_gates(&[("never", "test -f done")]);
    let beside = home.beside("");
    std::fs::create_dir_all(home.beside("work")).unwrap();
    std::fs::write(home.beside("work/old"), "old\n").unwrap();
    let agent = format!("BESIDE='{}'\n{AGENT}", beside.display());
    let work = home.beside("work");
    strike(&home, &agent, &["--workspace", work.to_str().unwrap(), "--attempts", "4"]).expect(
        "rejected",
        "attempts-exhausted",
        4,
        1,
    );
    (home, work)
}

#[test]
fn a_lost_workspace_comes_back_from_any_attempt() {
    let (home, work) = forged();
    std::fs::remove_dir_all(work).unwrap();
    for attempt in ["1", "2", "3"] {
        let to = home.beside(&format!("back-{attempt}"));
        let ran = home.run(["restore", "latest", attempt, "--to", to.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{attempt}: {}", ran.stderr);
        let left = plain(&home.beside(&format!("left-{attempt}")));
        assert!(left.len() > 10, "{attempt}");
        assert_eq!(plain(&to), left, "{attempt}");
    }
    let start = home.beside("back-0");
    assert_eq!(home.run(["restore", "latest", "0", "--to", start.to_str().unwrap()]).code, Some(0));
    assert_eq!(plain(&start).into_keys().collect::<Vec<_>>(), [Path::new("old")]);
}

#[test]
fn what_was_not_stored_is_named_and_no_success() {
    let (home, _) = forged();
    let to = home.beside("back");
    let ran = home.run(["restore", "latest", "4", "--to", to.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let done: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let named: Vec<&str> =
        done["not_restored"].as_array().unwrap().iter().filter_map(|n| n["path"].as_str()).collect();
    assert_eq!(named, ["large", "pipe"]);
    assert!(ran.stderr.contains("NOT RESTORED large"), "{}", ran.stderr);
    let mut left = plain_but(&home.beside("left-4"), &["large", "pipe"]);
    let back = plain_but(&to, &["large", "pipe"]);
    left.retain(|path, _| path != Path::new("pipe"));
    assert_eq!(back, left);
}

fn plain_but(dir: &Path, names: &[&str]) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    for name in names {
        // A FIFO must not be opened, and a large file need not be read.
        let _ = std::fs::remove_file(dir.join(name));
    }
    plain(dir)
}

#[test]
fn any_git_tool_compares_any_two_attempts() {
    let (home, _) = forged();
    let store = home.path().join("runs/.store.git");
    let run = home.only_run();
    let tree = |name: &str| format!("refs/runs/{}/{name}", run.id());
    let names = ["0", "001", "002", "003", "004"];
    for from in names {
        for to in names {
            let listed = git(&store, &["diff", "--name-only", &tree(from), &tree(to)]);
            assert_eq!(listed.is_empty(), from == to, "{from} {to}: {listed}");
        }
    }
    let diff = git(&store, &["diff", &tree("001"), &tree("002"), "--", "src/deep/file"]);
    assert!(diff.contains("-one") && diff.contains("+two"), "{diff}");
    git(&store, &["fsck", "--full", "--strict"]);
}

#[test]
fn the_records_of_runs_are_no_place_to_restore_to() {
    let (home, _) = forged();
    let runs = home.path().join("runs");
    let before = plain(&runs).len();
    for to in [runs.clone(), runs.join(".store.git"), runs.join(home.only_run().id()), runs.join("new/../.")]
    {
        let ran = home.run(["restore", "latest", "1", "--to", to.to_str().unwrap(), "--force"]);
        assert_eq!(ran.code, Some(1), "{}: {}", to.display(), ran.stderr);
        assert!(ran.stderr.contains("name another folder"), "{}", ran.stderr);
    }
    assert_eq!(plain(&runs).len(), before);
}

#[test]
fn what_the_run_passed_over_is_not_removed() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    let config = home.read("triphammer.toml");
    home.write("triphammer.toml", &format!("{config}\n[workspace]\nskip = [\"data/big\"]\n"));
    home.write("specs/it.md", crate::common::SPEC);
    let work = home.beside("work");
    std::fs::create_dir_all(work.join("data/big")).unwrap();
    std::fs::write(work.join("data/big/theirs"), "t").unwrap();
    strike(&home, "touch done", &["--workspace", work.to_str().unwrap()]).expect(
        "accepted",
        "unchecked",
        1,
        0,
    );
    let ran = home.run(["restore", "latest", "0", "--to", work.to_str().unwrap(), "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(work.join("data/big/theirs").exists() && !work.join("done").exists());
}
