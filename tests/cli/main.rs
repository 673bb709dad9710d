//! The binary's contract: outcomes, exit codes, files, and a person's part.
