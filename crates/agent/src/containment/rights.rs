//! What an administrator's process is not given inside: the rights to mount, to make devices, to load code into the kernel, to
//! reach into processes outside. With them no fence would hold.

/// Their names as bubblewrap has them.
pub(super) const WITHHELD: [&str; 8] = [
    "CAP_SYS_ADMIN",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_PTRACE",
    "CAP_SYS_BOOT",
    "CAP_MKNOD",
    "CAP_DAC_READ_SEARCH",
    "CAP_BPF",
];

/// Withholds them from what this process starts. Who is no administrator has none of them.
#[cfg(target_os = "linux")]
pub(super) fn withhold() -> std::io::Result<()> {
    use rustix::thread::{CapabilitySet as Set, remove_capability_from_bounding_set as remove};
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for right in [
        Set::SYS_ADMIN,
        Set::SYS_MODULE,
        Set::SYS_RAWIO,
        Set::SYS_PTRACE,
        Set::SYS_BOOT,
        Set::MKNOD,
        Set::DAC_READ_SEARCH,
        Set::BPF,
    ] {
        match remove(right) {
            // A kernel that does not know a right gives it to nobody; who may not change the set, as in a container, got
            // it from somebody who did.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn withhold() -> std::io::Result<()> {
    Ok(())
}
