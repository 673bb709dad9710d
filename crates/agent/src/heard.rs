//! What an agent's event stream says, collected event by event; a receipt is made of it.

use std::borrow::Cow;

use triphammer_model::money::MicroUsd;
use triphammer_model::receipt::ClaimedCommand;
use triphammer_model::{ClaimKind, ClaimedFile, Fault, FaultKind, Receipt, Tokens};

/// More of each list is counted, not kept.
const MOST: usize = 10_000;
/// Characters of the last words that are kept.
const WORDS: usize = 4_000;
/// Troubles that are named; further ones are counted.
const TROUBLES: usize = 20;
/// Bytes of one path or command that are kept.
const CLAIM: usize = 16 << 10;
/// Bytes of all paths and commands that are kept.
const CLAIMS: usize = 4 << 20;
/// Bytes of a name (session, model, stop reason) that are kept.
const NAME: usize = 500;

/// The first `most` bytes of a text, with the number of those left out.
pub(crate) fn head(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = &text[..text.floor_char_boundary(most)];
    Cow::Owned(format!("{kept} [{} bytes left out]", text.len() - kept.len()))
}

/// What an agent's stream said so far. Readers add to it; nothing in it is believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) files: Vec<ClaimedFile>,
    pub(crate) commands: Vec<ClaimedCommand>,
    /// Commands that were asked for and not run.
    refused: Vec<String>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) cost: Option<MicroUsd>,
    pub(crate) fault: Option<Fault>,
    pub(crate) session: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) last_words: Option<String>,
    /// What our own loop found out, for the attempt after this one.
    pub(crate) digest: Option<String>,
    broke_off: Option<&'static str>,
    troubles: Vec<String>,
    more_troubles: u64,
    left_out: u64,
    claimed: usize,
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
        let tool = (!tool.is_empty()).then(|| head(tool, NAME).into_owned());
        let claim = ClaimedFile { path: head(path, CLAIM).into_owned(), kind, tool };
        if !path.is_empty() && self.files.last() != Some(&claim) && self.room(self.files.len(), path.len()) {
            self.files.push(claim);
        }
    }

    /// A command that it says it ran. Says where it lies, for [`Heard::refused`].
    pub(crate) fn command(&mut self, command: &str, exit: Option<i32>) -> Option<usize> {
        let room = !command.is_empty() && self.room(self.commands.len(), command.len());
        room.then(|| {
            self.commands.push(ClaimedCommand { command: head(command, CLAIM).into_owned(), exit });
            self.commands.len() - 1
        })
    }

    /// These commands turn out not to have been run at all. They are given in rising order.
    pub(crate) fn refused(&mut self, commands: &[usize]) {
        let mut refused = Vec::new();
        for at in commands.iter().rev() {
            if *at < self.commands.len() {
                refused.push(self.commands.remove(*at).command);
            }
        }
        self.refused.extend(refused.into_iter().rev());
    }

    /// A command that it asked for and was refused.
    pub(crate) fn not_let(&mut self, command: &str) {
        if !command.is_empty() && self.room(self.refused.len(), command.len()) {
            self.refused.push(head(command, CLAIM).into_owned());
        }
    }

    /// Whether one more claim of so many bytes is kept.
    fn room(&mut self, length: usize, bytes: usize) -> bool {
        let bytes = bytes.min(CLAIM);
        let fits = length < MOST && self.claimed + bytes <= CLAIMS;
        if fits {
            self.claimed += bytes;
        } else {
            self.left_out += 1;
        }
        fits
    }

    /// The session in which it worked.
    pub(crate) fn session(&mut self, id: &str) {
        // A session that is shortened could not be continued.
        if !id.is_empty() && id.len() <= NAME && self.session.as_deref() != Some(id) {
            self.session = Some(id.to_owned());
        }
    }

    /// The model that it names.
    pub(crate) fn model(&mut self, name: &str) {
        if !name.is_empty() && self.model.as_deref() != Some(name) {
            self.model = Some(head(name, NAME).into_owned());
        }
    }

    /// Why it stopped, so far, in its own word.
    pub(crate) fn stops(&mut self, reason: &str) {
        if !reason.is_empty() && self.stop_reason.as_deref() != Some(reason) {
            self.stop_reason = Some(head(reason, NAME).into_owned());
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

    /// The total that it names, in place of what was summed up.
    pub(crate) fn paid(&mut self, dollars: f64) {
        let before = self.cost.take();
        self.pay(dollars);
        self.cost = self.cost.or(before);
    }

    /// Nothing paid for tokens that were used is what it writes when it knows no price: unknown, not free.
    pub(crate) fn unpriced(&mut self) {
        let used = self.tokens.is_some_and(|tokens| tokens.total() > 0);
        self.cost = self.cost.filter(|cost| !used || cost.micros() > 0);
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

    /// The stream is over before it came to its end. That is a fault where nothing else tells why: whoever knows how
    /// the process ended knows better.
    pub(crate) fn breaks_off(&mut self, what: &'static str) {
        self.broke_off = Some(what);
    }

    /// Whether the stream was over before it came to its end.
    #[cfg(test)]
    pub(crate) fn broke_off(&self) -> bool {
        self.broke_off.is_some()
    }

    /// It was ended from outside, so that its stream breaks off is no fault of its own.
    pub(crate) fn was_ended(&mut self) {
        self.broke_off = None;
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
    pub(crate) fn into_receipt(mut self, agent: &str) -> Receipt {
        if let Some(what) = self.broke_off {
            self.fail(FaultKind::Protocol, what);
        }
        let mut troubles = self.troubles;
        if self.more_troubles > 0 {
            troubles.push(format!("{} more of this kind", self.more_troubles));
        }
        if self.left_out > 0 {
            troubles.push(format!("{} more claims than are kept", self.left_out));
        }
        Receipt {
            schema: triphammer_model::SCHEMA,
            agent: agent.to_owned(),
            files: self.files,
            commands: self.commands,
            refused: self.refused,
            tokens: self.tokens,
            cost: self.cost,
            cost_by: None,
            fault: self.fault,
            continuation: None,
            session: self.session,
            stop_reason: self.stop_reason,
            model: self.model,
            last_words: self.last_words,
            troubles,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_bounded_and_counted() {
        let mut heard = Heard::default();
        let long = "x".repeat(CLAIM + 5);
        for _ in 0..CLAIMS / CLAIM + 3 {
            heard.command(&long, Some(1));
        }
        heard.file("a", ClaimKind::Added, "w");
        let receipt = heard.into_receipt("x");
        assert_eq!(receipt.commands.len(), CLAIMS / CLAIM);
        assert!(receipt.commands[0].command.ends_with("x [5 bytes left out]"));
        assert_eq!(receipt.files, []);
        assert_eq!(receipt.troubles, ["4 more claims than are kept"]);
    }

    #[test]
    fn a_command_that_was_not_run_is_no_claim() {
        let mut heard = Heard::default();
        let at: Vec<_> = ["a", "b", "c", "d"].iter().filter_map(|c| heard.command(c, None)).collect();
        heard.not_let("e");
        heard.refused(&[at[1], at[3], 9]);
        let kept: Vec<_> = heard.commands.iter().map(|c| c.command.as_str()).collect();
        assert_eq!(kept, ["a", "c"]);
        assert_eq!(heard.into_receipt("x").refused, ["e", "b", "d"]);
    }

    #[test]
    fn a_price_of_nothing_is_unknown_and_a_bad_total_changes_nothing() {
        let mut heard = Heard::default();
        heard.pay(0.0);
        heard.unpriced();
        assert_eq!(heard.cost, Some(MicroUsd::ZERO), "nothing used, nothing paid");
        heard.spend(Tokens { input: 1, ..Tokens::default() });
        heard.unpriced();
        assert_eq!(heard.cost, None);
        heard.paid(0.5);
        heard.paid(f64::NAN);
        assert_eq!(heard.cost, Some(MicroUsd::new(500_000)));
    }

    #[test]
    fn breaking_off_is_a_fault_only_where_nothing_else_is() {
        let mut heard = Heard::default();
        heard.breaks_off("over");
        let mut ended = heard.clone();
        ended.was_ended();
        assert_eq!(ended.into_receipt("x").fault, None);
        assert_eq!(heard.clone().into_receipt("x").fault.map(|f| f.kind), Some(FaultKind::Protocol));
        heard.fail(FaultKind::Quota, "spent");
        assert_eq!(heard.into_receipt("x").fault.map(|f| f.kind), Some(FaultKind::Quota));
    }
}
