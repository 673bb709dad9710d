//! Our own loop, driven by a scripted model through whole runs.

use serde_json::Value;
use triphammer_model::{FaultKind, Receipt, Tokens};
use triphammer_testkit::{Failure, FakeModel, Step, TestHome};

use crate::common::SPEC;

fn home_of(model: &FakeModel) -> TestHome {
    let home = TestHome::with_gates(&[("right", "grep -q right answer.txt")]);
    home.write("specs/it.md", SPEC);
    let config = home.read("triphammer.toml");
    let url = model.url();
    home.write(
        "triphammer.toml",
        &format!(
            "{config}\n[agents.coder]\nkind = \"native\"\nmodel = \"fake-1\"\nbase_url = \"{url}/v1\"\n"
        ),
    );
    home
}

fn receipt(home: &TestHome, attempt: u32) -> Receipt {
    let path = format!("runs/{}/attempts/{attempt:03}/receipt.json", home.only_run().id());
    serde_json::from_str(&home.read(path)).unwrap()
}

#[test]
fn a_finding_reaches_the_model_and_the_second_attempt_is_accepted() {
    let model = FakeModel::start(|request| {
        let second = request.text().contains("attempt 2 of");
        match (second, request.results()) {
            (false, 0) => Step::heredoc("answer.txt", "wrong\n"),
            (true, 0) => Step::WriteCall { path: "answer.txt".to_owned(), content: "right\n".to_owned() },
            (true, 1) => Step::ShellCall("git push --force".to_owned()),
            _ => Step::Text("Done.".to_owned()),
        }
    });
    let home = home_of(&model);
    let ran = home.forge(["specs/it.md", "--agent", "coder", "--attempts", "3"]);
    ran.expect("accepted", "gates-passed", 2, 0);
    let (first, second) = (receipt(&home, 1), receipt(&home, 2));
    // What its shell wrote is observed and not claimed; what its own tool wrote is both.
    assert_eq!((first.files.len(), first.commands.len()), (0, 1), "{first:?}");
    assert_eq!(second.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["answer.txt"]);
    assert_eq!(second.model.as_deref(), Some("fake-1"));
    assert!(second.tokens.is_some_and(|tokens: Tokens| tokens.input > 0 && tokens.output > 0));
    // The finding of the first attempt stood in the second one's request, and the refusal in a later one.
    let texts: Vec<String> =
        model.working_requests().iter().map(triphammer_testkit::ModelRequest::text).collect();
    assert!(texts.iter().any(|text| text.contains("attempt 2 of") && text.contains("right")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("`git push --force`: ")), "{texts:?}");
    let movement: Value =
        serde_json::from_str(&home.read(format!("runs/{}/attempts/001/movement.json", home.only_run().id())))
            .unwrap();
    assert_eq!(movement["touched"], serde_json::json!(["answer.txt"]));
    assert_eq!(movement["claimed"], serde_json::json!([]));
}

#[test]
fn a_refused_key_and_a_service_that_is_down_are_faults() {
    let model = FakeModel::start(|_| Step::Fails(Failure::Authentication, Vec::new()));
    let home = home_of(&model);
    let ran = home.forge(["specs/it.md", "--agent", "coder", "--attempts", "3"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert_eq!(receipt(&home, 1).fault.map(|fault| fault.kind), Some(FaultKind::Authentication));
}
