//! One signal ends the attempt cleanly, the second one kills.

use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use triphammer_model::Cancel;

use crate::say;

/// What a clean end may take after the second signal.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Raises `cancel` for each SIGINT, SIGTERM or SIGHUP from now on.
pub(crate) fn watch(cancel: &Cancel) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let cancel = cancel.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            let first_urgent = cancel.is_raised() && !cancel.is_urgent();
            cancel.raise();
            if first_urgent {
                // Without it a person's last word would wait for whatever does not ask, a huge file being read say.
                let _ = std::thread::Builder::new().name("last-resort".to_owned()).spawn(last_resort);
            }
            say::talk(if cancel.is_urgent() {
                "interrupted again: ending everything now"
            } else {
                "interrupted: ending the attempt, its work is kept; once more to kill"
            });
        }
    })?;
    Ok(())
}

/// Ends the process when the clean end takes too long.
#[expect(clippy::exit, reason = "the main thread does not listen; the journal is whole at every moment")]
fn last_resort() {
    std::thread::sleep(LAST_RESORT);
    say::talk("the end takes too long and is cut short; `triphammer resume` goes on");
    // What was started ends too: its pipe closes.
    std::process::exit(130);
}
