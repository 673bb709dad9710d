//! Making a failing plan shorter: an act is left out when it fails without it as well.

use crate::clock::Pause;
use crate::plan::Plan;

/// How often a shorter plan may pass before it counts as passing, since a failure may depend on the moment.
const TRIES: u32 = 4;

/// The shortest plan found that fails, and how; `None` when not even the whole one fails again.
pub(crate) fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> Option<String>) -> (Plan, Option<String>) {
    let fails = |plan: &Plan| (0..TRIES).find_map(|_| fails(plan));
    let mut shortest = plan.clone();
    let Some(mut how) = fails(&shortest) else { return (shortest, None) };
    loop {
        let shorter = shorter(&shortest).into_iter().find_map(|plan| Some((fails(&plan)?, plan)));
        match shorter {
            Some((now, plan)) => (how, shortest) = (now, plan),
            None => return (shortest, Some(how)),
        }
    }
}

/// Every plan with one thing less in it.
fn shorter(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        all.push(plan);
    };
    for i in 0..plan.work.len() {
        with(&|plan| drop(plan.work.remove(i)));
    }
    for i in 0..plan.start.len() {
        with(&|plan| drop(plan.start.remove(i)));
    }
    for i in (0..plan.work.len()).filter(|i| plan.work[*i].before != Pause::None) {
        with(&|plan| plan.work[i].before = Pause::None);
    }
    if plan.before_first_look != Pause::None {
        with(&|plan| plan.before_first_look = Pause::None);
    }
    if plan.before_second_look != Pause::None {
        with(&|plan| plan.before_second_look = Pause::None);
    }
    if plan.look_between.is_some() {
        with(&|plan| plan.look_between = None);
    }
    if plan.restored {
        with(&|plan| plan.restored = false);
    }
    all
}

#[test]
fn only_what_fails_is_left() {
    use crate::plan::Verb;
    let guilty = |plan: &Plan| plan.work.iter().any(|act| act.verb == Verb::Chmod);
    let plan = (0..1_000).map(Plan::of).find(|plan| guilty(plan) && plan.work.len() > 3).unwrap();
    let (shortest, how) = shrink(&plan, |plan| guilty(plan).then(|| "chmod".to_owned()));
    assert_eq!((shortest.start.len(), shortest.work.len(), how.as_deref()), (0, 1, Some("chmod")));
    assert_eq!(shrink(&plan, |_| None).1, None);
}
