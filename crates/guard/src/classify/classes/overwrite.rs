//! Overwriting what lies outside of the workspace.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::OverwriteOutside;
use super::super::options::{Options, has_flag};
use super::super::place::Spot;
use super::super::walk::is_device;

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    // What `dd` writes over is rarely a file that could be had again.
    let mut unknown = false;
    let mut outside = |path: &Arg, how: &str| {
        if let Spot::Outside(found) = call.spot(path)
            && !is_device(&path.text)
        {
            let why = format!("{how} `{found}`, which is outside of the workspace");
            verdicts.push(Verdict {
                class: OverwriteOutside,
                why,
                sure: path.is_known() && !call.state.elsewhere,
            });
        }
    };
    let operands = |short: &str, long: &[&str]| Options::read(call.args, short, long).operands;
    match call.name {
        "tee" => {
            let options = Options::read(call.args, "", &[]);
            if !options.has(&["-a", "--append"]) {
                for path in options.operands {
                    outside(path, "it replaces");
                }
            }
        }
        "dd" => {
            for path in call.args.iter().filter_map(|arg| arg.text.strip_prefix("of=")) {
                let path = Arg::new(path);
                outside(&path, "it writes over");
                unknown |= call.spot(&path) == Spot::Unknown;
            }
        }
        "shred" => {
            for path in operands("ns", &["--iterations", "--size", "--random-source"]) {
                outside(path, "it destroys");
            }
        }
        "truncate" => {
            for path in operands("sr", &["--size", "--reference"]) {
                outside(path, "it cuts");
            }
        }
        "chmod" | "chown" | "chgrp" => {
            let options = Options::read(call.args, "", &["--reference", "--from"]);
            if options.has(&["-R", "--recursive"]) {
                let skipped = usize::from(!call.args.iter().any(|arg| arg.starts_with("--reference")));
                for path in options.operands.into_iter().skip(skipped) {
                    outside(path, "it changes who may use");
                }
            }
        }
        "wipefs"
            if !has_flag(call.args, "-n")
                && !has_flag(call.args, "--no-act")
                && call.args.iter().any(Arg::is_option) =>
        {
            verdicts.push(Verdict::sure(OverwriteOutside, "it erases a file system's signature"));
        }
        "blkdiscard" => verdicts.push(Verdict::sure(OverwriteOutside, "it discards a device's blocks")),
        "cryptsetup" if call.args.iter().any(|arg| arg.starts_with("luksFormat") || arg.is("erase")) => {
            verdicts.push(Verdict::sure(OverwriteOutside, "it writes over a device"));
        }
        name if (name == "mkfs"
            || name.starts_with("mkfs.")
            || matches!(name, "mke2fs" | "mkswap" | "newfs"))
            && !call.args.is_empty() =>
        {
            match Options::read(call.args, "tLbUNFm", &["--type"]).operands.first() {
                Some(path) if matches!(call.spot(path), Spot::Inside | Spot::Temporary) => {}
                _ => verdicts.push(Verdict::sure(OverwriteOutside, "it makes an empty file system")),
            }
        }
        _ => {}
    }
    if unknown {
        let why = "only the running shell knows what `dd` writes over".to_owned();
        verdicts.push(Verdict { class: OverwriteOutside, why, sure: false });
    }
}
