//! Where the built binary is.

use std::path::PathBuf;

/// The binary under test: `TRIPHAMMER_BIN`, or the one that was built beside the running test.
///
/// # Panics
/// When it has not been built: `cargo build -p triphammer` builds it.
pub fn binary() -> PathBuf {
    if let Some(given) = std::env::var_os("TRIPHAMMER_BIN") {
        return PathBuf::from(given);
    }
    let test = std::env::current_exe().expect("a running test has a path");
    // target/<profile>/deps/<test> -> target/<profile>/triphammer
    let beside = test.ancestors().nth(2).expect("tests run from target/<profile>/deps").join("triphammer");
    assert!(beside.is_file(), "{} is not built: run `cargo build -p triphammer` first", beside.display());
    beside
}
