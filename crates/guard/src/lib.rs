//! What must not be undone: shell commands, parsed and classified before they run.
//!
//! # Theory of operation
//!
//! An agent asks whether it may run a line. [`parse`](parse::parse) reads the line as a shell would: words with their
//! quotes and expansions, simple commands, pipes, lists, groups, functions, heredocs, and the commands within
//! substitutions. [`classify()`] walks through it in the order in which a shell would run it. It follows `cd`,
//! variables and loops where they are literal, takes off what stands around a program (`sudo`, `env`, `xargs`,
//! `sh -c`, `ssh host`), and asks the classes about each program with its own arguments. So a word counts for what it
//! is in its place: text that is quoted, printed, committed or written to a file is data, and an option of one command
//! is none of another's.
//!
//! The answer is a [`Judgement`]: what cannot be undone, each with its class and reason, and what could not be judged.
//! Both are told apart because they call for different acts: [`Judgement::refusal`] says no to the first, and of the
//! second only to what was given up on; any other [`Opaque`] part (a script file, a download that goes straight into a
//! shell) is for the caller to decide. A target that only the
//! running shell knows (`rm -rf "$DIR"`) is refused, marked as not sure.
//!
//! Nothing here reads a file, a clock or the environment; paths are compared as text, within the [`Place`] that the
//! caller describes. Time is linear in the length of the line, nesting and length are bounded, and a bound that is
//! reached is an opaque part of its own.
//!
//! ```
//! use triphammer_guard::{Irreversible, Place, classify};
//!
//! let place = Place::new("/w", None, "/tmp");
//! let judgement = classify("cd build && git -C .. push -uf origin main", &place);
//! assert!(judgement.refused());
//! assert_eq!(judgement.findings[0].class, Irreversible::ForcePush);
//! assert!(!classify("git commit -m 'no push --force, no rm -rf /'", &place).refused());
//! ```
//!
//! # What it does not see
//!
//! Scripts on disk (`./release.sh`, `make deploy`, `npm run deploy`), aliases and functions that the shell brings
//! along, links in paths, programs in other languages, text that is encoded, options within a variable whose value is
//! not in the line, copies and moves over files outside (`cp x /etc/x`), single files deleted outside (`rm /etc/x`),
//! and tools that it does not know. A guard refuses mistakes; it is no fence against intent.

pub mod parse;
pub mod tools;

mod classify;

pub use classify::{
    Allow, AllowError, Found, Irreversible, Judgement, LISTED, Opaque, Place, Refusal, What, classify,
    classify_allowing,
};
