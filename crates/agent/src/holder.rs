//! The holder: a process between shim and program that lays what holds the program upon itself, and then becomes it.
//!
//! The shim stays outside. Were it inside, a program of the same user could take its channel to the supervisor out of it and
//! say how it ended. Until the holder has become the program, its standard input is a channel to the shim: what fails is said
//! there, and when it closes without a word the program runs.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::io::Errno;

use crate::shim::{self, FRAME, Frame, Request};

/// The word behind the shim's own under which the binary is a holder.
pub(crate) const MODE: &str = "hold";

/// Starts a holder with the arguments that the shim got, and waits until it has become the program. The error is what is to be
/// said to the supervisor.
pub(crate) fn start(request: &Request, args: &[OsString]) -> Result<i32, Frame> {
    let failed = |error: io::Error| Frame::ExecFailed(error.raw_os_error().unwrap_or(0));
    let (mut channel, theirs) = UnixStream::pair().map_err(failed)?;
    let binary = if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().map_err(failed)?
    };
    let mut command = Command::new(binary);
    command.arg0("triphammer").arg(shim::COMMAND).arg(MODE).args(args).current_dir(&request.dir);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    // Our copy of its end, without which the channel does not close.
    drop(command);
    let mut said = [0; FRAME];
    let mut filled = 0;
    while let Some(rest) = said.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match channel.read(rest) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
    match Frame::decode(said) {
        Some(frame) if filled == FRAME => {
            let _ = child.wait();
            Err(frame)
        }
        _ => Ok(i32::try_from(child.id()).unwrap_or(0)),
    }
}

/// Holds this process and becomes the program; returns only where that failed.
pub(crate) fn hold(request: &Request) -> ExitCode {
    let Ok(channel) = rustix::stdio::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let frame = become_program(request);
    // Where nobody listens there is nobody to tell.
    let _ = shim::say(&mut UnixStream::from(channel), frame);
    ExitCode::FAILURE
}

/// What went wrong.
fn become_program(request: &Request) -> Frame {
    let number = |error: &io::Error| error.raw_os_error().unwrap_or(0);
    let stdin = match shim::open_stdin(request) {
        Ok(stdin) => stdin,
        Err(error) => return Frame::StdinFailed(number(&error)),
    };
    if let Err((part, error)) = request.orders.enforce() {
        return Frame::NotContained(part, number(&error));
    }
    let not_started = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => Frame::ExecFailed(Errno::NOENT.raw_os_error()),
        _ => Frame::ExecFailed(number(error)),
    };
    let argv = match request.orders.program(request.program.clone(), request.args.clone(), &request.dir) {
        Ok(argv) => argv,
        Err(error) => return not_started(&error),
    };
    let mut command = Command::new(argv.first().unwrap_or(&request.program));
    not_started(&command.args(argv.iter().skip(1)).stdin(Stdio::from(stdin)).exec())
}
