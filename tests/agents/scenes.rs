//! What every agent has to go through.

use std::path::Path;

use triphammer_agent::Vendor;
use triphammer_model::config::VendorName;
use triphammer_model::movement::Standing;
use triphammer_model::{GuardReport, WorkPath};
use triphammer_testkit::{Failure, FakeModel, ModelRequest, Script, Step};

use crate::rig::{Real, Rig, THREE_REQUESTS};

/// What the gate says of the first attempt's work, and in no other case: the brief shows its command line as well.
pub(crate) const FINDING: &str = "unfriendly: echo grumpy";

/// A gate that a friendly greeting passes.
const GATE: &str = "grep -q friendly hello.sh || { echo \"unfriendly: $(cat hello.sh)\"; exit 1; }";

/// A model that writes what fails the gate, and what passes it once it was told of the finding.
fn script(work: &Path) -> impl Fn(&ModelRequest) -> Step + use<> {
    let path = |name: &str| work.join(name).to_str().unwrap().to_owned();
    let attempt = |greeting: &str, notes: &str| {
        Script::new([
            Step::heredoc(&path("hello.sh"), &format!("echo {greeting}\n")),
            Step::WriteCall { path: path(notes), content: "what was done\n".to_owned() },
            Step::Text("All is done.".to_owned()),
        ])
    };
    let first = attempt("grumpy", "notes-1.md");
    let second = attempt("friendly", "notes-2.md");
    move |request| {
        let chosen = if request.prompt().contains(FINDING) { &second } else { &first };
        chosen.step(request)
    }
}

/// Two attempts: the first fails its gate, the finding reaches the model, the second is accepted.
pub(crate) fn strike(real: &'static Real, more: &str) -> (Rig, Vec<ModelRequest>) {
    let rig = Rig::new(real, GATE);
    let model = FakeModel::start(script(&rig.work()));
    rig.configure(&model.url(), more);
    rig.run().expect("accepted", "gates-passed", 2, 0);
    (rig, model.working_requests())
}

/// What the gate said of the first attempt reaches the model in the second, and not before.
pub(crate) fn the_finding_is_told(requests: &[ModelRequest]) {
    let told: Vec<bool> = requests.iter().map(|request| request.text().contains(FINDING)).collect();
    assert_eq!(told, [false, false, false, true, true, true], "three requests an attempt");
}

/// A run of two attempts, with what is observed of them and what is claimed.
pub(crate) fn a_finding_is_mended(real: &'static Real) {
    let (rig, requests) = strike(real, "");
    the_finding_is_told(&requests);
    let run = rig.home.only_run();
    for (attempt, notes) in [(1, "notes-1.md"), (2, "notes-2.md")] {
        let movement = run.movement(attempt);
        let path = |name: &str| WorkPath::from_bytes(name.as_bytes());
        let observed: Vec<&WorkPath> = movement.observed.iter().map(|seen| &seen.path).collect();
        assert_eq!(observed, [&path("hello.sh"), &path(notes)], "attempt {attempt}");
        let claimed: Vec<_> = movement.claimed.iter().map(|claim| (&claim.path, claim.standing)).collect();
        let notes = path(notes);
        let expected = if real.reports_files { vec![(&notes, Standing::Observed)] } else { Vec::new() };
        assert_eq!(claimed, expected, "what its shell wrote is observed and not claimed");
        let receipt = run.receipt(attempt);
        assert_eq!((receipt.fault, receipt.troubles.as_slice()), (None, [].as_slice()));
        assert!(
            receipt.commands.iter().any(|ran| ran.command.contains("END_OF_FILE")),
            "{:?}",
            receipt.commands
        );
        assert_eq!(receipt.tokens, Some(THREE_REQUESTS), "attempt {attempt}");
    }
    // What it keeps for itself lies where it is known to, or in a tool's cache.
    let vendor = Vendor::of(VendorName::from_word(real.kind).unwrap());
    for path in rig.user_files() {
        let known = vendor.state().chain([".npm"]).any(|state| path.starts_with(state));
        assert!(known, "{} writes {} in the user's folder", real.kind, path.display());
    }
}

/// The second brief goes into the session of the first.
pub(crate) fn a_session_is_continued(real: &'static Real) {
    let (rig, requests) = strike(real, "continue = true\n");
    let run = rig.home.only_run();
    let session = run.receipt(1).session;
    assert!(session.is_some(), "it has a session");
    assert_eq!(run.receipt(2).session, session);
    let last = requests.last().unwrap().text();
    assert!(
        last.contains("echo grumpy") && last.contains(FINDING),
        "the first attempt is in the second's context"
    );
}

/// The run is killed while the agent waits for its model.
pub(crate) fn nothing_outlives_a_kill(real: &'static Real) {
    let model = FakeModel::saying([Step::Hang]);
    let rig = Rig::new(real, GATE);
    rig.configure(&model.url(), "");
    rig.kill_while_it_asks(&model);
}

/// A key that is not accepted suspends the run and charges no attempt, whatever the agent's exit code says.
pub(crate) fn a_refused_key_suspends(real: &'static Real) {
    let model = FakeModel::saying([Step::Fails(Failure::Authentication, Vec::new())]);
    let rig = Rig::new(real, GATE);
    rig.configure(&model.url(), "");
    let ran = rig.run();
    let receipt = rig.home.only_run().receipt(1);
    assert_eq!(receipt.fault.map(|fault| fault.kind), Some(real.refusal));
    let reason = serde_json::to_value(real.refusal).unwrap();
    ran.expect("suspended", reason.as_str().unwrap(), 0, 5);
}

/// With the hook installed, a command that cannot be undone is not run, and the model is told why. `more` are lines of
/// the agent's table.
pub(crate) fn a_forced_push_is_refused(real: &'static Real, more: &str) {
    let rig = Rig::new(real, "test -f done.txt");
    let model = FakeModel::saying([
        Step::ShellCall("touch pushed.txt; git push --force origin main".to_owned()),
        Step::ShellCall("touch done.txt".to_owned()),
        Step::Text("All is done.".to_owned()),
    ]);
    rig.configure(&model.url(), more);
    let installed = rig.home.run(["hook", "install", "--agent", real.kind]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    rig.run().expect("accepted", "gates-passed", 1, 0);
    let requests = model.working_requests();
    assert_eq!(requests.len(), 3, "each request brings the result of the call before");
    let told = requests[1].text();
    assert!(told.contains("triphammer refused this command"), "{told}");
    assert!(told.contains("It overwrites or deletes what others may already have"), "{told}");
    let run = rig.home.only_run();
    let moved: Vec<String> = run.movement(1).observed.iter().map(|seen| seen.path.to_string()).collect();
    assert_eq!(moved, ["done.txt"], "the refused line was not run, the next one was");
    let guard = std::fs::read(run.path().join("attempts/001/guard.json")).ok();
    let guard = guard.map(|text| serde_json::from_slice::<GuardReport>(&text).unwrap());
    let told = guard.map(|report| report.reported.iter().all(|one| one.refused));
    let expected = match real.kind {
        // A field of its own says so.
        "claude" | "gemini" | "qwen" => Some(true),
        // It looks like any command that failed.
        "pi" => Some(false),
        // What was refused is not mentioned, or looks like a call that was wrong.
        _ => None,
    };
    assert_eq!(told, expected);
}
