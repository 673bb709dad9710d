//! What the system calls of a walk and of a re-stat cost by themselves, on one thread: no program that makes them all
//! can be faster. They are timed on the tree itself, since most of a stat is the kernel's search for the name, and by the
//! processor's time, since a busy machine would lengthen the wall's.

use std::ffi::CString;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};
use serde_json::{Value, json};

use crate::Result;
use crate::stopwatch::{cpu_of_thread, ms};

/// How often what needs no tree is tried.
const TRIES: u32 = 10_000;

/// As large as a walk's.
const BUFFER: usize = 64 << 10;

/// A call, and what timing it has added up to.
#[derive(Clone, Copy, Default)]
struct Call {
    time: Duration,
    count: u32,
}

impl Call {
    /// Makes `count` calls.
    fn time<T>(&mut self, count: usize, calls: impl FnOnce() -> T) -> T {
        let began = cpu_of_thread();
        let done = calls();
        self.time += cpu_of_thread().saturating_sub(began);
        self.count += u32::try_from(count).unwrap_or(u32::MAX);
        done
    }

    /// Nanoseconds of one call, without what reading the clock takes.
    fn ns(&self, clock: Duration) -> f64 {
        self.time.saturating_sub(clock).as_secs_f64() * 1e9 / f64::from(self.count.max(1))
    }
}

/// A directory's content.
#[derive(Default)]
struct Directory {
    files: Vec<CString>,
    directories: Vec<(CString, Directory)>,
}

struct Floor {
    buffer: Vec<MaybeUninit<u8>>,
    open: Call,
    getdents: Call,
    end: Call,
    close: Call,
    stat: Call,
    path_open: Call,
    path_stat: Call,
    path_close: Call,
}

/// Times all calls once.
pub(crate) fn measure(tree: &Path) -> Result<Value> {
    let mut empty = Call::default();
    empty.time(TRIES as usize, || {
        for _ in 0..TRIES {
            black_box(rustix::process::getppid());
        }
    });
    let mut clock = Call::default();
    clock.time(TRIES as usize, || {
        for _ in 0..TRIES {
            black_box(cpu_of_thread());
        }
    });
    let clock = Duration::from_secs_f64(clock.ns(Duration::ZERO) / 1e9);

    let zero = Call::default();
    let mut floor = Floor {
        buffer: vec![MaybeUninit::uninit(); BUFFER],
        open: zero,
        getdents: zero,
        end: zero,
        close: zero,
        stat: zero,
        path_open: zero,
        path_stat: zero,
        path_close: zero,
    };
    let parent = openat(CWD, tree.parent().unwrap_or(Path::new("/")), walk_flags(), Mode::empty())?;
    let name = CString::new(tree.file_name().ok_or("the tree has no name")?.as_encoded_bytes())?;
    let top = floor.walk(parent.as_fd(), &name)?;
    floor.restat(parent.as_fd(), &name, &top)?;

    let directories = floor.open.count;
    // Around each call of a directory, and around all its files together, the clock was read once.
    let all = |calls: &[&Call]| {
        let time: Duration = calls.iter().map(|call| call.time).sum();
        let reads = directories * u32::try_from(calls.len()).unwrap_or(0);
        ms(time.saturating_sub(clock * reads))
    };
    let each = |call: &Call| call.ns(clock * directories);
    Ok(json!({
        "walk_ms": all(&[&floor.open, &floor.getdents, &floor.end, &floor.close, &floor.stat]),
        "restat_ms": all(&[&floor.path_open, &floor.path_stat, &floor.path_close]),
        "directories": directories,
        "files": floor.stat.count,
        "null_ns": empty.ns(Duration::ZERO),
        "statx_ns": each(&floor.stat),
        "open_ns": each(&floor.open),
        "getdents_ns": each(&floor.getdents),
        "getdents_end_ns": each(&floor.end),
        "close_ns": each(&floor.close),
        "path_open_ns": each(&floor.path_open),
        "path_close_ns": each(&floor.path_close),
    }))
}

fn walk_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn stat(dir: &OwnedFd, name: &CString) -> rustix::io::Result<()> {
    let wanted = StatxFlags::SIZE | StatxFlags::MTIME | StatxFlags::CTIME | StatxFlags::INO;
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    black_box(statx(dir, name.as_c_str(), flags, wanted)?);
    Ok(())
}

impl Floor {
    fn walk(&mut self, parent: BorrowedFd<'_>, name: &CString) -> Result<Directory> {
        let fd = self.open.time(1, || openat(parent, name.as_c_str(), walk_flags(), Mode::empty()))?;
        let mut found = Directory::default();
        let mut below = Vec::new();
        {
            let mut entries = RawDir::new(&fd, &mut self.buffer);
            // The first entry brings a buffer full of them.
            let mut entry = self.getdents.time(1, || entries.next());
            while let Some(next) = entry {
                let next = next?;
                let name = next.file_name();
                match next.file_type() {
                    FileType::Directory if [&b"."[..], b"..", b".git"].contains(&name.to_bytes()) => {}
                    FileType::Directory => below.push(name.to_owned()),
                    _ => found.files.push(name.to_owned()),
                }
                entry = entries.next();
            }
        }
        let mut entries = RawDir::new(&fd, &mut self.buffer);
        if self.end.time(1, || entries.next().is_some()) {
            return Err("a directory does not end".into());
        }
        let files = &found.files;
        self.stat.time(files.len(), || files.iter().try_for_each(|file| stat(&fd, file)))?;
        for name in below {
            let directory = self.walk(fd.as_fd(), &name)?;
            found.directories.push((name, directory));
        }
        self.close.time(1, || drop(fd));
        Ok(found)
    }

    fn restat(&mut self, parent: BorrowedFd<'_>, name: &CString, known: &Directory) -> Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = self.path_open.time(1, || openat(parent, name.as_c_str(), flags, Mode::empty()))?;
        let itself = CString::default();
        let files = std::iter::once(&itself).chain(&known.files);
        self.path_stat
            .time(known.files.len() + 1, || files.into_iter().try_for_each(|file| stat(&fd, file)))?;
        for (name, directory) in &known.directories {
            self.restat(fd.as_fd(), name, directory)?;
        }
        self.path_close.time(1, || drop(fd));
        Ok(())
    }
}
