//! The classes of what cannot be undone: one file each.

pub(super) mod data;
pub(super) mod deletion;
mod deploy;
pub(super) mod git;
mod lost_work;
mod machine;
mod overwrite;
mod publish;
mod push;
mod rules;
mod sql;

use super::call::{Call, Verdict};

/// What the classes say of a call.
pub(super) fn judge(call: &Call<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    push::judge(call, &mut verdicts);
    lost_work::judge(call, &mut verdicts);
    deletion::judge(call, &mut verdicts);
    overwrite::judge(call, &mut verdicts);
    publish::judge(call, &mut verdicts);
    deploy::judge(call, &mut verdicts);
    data::judge(call, &mut verdicts);
    machine::judge(call, &mut verdicts);
    verdicts
}
