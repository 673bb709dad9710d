//! The machine under random histories, against an oracle that reads the history alone.

use std::collections::BTreeMap;

use proptest::prelude::*;
use triphammer_forge::{Beyond, MACHINE_VERSION, Machine, Would, replay, what_if};
use triphammer_model::event::{AgentFacts, Isolation, PreflightFacts, Stamp, Started};
use triphammer_model::movement::MovementFacts;
use triphammer_model::policy::{ClaimPolicy, IdentityPolicy, InfrastructurePolicy, MovementPolicy};
use triphammer_model::process::WaitStatus;
use triphammer_model::report::{GateKind, ReportFacts};
use triphammer_model::{
    AgentName, Attempt, Digest, Effect, Event, Fault, FaultKind, JournalLine, Limits, MicroUsd, Outcome,
    Policy, RejectReason, RunId, SCHEMA, Span, SuspendReason, TakeOver, Tokens, TreeId,
};

fn stamp(ms: u64) -> Stamp {
    let at =
        jiff::Timestamp::from_millisecond(1_800_000_000_000 + ms.cast_signed()).expect("a time in range");
    Stamp { at, elapsed_ms: ms }
}

fn started(policy: Policy, limits: Limits, agents: usize) -> Event {
    Event::Started(Box::new(Started {
        run: RunId::new("r"),
        spec: "s".into(),
        goal: "g".into(),
        spec_path: None,
        pins: BTreeMap::new(),
        version: "0".into(),
        machine: MACHINE_VERSION,
        policy,
        limits,
        agents: (0..agents).map(|i| AgentName::new(format!("a{i}"))).collect(),
        allow_green: false,
        workspace: "/w".into(),
        isolation: Isolation::InPlace,
        origin: None,
        tree: TreeId::new("t0"),
        empty: false,
        parent: None,
    }))
}

/// What the world does in one attempt.
#[derive(Clone, Debug)]
struct Scene {
    fault: Option<FaultKind>,
    cost: Option<u64>,
    tokens: Option<u64>,
    movement: MovementFacts,
    offences: u32,
    ok: bool,
    errors_only: bool,
    identity: u8,
    minutes: u64,
    /// Interrupt or kill at this step of the attempt, then resume.
    cut: Option<(u8, bool)>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let movement = (0u64..2, 0u64..2, 0u64..8, 0u64..8, 0u64..3, 0u64..3).prop_map(
        |(content, touch, corroborated, unverifiable, disproved, infrastructure)| MovementFacts {
            content,
            stat: content + touch,
            corroborated: u64::from(corroborated == 7),
            unverifiable: u64::from(unverifiable == 7),
            disproved,
            infrastructure: (content == 0).then_some(infrastructure),
        },
    );
    let fault = prop_oneof![
        8 => Just(None),
        1 => prop_oneof![
            Just(FaultKind::Authentication),
            Just(FaultKind::Quota),
            Just(FaultKind::RateLimit),
            Just(FaultKind::Overloaded),
            Just(FaultKind::Crashed),
            Just(FaultKind::Protocol),
            Just(FaultKind::TimedOut),
            Just(FaultKind::Refused),
        ]
        .prop_map(Some),
    ];
    let spent = (
        prop_oneof![4 => (0u64..400_000).prop_map(Some), 1 => Just(None)],
        prop_oneof![4 => (0u64..5_000).prop_map(Some), 1 => Just(None)],
    );
    let cut = prop_oneof![6 => Just(None), 1 => (0u8..5, any::<bool>()).prop_map(Some)];
    (fault, spent, movement, 0u32..20, 0u8..16, 0u8..2, 0u64..30, cut).prop_map(
        |(fault, (cost, tokens), movement, offences, verdict, identity, minutes, cut)| Scene {
            fault,
            cost,
            tokens,
            movement,
            offences: u32::from(offences == 19),
            ok: verdict == 15,
            errors_only: verdict == 14,
            identity,
            minutes,
            cut,
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    (2u32..5, any::<bool>(), any::<bool>(), 0u8..3, any::<bool>()).prop_map(|(proofs, m, i, c, infra)| {
        Policy {
            proofs,
            movement: if m { MovementPolicy::Content } else { MovementPolicy::Stat },
            identity: if i { IdentityPolicy::Bytes } else { IdentityPolicy::Normalised },
            claims: [ClaimPolicy::NotDisproved, ClaimPolicy::Corroborated, ClaimPolicy::All][c as usize],
            infrastructure: if infra { InfrastructurePolicy::HoldOnce } else { InfrastructurePolicy::Ignore },
        }
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (1u32..9, 20u64..200, proptest::option::of(1u64..1_000_000), proptest::option::of(1u64..20_000)).prop_map(
        |(attempts, minutes, cost, tokens)| Limits {
            attempts,
            budget: Span::minutes(minutes),
            max_cost: cost.map(MicroUsd::new),
            max_tokens: tokens,
            ..Limits::default()
        },
    )
}

/// What the oracle keeps of the history: one entry for each attempt that an agent was charged for.
#[derive(Clone, Debug)]
struct Past {
    touched: bool,
    infrastructure: u64,
    /// `None` when not judged.
    judged: Option<(String, bool)>,
}

struct Driver {
    machine: Machine,
    lines: Vec<JournalLine>,
    policy: Policy,
    ms: u64,
    past: Vec<Past>,
    held: bool,
    unverifiable_spent: bool,
    first_unverifiable: bool,
    live: Option<Attempt>,
    agent_calls: BTreeMap<u32, u32>,
    spent: (u64, u64, u64),
    seen_ms: u64,
    resumes: u32,
}

impl Driver {
    fn send(&mut self, event: &Event) -> Vec<Effect> {
        assert!(self.machine.expects(event), "the driver sent what nobody waits for: {event:?}");
        self.seen_ms = self.ms;
        let stamp = stamp(self.ms);
        let effects = self.machine.handle(stamp, event);
        self.lines.push(JournalLine {
            schema: SCHEMA,
            seq: self.lines.len() as u64,
            prev: Digest::zero(),
            at: stamp.at,
            elapsed_ms: stamp.elapsed_ms,
            event: event.clone(),
            effects: effects.clone(),
            sha256: None,
        });
        effects
    }

    fn resume(&mut self) -> Vec<Effect> {
        // Time after the last event of a killed process left no trace.
        self.spent.2 += self.seen_ms;
        self.ms = 0;
        self.resumes += 1;
        self.live = None;
        self.send(&Event::Resumed { version: "0".into(), ended: vec![], torn_bytes: 0 })
    }

    /// The oracle: is the run proven immobile by its history?
    fn immobile(&self) -> Option<u64> {
        let n = self.policy.proofs as usize;
        if self.past.len() < n {
            return None;
        }
        let last = &self.past[self.past.len() - n..];
        let reports: Vec<&(String, bool)> = last.iter().filter_map(|p| p.judged.as_ref()).collect();
        let same = reports.len() == n && reports.iter().all(|r| r.0 == reports[0].0 && !r.1);
        let still = last[1..].iter().all(|p| !p.touched);
        (same && still).then(|| last[1..].iter().map(|p| p.infrastructure).sum())
    }
}

fn touched_by(policy: Policy, m: &MovementFacts, first_unverifiable: bool) -> bool {
    let seen = if policy.movement == MovementPolicy::Stat { m.stat > 0 } else { m.content > 0 };
    let claimed = match policy.claims {
        ClaimPolicy::All => m.corroborated + m.unverifiable + m.disproved > 0,
        ClaimPolicy::Corroborated => m.corroborated > 0,
        ClaimPolicy::NotDisproved => m.corroborated > 0 || (first_unverifiable && m.unverifiable > 0),
    };
    seen || claimed
}

#[expect(clippy::too_many_lines, reason = "one story: a run from its first event to its last")]
fn play(policy: Policy, limits: Limits, agents: usize, scenes: &[Scene]) -> Result<(), TestCaseError> {
    let mut d = Driver {
        machine: Machine::new(),
        lines: vec![],
        policy,
        ms: 0,
        past: vec![],
        held: false,
        unverifiable_spent: false,
        first_unverifiable: false,
        live: None,
        agent_calls: BTreeMap::new(),
        spent: (0, 0, 0),
        seen_ms: 0,
        resumes: 0,
    };
    let mut effects = d.send(&started(policy, limits, agents));
    let mut agent_now = AgentName::new("a0");
    let mut scene_no = 0;
    let mut scene = scenes[0].clone();
    for step in 0..2_000 {
        prop_assert!(step < 1_999, "does not end");
        for effect in &effects {
            if let Effect::Hold { infrastructure, .. } = effect {
                prop_assert_eq!(d.immobile(), Some(*infrastructure));
                prop_assert!(!d.held, "held twice");
                d.held = true;
            }
        }
        effects.retain(|e| !matches!(e, Effect::Hold { .. }));
        prop_assert_eq!(effects.len(), 1, "one thing at a time");
        let effect = effects[0].clone();
        match effect {
            Effect::Preflight => {
                effects = d.send(&Event::Preflighted(PreflightFacts { gates: 1, ..Default::default() }));
            }
            Effect::Look { attempt, agent, from, why } => {
                prop_assert_eq!(from.is_some(), why.is_some(), "who takes over knows why");
                prop_assert!(d.live.is_none(), "two live attempts");
                prop_assert!(attempt.get() <= limits.attempts);
                if agent != agent_now {
                    prop_assert!(from.is_some());
                    agent_now = agent.clone();
                    d.past.clear();
                    d.held = false;
                }
                // Nothing begins beyond a budget; the first attempt always may.
                if attempt.get() > 1 && d.agent_calls.len() > 1 && !d.agent_calls.contains_key(&attempt.get())
                {
                    let (cost, tokens, ms) = d.spent;
                    prop_assert!(limits.max_cost.is_none_or(|c| cost < c.micros()), "money");
                    prop_assert!(limits.max_tokens.is_none_or(|t| tokens < t), "tokens");
                    prop_assert!(ms + d.ms < limits.budget.as_millis(), "time");
                }
                scene = scenes[scene_no % scenes.len()].clone();
                scene_no += 1;
                if d.resumes >= 20 {
                    scene.cut = None;
                }
                if let Some((0, interrupt)) = scene.cut {
                    scene.cut = None;
                    effects = if interrupt {
                        let end = d.send(&Event::Interrupted { by: "SIGINT".into() });
                        prop_assert_eq!(&end, &vec![Effect::End { outcome: Outcome::Interrupted }]);
                        d.resume()
                    } else {
                        d.resume()
                    };
                    continue;
                }
                d.live = Some(attempt);
                effects = d.send(&Event::Looked { attempt });
            }
            Effect::Implement { attempt, agent, try_no } => {
                d.live = Some(attempt);
                *d.agent_calls.entry(attempt.get()).or_default() += 1;
                prop_assert!(try_no <= limits.retries + 1);
                d.ms += scene.minutes * 60_000;
                match scene.cut {
                    Some((1, true)) => {
                        scene.cut = None;
                        prop_assert_eq!(d.send(&Event::Interrupted { by: "SIGINT".into() }), vec![]);
                        scene.cut = Some((9, true));
                    }
                    Some((1, false)) => {
                        scene.cut = Some((9, false));
                        effects = d.resume();
                        continue;
                    }
                    _ => {}
                }
                // Faults pass after a while, or no resumed run would ever end in this test.
                let fault = scene.fault.filter(|_| d.resumes < 8);
                d.spent.0 += scene.cost.unwrap_or(0);
                d.spent.1 += scene.tokens.unwrap_or(0);
                effects = d.send(&Event::AgentEnded {
                    attempt,
                    agent,
                    try_no,
                    facts: AgentFacts {
                        wait: WaitStatus::Exited { code: 0 },
                        duration_ms: 1,
                        tokens: scene.tokens.map(|input| Tokens { input, cached: 0, output: 0 }),
                        cost: scene.cost.map(MicroUsd::new),
                        cost_by: None,
                        fault: fault.map(|kind| Fault { kind, reset_at: None, message: None }),
                    },
                });
            }
            Effect::Wait { attempt, ms } => {
                prop_assert!(ms >= 1_000);
                effects = d.send(&Event::Waited { attempt });
            }
            Effect::Observe { attempt, unverifiable } => {
                prop_assert_eq!(unverifiable, !d.unverifiable_spent);
                let touched = touched_by(policy, &scene.movement, unverifiable);
                if let Some((2, _)) = scene.cut {
                    scene.cut = None;
                    effects = d.resume();
                    continue;
                }
                effects = d.send(&Event::Observed {
                    attempt,
                    movement: scene.movement,
                    left: TreeId::new("t"),
                    tree: TreeId::new("t"),
                    offences: scene.offences,
                    moved_since_start: true,
                });
                d.first_unverifiable = unverifiable;
                d.unverifiable_spent |= scene.movement.unverifiable > 0;
                let ended = matches!(effects[..], [Effect::End { outcome: Outcome::Interrupted }]);
                if ended || matches!(effects[..], [Effect::Look { .. }]) {
                    if matches!(scene.cut, Some((9, _))) {
                        d.past.push(Past { touched, infrastructure: 0, judged: None });
                    }
                    d.live = None;
                }
            }
            Effect::Judge { attempt } => {
                if let Some((3, interrupt)) = scene.cut {
                    scene.cut = None;
                    if interrupt {
                        d.send(&Event::Interrupted { by: "SIGINT".into() });
                    }
                    effects = d.resume();
                    continue;
                }
                if matches!(scene.cut, Some((9, true)))
                    && d.past.last().is_some_and(|p| p.judged.is_none())
                    && attempt.get() >= 1
                {
                    // Judged after all on resume.
                    d.past.pop();
                }
                scene.cut = None;
                let identity = Digest::of([scene.identity]);
                let report = ReportFacts {
                    ok: scene.ok,
                    identity: identity.clone(),
                    identity_normalised: Digest::of([b'n', scene.identity]),
                    passed: 0,
                    failed: u32::from(!scene.ok && !scene.errors_only),
                    errors: u32::from(scene.errors_only),
                    skipped: 0,
                    findings: u64::from(scene.identity),
                    flaky: false,
                    rank: (!scene.ok).then_some(GateKind::Test),
                };
                let touched = d.last_touched(&scene);
                effects = d.send(&Event::Judged { attempt, report });
                d.live = None;
                let parked = matches!(
                    effects[..],
                    [Effect::End {
                        outcome: Outcome::Suspended {
                            reason: SuspendReason::RateLimit
                                | SuspendReason::Quota
                                | SuspendReason::Authentication
                                | SuspendReason::Overloaded,
                            ..
                        }
                    }]
                ) || matches!(effects[..], [Effect::Look { attempt: a, .. }] if a == attempt);
                let accepted = matches!(effects[..], [Effect::End { outcome: Outcome::Accepted { .. } }]);
                prop_assert_eq!(accepted, scene.ok, "accepted iff the report is ok");
                let tampered = matches!(
                    effects[..],
                    [Effect::End { outcome: Outcome::Rejected { reason: RejectReason::Tampered } }]
                );
                if parked {
                    d.past.clear();
                    d.held = false;
                } else if matches!(
                    effects[..],
                    [Effect::End { outcome: Outcome::Suspended { reason: SuspendReason::GateError, .. } }]
                ) {
                    prop_assert!(scene.errors_only, "suspended for what gates could not do");
                } else if !accepted && !tampered {
                    d.past.push(Past {
                        touched,
                        infrastructure: scene.movement.infrastructure.unwrap_or(0),
                        judged: Some((identity.to_string(), scene.ok)),
                    });
                    let stalled = matches!(
                        effects[..],
                        [Effect::End { outcome: Outcome::Rejected { reason: RejectReason::Stalled } }]
                    );
                    let proof = d.immobile();
                    let holds = proof.is_some_and(|infra| {
                        infra > 0 && !d.held && policy.infrastructure == InfrastructurePolicy::HoldOnce
                    });
                    let held_now = matches!(effects.first(), Some(Effect::Hold { .. }));
                    prop_assert_eq!(held_now, holds, "held iff proven but for infrastructure");
                    let fires = proof.is_some() && !holds;
                    let last_agent = agent_now.as_str() == format!("a{}", agents - 1);
                    if last_agent {
                        prop_assert_eq!(stalled, fires, "stalled iff proven");
                    } else {
                        prop_assert!(!stalled, "stalled only when the last agent stalls");
                        if fires {
                            let handed = matches!(&effects[..], [Effect::Look { agent, why: Some(TakeOver::Stalled), .. }] if *agent != agent_now);
                            let over = matches!(&effects[..], [Effect::End { .. }]);
                            prop_assert!(handed || over, "another agent takes over on a stall");
                            if over {
                                // The chain goes on after resume with the next agent and a new history.
                                agent_now = AgentName::new(format!(
                                    "a{}",
                                    agent_now.as_str()[1..].parse::<usize>().expect("a number") + 1
                                ));
                                d.past.clear();
                                d.held = false;
                            }
                        }
                    }
                }
            }
            Effect::End { outcome } => {
                if outcome.is_resumable() && d.resumes < 40 {
                    if matches!(outcome, Outcome::Suspended { reason: SuspendReason::GateError, .. }) {
                        scene.errors_only = false;
                    }
                    effects = d.resume();
                    continue;
                }
                // Over for good: nothing that comes later starts anything.
                for late in [
                    Event::Looked { attempt: Attempt::FIRST },
                    Event::Waited { attempt: Attempt::FIRST },
                    Event::Interrupted { by: "SIGINT".into() },
                ] {
                    prop_assert_eq!(d.machine.handle(stamp(d.ms), &late), vec![]);
                }
                return d.replays();
            }
            Effect::Hold { .. } => unreachable!("removed above"),
        }
    }
    Ok(())
}

impl Driver {
    /// What was recorded is decided in the same way again; and a breaker that asks for fewer equal reports never lets a run
    /// go on for longer, nor does one that asks for more stop it sooner.
    fn replays(&self) -> Result<(), TestCaseError> {
        prop_assert!(replay(&self.lines).is_ok());
        let same = what_if(&self.lines, self.policy);
        prop_assert_eq!((&same.would, &same.lines), (&Would::AsRecorded, &self.lines));
        for proofs in 2..6 {
            let other = what_if(&self.lines, Policy { proofs, ..self.policy });
            let stalled = Would::Ended(Outcome::Rejected { reason: RejectReason::Stalled });
            if proofs <= self.policy.proofs {
                prop_assert_ne!(other.would, Would::Unknown(Beyond::GoesOn));
            } else {
                prop_assert_ne!(other.would, stalled);
            }
        }
        // Older journals do not say why another agent takes over.
        let mut older = self.lines.clone();
        for effect in older.iter_mut().flat_map(|line| &mut line.effects) {
            if let Effect::Look { why, .. } = effect {
                *why = None;
            }
        }
        prop_assert!(replay(&older).is_ok());
        prop_assert_eq!(what_if(&older, self.policy).would, Would::AsRecorded);
        let mut altered = self.lines.clone();
        let last = altered.len() - 1;
        altered[last].effects = vec![Effect::Preflight];
        let divergence = replay(&altered).expect_err("another last word");
        prop_assert_eq!((divergence.seq, &divergence.now), (last as u64, &self.lines[last].effects));
        Ok(())
    }

    fn last_touched(&self, scene: &Scene) -> bool {
        // The unverifiable claim counted if it was the first one, that is, if this scene spent it.
        touched_by(self.policy, &scene.movement, self.first_unverifiable)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn decides_as_the_history_says(
        policy in policy(),
        limits in limits(),
        agents in 1usize..4,
        scenes in proptest::collection::vec(scene(), 1..12),
    ) {
        play(policy, limits, agents, &scenes)?;
    }

    #[test]
    fn ignores_what_nobody_waits_for(
        attempts in proptest::collection::vec((0u8..9, 1u32..4), 0..60),
    ) {
        let mut machine = Machine::new();
        let mut live: Option<Attempt> = None;
        for (kind, n) in attempts {
            let attempt = Attempt::new(n);
            let event = match kind {
                0 => started(Policy::default(), Limits::default(), 1),
                1 => Event::Preflighted(PreflightFacts { gates: 1, ..Default::default() }),
                2 => Event::Looked { attempt },
                3 => Event::Waited { attempt },
                4 => Event::AgentEnded {
                    attempt,
                    agent: AgentName::new("a0"),
                    try_no: 1,
                    facts: AgentFacts {
                        wait: WaitStatus::Unknown, duration_ms: 0, tokens: None, cost: None, cost_by: None,
                        fault: None,
                    },
                },
                5 => Event::Interrupted { by: "SIGINT".into() },
                6 => Event::Resumed { version: "0".into(), ended: vec![], torn_bytes: 0 },
                7 => Event::Told { by: "p".into(), text: "t".into() },
                _ => Event::Decided { accept: true, by: "p".into(), why: "w".into() },
            };
            let expected = machine.expects(&event);
            for effect in machine.handle(stamp(0), &event) {
                prop_assert!(expected);
                let accepted = matches!(effect, Effect::End { outcome: Outcome::Accepted { .. } });
                prop_assert!(!accepted, "accepted without a report");
                if let Effect::Implement { attempt, .. } = effect {
                    prop_assert!(live.is_none_or(|l| l <= attempt), "an attempt goes back");
                    live = Some(attempt);
                }
            }
        }
    }
}
