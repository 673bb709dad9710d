//! For tests only: homes in temporary folders, the built binary in a clean environment, and what it left on disk.
//!
//! # Theory of operation
//!
//! A [`TestHome`] is a folder with a `triphammer.toml` and a state folder of its own. [`TestHome::run`] starts the real
//! binary with nothing of the developer's environment but `PATH`, the toolchain's folders and a private `HOME`, so that
//! a test never reads anybody's configuration or keys. [`Ran`] holds what came back; [`RunFiles`] reads a run directory.
//! A [`FakeModel`] is the service that a real agent is pointed at.

mod binary;
mod fake_model;
mod home;
mod process;
mod run_files;

pub use binary::binary;
pub use fake_model::{FAKE_MODEL, Failure, FakeModel, ModelRequest, Script, Step};
pub use home::{Ran, TestHome, files_below};
pub use process::{is_alive, wait_until};
pub use run_files::RunFiles;
