//! `auto`: which of the agents that people know by name a run takes.

use std::path::PathBuf;

use triphammer_agent::{Login, Vendor};
use triphammer_model::config::VendorName;

use crate::commands::doctor::on_path;
use crate::exit::Failure;

/// The first known agent that is found on PATH and is logged in or has its key.
pub(crate) fn first() -> Result<VendorName, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut found = Vec::new();
    for name in VendorName::ALL {
        let vendor = Vendor::of(name);
        if on_path(vendor.program).is_none() {
            continue;
        }
        if vendor.login(|name| std::env::var_os(name), home.as_deref()) != Login::Nothing {
            return Ok(name);
        }
        found.push(format!(
            "{name} is there, but neither logged in nor with a key in {}",
            vendor.keys.join(", ")
        ));
    }
    let why = match found.len() {
        0 => format!("none of {} is found on PATH", VendorName::ALL.map(VendorName::as_str).join(", ")),
        _ => found.join("; "),
    };
    Err(Failure::usage(format!(
        "agent `auto`: {why}; log in to one, export its key, or install one: `triphammer doctor` says how"
    )))
}
