//! A cold build of the release binary, and how many crates are in it.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::json;

use super::{Figures, measure};
use crate::house::cargo;

/// The core's aims, on two cores.
const AIM_CRATES: usize = 300;
const AIM_S: f64 = 360.0;

pub(crate) fn bench(mut figures: Figures) -> Result<(), String> {
    let tree = |edges| {
        let words = ["tree", "--locked", "--package", "triphammer", "--edges", edges, "--prefix", "none"];
        let output = cargo(words).output().map_err(|e| format!("starting `cargo tree`: {e}"))?;
        if !output.status.success() {
            return Err(format!("`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(crates(&String::from_utf8_lossy(&output.stdout)))
    };
    let (normal, all) = (tree("normal")?, tree("normal,build")?);
    figures.put(
        "crates",
        "crates",
        json!({ "normal": normal, "with_build": all, "aim": AIM_CRATES }),
        &format!(
            "{normal} in the binary's normal tree (aim {AIM_CRATES}), {all} with what build scripts need"
        ),
    );

    // Downloads are no part of a build.
    crate::steps::run(cargo(["fetch", "--locked", "--quiet"]))?;
    let target = std::env::temp_dir().join(format!("triphammer-cold-{}", std::process::id()));
    let mut command = cargo(["build", "--release", "--locked", "--quiet", "--package", "triphammer"]);
    command.env("CARGO_TARGET_DIR", &target).env_remove("CARGO_BUILD_TARGET").stdin(Stdio::null());
    let built = measure::run(&mut command);
    let size = target.join("release/triphammer").metadata().map(|binary| binary.len());
    if let Err(e) = std::fs::remove_dir_all(&target) {
        eprintln!("{} is left over: {e}", target.display());
    }
    let built = built?;
    if !built.status.success() {
        return Err(format!("the cold build failed ({})", built.status));
    }
    let (wall, cpu) = (built.wall.as_secs_f64(), built.cpu.as_secs_f64());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mib = size.map_or(f64::NAN, |bytes| super::real(bytes) / f64::from(1 << 20));
    figures.put(
        "cold_build",
        "cold build",
        json!({ "wall_s": wall, "cpu_s": cpu, "aim_s": AIM_S, "cores": cores, "binary_mib": mib }),
        &format!(
            "{wall:.0} s on {cores} cores (aim {AIM_S} on 2), {cpu:.0} s of CPU; the binary has {mib:.1} MiB"
        ),
    );
    figures.end();
    Ok(())
}

/// Different crates in what `cargo tree` printed: a name and a version each, however often they appear.
fn crates(tree: &str) -> usize {
    let named = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    tree.lines().filter_map(named).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_crate_once() {
        let tree = "triphammer v0.1.0 (/house/crates/cli)\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\n\
                    serde v1.0.0 (*)\nserde v2.0.0\n\n";
        assert_eq!(crates(tree), 4);
    }
}
