//! What an attempt costs beyond its re-stat: reading what changed, keeping the tree, and later the difference.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Root, Snapshot, Store};

use crate::Result;
use crate::stopwatch::{Took, time};

/// Longer than the clock that stamps files takes to advance: what was written then is not waited for by a look.
const SETTLED: Duration = Duration::from_millis(25);

/// Prints, for each round, what re-stating an unchanged tree takes, and what a look, a tree and a difference take
/// after so many files have changed.
pub(crate) fn run(tree: &Path, store: &Path, rounds: &str, changed: &str) -> Result<()> {
    let (rounds, changed): (u32, usize) = (rounds.parse()?, changed.parse()?);
    let eyes = Eyes::new(Root::open(tree)?, crate::plain_zones()?, Store::open(store)?);
    let run = RunId::new("20261130-170601-bench-0000");
    let mut last = eyes.look(None)?;
    let mut kept = eyes.keep(&last, &run, "0")?;
    let paths: Vec<Vec<u8>> = last.snapshot().iter().map(|entry| entry.path()).collect();
    let step = (paths.len() / changed.max(1)).max(1);
    let paths: Vec<Vec<u8>> = paths.into_iter().step_by(step).take(changed).collect();
    if paths.len() != changed {
        return Err(format!("{} files are fewer than {changed}", paths.len()).into());
    }
    for round in 0..rounds {
        let (again, restat) =
            time(|| Snapshot::deliverable_since(eyes.root(), eyes.zones(), last.snapshot()));
        drop(again?);
        flip(tree, &paths)?;
        std::thread::sleep(SETTLED);
        let (now, look) = time(|| eyes.look(Some(&last)));
        let now = now?;
        let name = format!("{:03}", round + 1);
        let (tree, keep) = time(|| eyes.keep(&now, &run, &name));
        let tree = tree?;
        let (differing, diff) = time(|| eyes.store().diff(&kept.tree, &tree.tree));
        let differing = differing?.len();
        if differing != changed {
            return Err(format!("{differing} files differ, {changed} were changed").into());
        }
        let both = |took: Took| json!({ "wall_ms": took.wall, "cpu_ms": took.cpu });
        let line = json!({
            "restat": both(restat), "look": both(look), "keep": both(keep), "diff": both(diff),
        });
        println!("{line}");
        (last, kept) = (now, tree);
    }
    // Everything as it was.
    if rounds % 2 == 1 { flip(tree, &paths) } else { Ok(()) }
}

/// Changes the case of the first letter of each file.
fn flip(tree: &Path, paths: &[Vec<u8>]) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    for path in paths {
        let path = tree.join(std::ffi::OsStr::from_bytes(path));
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut letter = [0];
        file.read_exact_at(&mut letter, 0)?;
        file.write_all_at(&[letter[0] ^ 0x20], 0)?;
    }
    Ok(())
}
