//! What a look keeps of one stat.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, RawMode, Stat};
use rustix::io::Errno;

use crate::tick::nanos;

/// What a look keeps of one stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
    /// Nanoseconds since 1970.
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
    /// Kind and permission bits, 16 of them in use.
    pub(crate) mode: u32,
    /// Equal facts do not prove equal content.
    pub(crate) uncertain: bool,
}

impl Facts {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the widths of these fields differ between platforms, and sizes are never negative"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            uncertain: false,
        }
        .without_directory_size()
    }

    /// The facts of `name` in `dir`, itself and not what it points at. Only what is kept is asked for.
    #[cfg(target_os = "linux")]
    pub(crate) fn at(dir: BorrowedFd<'_>, name: &CStr) -> Result<Self, Errno> {
        use rustix::fs::{StatxFlags, statx};
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::TYPE
            | StatxFlags::MODE
            | StatxFlags::SIZE
            | StatxFlags::MTIME
            | StatxFlags::CTIME
            | StatxFlags::INO;
        match statx(dir, name, flags, wanted) {
            Ok(stat) => Ok(Self {
                size: stat.stx_size,
                mtime: nanos(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
                ctime: nanos(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
                ino: stat.stx_ino,
                mode: u32::from(stat.stx_mode),
                uncertain: false,
            }
            .without_directory_size()),
            // A sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => Self::stat_at(dir, name),
            Err(error) => Err(error),
        }
    }

    /// The facts of `name` in `dir`, itself and not what it points at.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn at(dir: BorrowedFd<'_>, name: &CStr) -> Result<Self, Errno> {
        Self::stat_at(dir, name)
    }

    fn stat_at(dir: BorrowedFd<'_>, name: &CStr) -> Result<Self, Errno> {
        rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Self::of(&stat))
    }

    /// The facts of what is open, and the number of the device that it lies on.
    #[expect(clippy::unnecessary_cast, reason = "its width differs between platforms")]
    pub(crate) fn of_open(fd: BorrowedFd<'_>) -> Result<(Self, u64), Errno> {
        rustix::fs::fstat(fd).map(|stat| (Self::of(&stat), stat.st_dev as u64))
    }

    /// A directory's size says how its file system stores it, nothing more.
    fn without_directory_size(self) -> Self {
        if self.kind() == FileType::Directory { Self { size: 0, ..self } } else { self }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as RawMode)
    }

    /// Whether two looks at one path saw the same, as far as stats tell.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let plain = |f: &Self| Self { uncertain: false, ..*f };
        plain(self) == plain(other)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_calls_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "four").unwrap();
        std::os::unix::fs::symlink("/nowhere", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let fd = std::fs::File::open(dir.path()).unwrap();
        for name in [c"file", c"link", c"sub", c"."] {
            let facts = Facts::at(fd.as_fd(), name).unwrap();
            assert_eq!(facts, Facts::stat_at(fd.as_fd(), name).unwrap(), "{name:?}");
        }
        assert_eq!(Facts::of_open(fd.as_fd()).unwrap().0, Facts::at(fd.as_fd(), c".").unwrap());
        assert_eq!(Facts::at(fd.as_fd(), c"file").unwrap().size, 4);
        assert_eq!(Facts::at(fd.as_fd(), c"sub").unwrap().size, 0);
        assert_eq!(Facts::at(fd.as_fd(), c"none").unwrap_err(), Errno::NOENT);
    }
}
