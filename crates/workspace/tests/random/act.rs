//! Carrying out an act, as any program would.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, RenameFlags, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::arena::Arena;
use crate::mapped::{Mapped, last_byte};
use crate::plan::{Act, Verb};

/// Modification times of before, by path.
pub(crate) type Times = BTreeMap<Vec<u8>, i64>;

/// Where links lead.
const TARGETS: [&str; 6] = ["a", "b", "d", "nowhere", "d/a", "."];

/// Permissions of files. The owner can always read: what nobody can read is a bound, and has tests of its own.
const MODES: [u32; 6] = [0o644, 0o600, 0o755, 0o444, 0o640, 0o4755];

/// Does it.
///
/// # Errors
/// What the system says when it cannot be done; what was done of it by then stays done.
pub(crate) fn perform(arena: &Arena, act: &Act, times: &Times) -> io::Result<()> {
    let (at, to) = (&arena.at(&act.at.0), &arena.at(&act.to.0));
    let dice = usize::from(act.dice);
    let beside = &arena.outside("beside");
    act.before.take();
    match act.verb {
        Verb::Create => {
            if let Some(parent) = at.parent() {
                fs::create_dir_all(parent)?;
            }
            File::create_new(at)?.write_all(&content(dice))
        }
        Verb::WriteSameSize => write_same_size(at),
        Verb::WriteSameBytes => {
            let bytes = fs::read(at)?;
            open(at)?.write_all(&bytes)
        }
        Verb::WriteAnew => fs::write(at, content(dice)),
        Verb::Append => OpenOptions::new().append(true).open(at)?.write_all(b"+"),
        Verb::Truncate => open(at)?.set_len(dice as u64 % 4),
        Verb::TouchBack => {
            // Known from before, if it can be: a stat in between could have the kernel stamp more finely.
            let old = times.get(&act.at.0).map_or_else(|| mtime(at), |time| Ok(*time))?;
            write_same_size(at)?;
            set_mtime(at, old)
        }
        Verb::Touch => open(at)?.set_modified(std::time::SystemTime::now()),
        Verb::TouchFar => set_mtime(at, if dice % 2 == 0 { 0 } else { 4_000_000_000_000_000_000 }),
        Verb::RenameOver => {
            at.symlink_metadata()?;
            fs::write(beside, content(dice))?;
            fs::rename(beside, at)
        }
        Verb::RenameOverAlike => {
            let bytes = fs::read(at)?;
            let old = mtime(at)?;
            fs::write(beside, bytes)?;
            write_same_size(beside)?;
            set_mtime(beside, old)?;
            fs::rename(beside, at)
        }
        Verb::Swap | Verb::SwapDirectories => {
            Ok(rustix::fs::renameat_with(CWD, at, CWD, to, RenameFlags::EXCHANGE)?)
        }
        Verb::HardLink => fs::hard_link(at, to),
        Verb::HardLinkOutside => {
            let name = arena.outside("linked");
            let _ = fs::remove_file(&name);
            fs::hard_link(at, name)
        }
        Verb::WriteOutside => write_same_size(&arena.outside("linked")),
        Verb::Chmod => chmod(at, MODES[dice % MODES.len()]),
        Verb::Symlink => symlink(TARGETS[dice % TARGETS.len()], at),
        Verb::Retarget => {
            fs::read_link(at)?;
            if dice % 2 == 0 {
                fs::remove_file(at)?;
                return symlink(TARGETS[dice % TARGETS.len()], at);
            }
            symlink(TARGETS[dice % TARGETS.len()], beside)?;
            fs::rename(beside, at)
        }
        Verb::Delete => fs::remove_file(at),
        Verb::Rename | Verb::RenameDirectory => fs::rename(at, to),
        Verb::StoreMapped | Verb::LoadAndStoreMapped => {
            let (last, byte) = last_byte(at)?;
            let mut mapped = Mapped::open(at)?;
            if act.verb == Verb::LoadAndStoreMapped {
                mapped.load(last);
            }
            mapped.store(last, byte ^ 1);
            if dice % 4 == 0 { mapped.flush() } else { Ok(()) }
        }
        Verb::MakeDirectory => fs::create_dir_all(at),
        Verb::RemoveDirectory => fs::remove_dir(at),
        Verb::RemoveAll => fs::remove_dir_all(at),
        Verb::RebuildDirectory => {
            let bytes: Vec<_> = fs::read_dir(at)?
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                .map(|entry| (entry.path(), fs::read(entry.path()).unwrap_or_default()))
                .collect();
            fs::remove_dir_all(at)?;
            fs::create_dir(at)?;
            bytes.into_iter().try_for_each(|(path, bytes)| fs::write(path, bytes))
        }
        Verb::FileToDirectory => {
            fs::remove_file(at)?;
            fs::create_dir(at)?;
            fs::write(at.join("b"), content(dice))
        }
        Verb::DirectoryToFile => {
            fs::remove_dir_all(at)?;
            fs::write(at, content(dice))
        }
        Verb::ChmodDirectory => {
            if !at.symlink_metadata()?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            chmod(at, [0o755, 0o700, 0o775][dice % 3])
        }
        Verb::Nest => {
            let git = at.join(".git");
            if dice % 2 == 0 {
                return fs::write(git, "gitdir: ../elsewhere\n");
            }
            fs::create_dir(&git)?;
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n")
        }
        Verb::WriteInNested => fs::write(at.join(".git/HEAD"), content(dice)),
    }
}

/// Few contents, most of them of one size: equal bytes in two places happen, and so do equal sizes.
fn content(dice: usize) -> Vec<u8> {
    let letter = b"abcdefgh"[dice % 8];
    vec![letter; [4, 4, 4, 4, 4, 0, 1, 9_000][dice / 8 % 8]]
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Other bytes in place of the first ones, and nothing of the rest.
fn write_same_size(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut bytes = [0; 2];
    let count = file.read_at(&mut bytes, 0)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes = bytes.map(|byte| byte ^ 1);
    file.write_all_at(&bytes[..count], 0)
}

fn mtime(path: &Path) -> io::Result<i64> {
    let found = path.symlink_metadata()?;
    Ok(found.mtime() * 1_000_000_000 + found.mtime_nsec())
}

fn set_mtime(path: &Path, nanos: i64) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: nanos.div_euclid(1_000_000_000),
            tv_nsec: nanos.rem_euclid(1_000_000_000),
        },
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
