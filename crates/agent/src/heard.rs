//! What an agent's event stream says, collected event by event; a receipt is made of it.

use triphammer_model::money::MicroUsd;
use triphammer_model::receipt::ClaimedCommand;
use triphammer_model::{ClaimKind, ClaimedFile, Fault, FaultKind, Receipt, Tokens};

/// More of each list is counted, not kept.
const MOST: usize = 10_000;
/// Characters of the last words that are kept.
const WORDS: usize = 4_000;
/// Troubles that are named; further ones are counted.
const TROUBLES: usize = 20;

/// What an agent's stream said so far. Readers add to it; nothing in it is believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) files: Vec<ClaimedFile>,
    pub(crate) commands: Vec<ClaimedCommand>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) cost: Option<MicroUsd>,
    pub(crate) fault: Option<Fault>,
    pub(crate) session: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) last_words: Option<String>,
    troubles: Vec<String>,
    more_troubles: u64,
    left_out: u64,
    events: u64,
}

impl Heard {
    /// Takes note of one more event, of whatever kind.
    pub(crate) fn event(&mut self) {
        self.events += 1;
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// A file that it says it touched. The same claim twice is one.
    pub(crate) fn file(&mut self, path: &str, kind: ClaimKind, tool: &str) {
        let claim =
            ClaimedFile { path: path.to_owned(), kind, tool: (!tool.is_empty()).then(|| tool.to_owned()) };
        if self.files.len() >= MOST {
            self.left_out += 1;
        } else if self.files.last() != Some(&claim) {
            self.files.push(claim);
        }
    }

    /// A command that it says it ran.
    pub(crate) fn command(&mut self, command: &str, exit: Option<i32>) {
        if self.commands.len() >= MOST {
            self.left_out += 1;
        } else {
            self.commands.push(ClaimedCommand { command: command.to_owned(), exit });
        }
    }

    /// Tokens of one more step.
    pub(crate) fn spend(&mut self, step: Tokens) {
        let sum = self.tokens.get_or_insert_default();
        sum.input = sum.input.saturating_add(step.input);
        sum.cached = sum.cached.saturating_add(step.cached);
        sum.output = sum.output.saturating_add(step.output);
    }

    /// Money of one more step, in dollars as agents write it. What is no amount is a trouble, never zero.
    pub(crate) fn pay(&mut self, dollars: f64) {
        match MicroUsd::from_dollars(dollars) {
            Some(step) => {
                let sum = self.cost.map_or(0, MicroUsd::micros).saturating_add(step.micros());
                self.cost = Some(MicroUsd::new(sum));
            }
            None => self.trouble(format!("a cost of {dollars} dollars is no amount")),
        }
    }

    /// The text that it ends with, so far.
    pub(crate) fn says(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            let over = text.chars().count().saturating_sub(WORDS);
            let kept: String = text.chars().skip(over).collect();
            let cut = format!("[{over} characters left out] {kept}");
            self.last_words = Some(if over == 0 { kept } else { cut });
        }
    }

    /// Something went wrong on its side. The first fault counts: what follows is its consequence.
    pub(crate) fn fail(&mut self, kind: FaultKind, message: &str) {
        self.fail_until(kind, message, None);
    }

    /// The same with the time at which a limit resets.
    pub(crate) fn fail_until(&mut self, kind: FaultKind, message: &str, reset_at: Option<jiff::Timestamp>) {
        let message = (!message.is_empty()).then(|| message.chars().take(1_000).collect());
        self.fault.get_or_insert(Fault { kind, reset_at, message });
    }

    /// It went on after a fault, so that was none: a retry that succeeded.
    pub(crate) fn recovered(&mut self) {
        self.fault = None;
    }

    /// Something in the stream that could not be read.
    pub(crate) fn trouble(&mut self, what: String) {
        if self.troubles.len() < TROUBLES {
            self.troubles.push(what);
        } else {
            self.more_troubles += 1;
        }
    }

    /// The receipt of the agent `agent`.
    pub(crate) fn into_receipt(self, agent: &str) -> Receipt {
        let mut troubles = self.troubles;
        if self.more_troubles > 0 {
            troubles.push(format!("{} more of this kind", self.more_troubles));
        }
        if self.left_out > 0 {
            troubles.push(format!("{} more claims than the {MOST} that are kept", self.left_out));
        }
        Receipt {
            schema: triphammer_model::SCHEMA,
            agent: agent.to_owned(),
            files: self.files,
            commands: self.commands,
            tokens: self.tokens,
            cost: self.cost,
            fault: self.fault,
            session: self.session,
            stop_reason: self.stop_reason,
            model: self.model,
            last_words: self.last_words,
            troubles,
        }
    }
}
