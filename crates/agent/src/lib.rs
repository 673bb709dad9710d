//! placeholder

mod capped_log;
mod pid_file;
mod plain_file;
mod process_tree;
pub mod shim;
mod subreaper;
mod supervisor;

pub use pid_file::{LeftOverError, PID_FILE, end_left_over};
pub use subreaper::become_subreaper;
pub use supervisor::ProcessSupervisor;
