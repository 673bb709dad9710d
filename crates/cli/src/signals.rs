//! One signal ends the attempt cleanly, the second one kills.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use triphammer_model::Cancel;

use crate::say;

/// Raises `cancel` for each SIGINT, SIGTERM or SIGHUP from now on.
pub(crate) fn watch(cancel: &Cancel) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let cancel = cancel.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            cancel.raise();
            say::talk(if cancel.is_urgent() {
                "interrupted again: ending everything now"
            } else {
                "interrupted: ending the attempt, its work is kept; once more to kill"
            });
        }
    })?;
    Ok(())
}
