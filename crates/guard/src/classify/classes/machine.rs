//! Taking the machine or its services down.

use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::Machine;
use super::super::options::has_flag;
use super::rules::{self, Rule, rule};

const RULES: &[Rule] = &[
    Rule { lets: "--user", ..rule("systemctl", "stop|disable|mask|kill|isolate") },
    rule("systemctl", "poweroff|reboot|halt|suspend|hibernate|kexec|rescue|emergency"),
    rule("service rc-service", "* stop"),
    rule("init telinit", "0|6"),
    rule("loginctl", "terminate-user|kill-user"),
];

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    rules::judge(RULES, Machine, call, verdicts);
    match call.name {
        "reboot" | "poweroff" | "halt" | "killall5" if !has_flag(call.args, "--help") => {
            verdicts.push(Verdict::sure(Machine, "it takes the machine down"));
        }
        "shutdown" if !has_flag(call.args, "-c") && !has_flag(call.args, "--help") => {
            verdicts.push(Verdict::sure(Machine, "it takes the machine down"));
        }
        "kill" => {
            // `kill -9 -1`: the first argument is the signal, `-1` behind it is every process.
            let signalled = call.args.iter().skip(1).any(|arg| arg.is("-1"));
            let names_signal =
                call.args.first().is_some_and(|arg| matches!(arg.text.as_str(), "-s" | "-n" | "-l" | "-L"));
            let by_name = names_signal && !call.args.iter().skip(2).any(|arg| arg.is("-1"));
            if signalled && !by_name {
                verdicts.push(Verdict::sure(Machine, "`-1` stands for every process there is"));
            }
        }
        _ => {}
    }
}
