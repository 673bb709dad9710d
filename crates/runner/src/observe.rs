//! Carries out observe: what moved, what the claims are worth, the trees, the protected bytes.

use std::time::{Duration, Instant, SystemTime};

use triphammer_gate::Offence;
use triphammer_model::movement::Infrastructure;
use triphammer_model::{Attempt, Bounds, ClaimedFile, Content, Event, Movement, Observed, Receipt, TreeId};
use triphammer_workspace::{
    ClaimScene, Look, Window, fingerprint_file, moved, moved_directories, moved_infrastructure, stand,
};

use crate::attempt::{INFRASTRUCTURE_FILE, before_name};
use crate::error::{Doing, Trouble};
use crate::notice::Notice;
use crate::run::{Guarded, Run};

/// Characters of an idle agent's last words that are told at once; its receipt holds more.
const LAST_WORDS: usize = 300;

/// The file of an attempt that keeps what it did to protected paths.
pub(crate) const GUARDED: &str = "guarded.json";

impl Run<'_> {
    /// Sees what moved, holds the claims against it, keeps the trees, puts protected bytes back.
    pub(crate) fn observe(&mut self, attempt: Attempt, unverifiable: bool) -> Result<Vec<Event>, Trouble> {
        let dir = self.dir.attempt(attempt);
        let before = match self.sight.before.take() {
            Some(before) => before,
            None => self.remember_before(attempt)?,
        };
        let after = self.look_since(&before)?;
        let observed = moved(&before, &after);
        let infrastructure_now = self.look_at_infrastructure(&after)?;
        let infrastructure = self.infrastructure_moved(&observed, &infrastructure_now);
        let infrastructure_bounds = infrastructure_now.bounds();
        let receipt = self.receipt(attempt)?;
        let claimed = self.stand(attempt, &before, &observed, &receipt.files);
        let mut movement = Movement {
            schema: 1,
            observed,
            claimed,
            touched: Vec::new(),
            infrastructure,
            bounds: with_infrastructure(after.bounds(), infrastructure_bounds),
        };
        let directories = moved_directories(&before, &after);
        if movement.observed.is_empty() && directories > 0 {
            movement.bounds.notes.push(format!(
                "{directories} directories were made, removed or given other modes; without a file that is no movement"
            ));
        }
        movement.settle(&self.settings.policy, unverifiable);
        for o in movement.observed.iter().filter(|o| o.content != Content::Same) {
            self.sight.moved_by_agents.insert(o.path.clone());
        }

        self.keep_infrastructure(&infrastructure_now, &attempt.dir_name())?;
        self.sight.infrastructure = Some(infrastructure_now);
        let id = self.dir.id().clone();
        let left = self
            .eyes
            .keep(&after, &id, &format!("{}-left", attempt.dir_name()))
            .doing("keeping the tree as the agent left it")?;
        let judged = self.put_protected_back(attempt, after)?;
        let kept = self.eyes.keep(&judged, &id, &attempt.dir_name()).doing("keeping the tree as judged")?;
        if !movement.observed.is_empty() {
            self.write_diff(attempt, &left.tree)?;
        }
        self.dir.write_json(dir.join("movement.json"), &movement).doing("writing the movement")?;
        if movement.touched.is_empty() {
            self.briefing.notes.push(format!("Attempt {attempt} changed nothing in the deliverable."));
            if let Some(words) = &receipt.last_words {
                // An agent that did nothing may have asked something.
                self.watcher.notice(&Notice::Remark(&format!("the agent's last words: {}", end_of(words))));
            }
        }
        let event = Event::Observed {
            attempt,
            movement: movement.facts(),
            left: left.tree,
            tree: kept.tree,
            offences: u32::try_from(self.bench.guarded.offences.len()).unwrap_or(u32::MAX),
            moved_since_start: self.moved_since_start(&judged),
        };
        self.sight.latest = judged;
        Ok(vec![event])
    }

    fn look_since(&mut self, earlier: &Look) -> Result<Look, Trouble> {
        let begun = Instant::now();
        let look = self.eyes.look(Some(earlier)).doing("looking at the workspace")?;
        self.timings.tick_waits += look.waited();
        self.timings.looks += begun.elapsed();
        Ok(look)
    }

    /// Looks at hidden tool folders beside a look at the deliverable.
    pub(crate) fn look_at_infrastructure(&mut self, beside: &Look) -> Result<Look, Trouble> {
        let begun = Instant::now();
        let last = self.sight.infrastructure.as_ref();
        let look = self.eyes.infrastructure(beside, last).doing("looking at hidden tool folders")?;
        self.timings.tick_waits += look.waited();
        self.timings.looks += begun.elapsed();
        Ok(look)
    }

    /// Keeps what hidden tool folders hold: gates that run again may need it.
    pub(crate) fn keep_infrastructure(&self, look: &Look, name: &str) -> Result<(), Trouble> {
        if look.is_empty() {
            return Ok(());
        }
        let kept = self.eyes.keep_infrastructure(look, self.dir.id(), name);
        kept.doing("keeping hidden tool folders").map(drop)
    }

    /// What infrastructure did counts where the deliverable did not move.
    fn infrastructure_moved(&self, observed: &[Observed], now: &Look) -> Option<Infrastructure> {
        let still = observed.iter().all(|o| o.content == Content::Same);
        let earlier = self.sight.infrastructure.as_ref().filter(|_| still)?;
        Some(moved_infrastructure(earlier, now))
    }

    /// What the receipt claims; an attempt whose process died before it wrote one claims nothing.
    fn receipt(&self, attempt: Attempt) -> Result<Receipt, Trouble> {
        match self.dir.read_json::<Receipt>(self.dir.attempt(attempt).join("receipt.json")) {
            Ok(receipt) => Ok(receipt),
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => Ok(Receipt::default()),
            Err(error) => Err(Trouble::new("reading the receipt", &error)),
        }
    }

    fn stand(
        &self,
        attempt: Attempt,
        before: &Look,
        observed: &[Observed],
        files: &[ClaimedFile],
    ) -> Vec<triphammer_model::Claim> {
        let (start, end) = self.window(attempt);
        let scene = ClaimScene {
            root: self.eyes.root(),
            zones: self.eyes.zones(),
            observed,
            before: before.snapshot(),
            infrastructure_before: self.sight.infrastructure.as_ref().map(Look::snapshot),
            window: Window::new(start, end),
        };
        stand(&scene, files)
    }

    /// Restores protected files that the agent changed and looks again where there were any.
    fn put_protected_back(&mut self, attempt: Attempt, after: Look) -> Result<Look, Trouble> {
        let checked = self.protected.check(&after).doing("checking protected files")?;
        let offences = checked.offences.iter().map(|o| Offence { path: o.path.clone(), change: o.change });
        self.bench.guarded = Guarded { offences: offences.collect(), additions: checked.additions };
        self.dir
            .write_json(self.dir.attempt(attempt).join(GUARDED), &self.bench.guarded)
            .doing("writing what was done to protected files")?;
        if checked.offences.is_empty() {
            return Ok(after);
        }
        let stuck =
            self.protected.restore(&self.eyes, &checked.offences).doing("putting protected files back")?;
        for (path, why) in stuck {
            self.watcher.notice(&Notice::Remark(&format!("could not put back `{path}`: {why}")));
        }
        self.look_since(&after)
    }

    fn write_diff(&self, attempt: Attempt, left: &TreeId) -> Result<(), Trouble> {
        let store = self.eyes.store();
        let from =
            store.kept(self.dir.id(), &before_name(attempt)).doing("finding the tree before the attempt")?;
        let to = self.dir.attempt(attempt).join("diff.patch");
        let cap = self.settings.log_cap;
        store
            .diff_text(&from.tree, left, |text| self.dir.take_in(to, text, cap))
            .doing("comparing the attempt's trees")?
            .doing("writing the attempt's diff")
    }

    /// Whether anything that an agent moved differs from the start. What gates wrote does not count.
    pub(crate) fn moved_since_start(&self, now: &Look) -> bool {
        moved(&self.sight.start, now)
            .iter()
            .any(|o| o.content != Content::Same && self.sight.moved_by_agents.contains(&o.path))
    }

    /// When the agent worked, by the journal.
    fn window(&self, attempt: Attempt) -> (SystemTime, SystemTime) {
        let mut start = None;
        let mut end = None;
        for line in self.journal.lines() {
            match &line.event {
                Event::Looked { attempt: n } if *n == attempt => (start, end) = (Some(line.at), None),
                Event::AgentEnded { attempt: n, .. } if *n == attempt => end = Some(line.at),
                _ => {}
            }
        }
        let time = |at: Option<jiff::Timestamp>| {
            let nanos = at.and_then(|at| u64::try_from(at.as_nanosecond()).ok());
            nanos.map_or_else(SystemTime::now, |n| SystemTime::UNIX_EPOCH + Duration::from_nanos(n))
        };
        (time(start), time(end))
    }

    /// After another process died while the agent worked: what it had written down before.
    pub(crate) fn remember_before(&mut self, attempt: Attempt) -> Result<Look, Trouble> {
        let snapshot = fingerprint_file::read(&self.dir.attempt(attempt).join("before.fp"))
            .doing("reading the fingerprint before the attempt")?;
        let kept = self
            .eyes
            .store()
            .kept(self.dir.id(), &before_name(attempt))
            .doing("finding the tree before the attempt")?;
        let infrastructure = fingerprint_file::read(&self.dir.live().join(INFRASTRUCTURE_FILE));
        self.sight.infrastructure = infrastructure.ok().map(Look::by_stats);
        self.eyes.remember(snapshot, &kept).doing("remembering the tree before the attempt")
    }
}

/// What could not be looked at, in the deliverable and in infrastructure.
fn with_infrastructure(deliverable: &Bounds, infrastructure: &Bounds) -> Bounds {
    let mut bounds = deliverable.clone();
    bounds.unreadable_count += infrastructure.unreadable_count;
    bounds.unreadable.extend(infrastructure.unreadable.clone());
    bounds.pruned_count += infrastructure.pruned_count;
    bounds.pruned.extend(infrastructure.pruned.clone());
    bounds
}

/// The end of a text, in one line, with the number of characters that it leaves out.
fn end_of(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.chars().count().checked_sub(LAST_WORDS) {
        None | Some(0) => line,
        Some(over) => {
            format!("[{over} characters left out] {}", line.chars().skip(over).collect::<String>())
        }
    }
}
