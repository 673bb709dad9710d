//! A network of a launch's own: a namespace that holds nothing but a loopback, which is down or up.

use std::io;

use triphammer_model::config::NetworkChoice;

/// Puts this process, which must have one thread only, and what it starts into its network.
///
/// # Errors
/// The system cannot hold it: no namespaces, or none for users without rights.
#[cfg(target_os = "linux")]
pub(super) fn enter(network: NetworkChoice) -> io::Result<()> {
    use nix::sched::{CloneFlags, unshare};

    if network == NetworkChoice::All {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() && unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return loopback(network);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    // The same person inside as outside.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    loopback(network)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enter(network: NetworkChoice) -> io::Result<()> {
    if network == NetworkChoice::All {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no network namespaces on this system"))
}

/// Lifts the loopback of a new namespace where it is wanted: it is interface 1, and down.
#[cfg(target_os = "linux")]
fn loopback(network: NetworkChoice) -> io::Result<()> {
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const NLMSG_ERROR: u16 = 2;
    const IFF_UP: u32 = 1;

    if network != NetworkChoice::Loopback {
        return Ok(());
    }
    // A header of 16 bytes and a link of 16: family, type, index, flags, and which flags are meant.
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    // Protocol 0 is the one for routes and links.
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 256];
    let (got, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // An error message with the number 0 is the acknowledgement.
    let (kind, number) = (answer.get(4..6), answer.get(16..20));
    match (kind.and_then(|k| k.try_into().ok()), number.and_then(|n| n.try_into().ok())) {
        (Some(kind), Some(number)) if got >= 20 && u16::from_ne_bytes(kind) == NLMSG_ERROR => {
            match i32::from_ne_bytes(number) {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
            }
        }
        _ => Err(io::Error::other("an answer that is none came for the loopback")),
    }
}
