//! Our own loop, driven by a scripted model through whole runs.

use serde_json::Value;
use triphammer_model::{Attempt, Continuation, FaultKind, Receipt, Tokens};
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

/// A model that works without success twice, and says what it has been sent.
fn stubborn() -> FakeModel {
    FakeModel::start(|request| match request.results() {
        0 => Step::ShellCall("echo found-nothing; exit 3".to_owned()),
        1 => Step::WriteCall { path: "answer.txt".to_owned(), content: "wrong\n".to_owned() },
        _ => Step::Text("I could not find it.".to_owned()),
    })
}

#[test]
fn an_attempt_goes_on_with_a_digest_of_the_one_before_where_it_is_told_to() {
    for (line, goes_on) in [("continue = true", true), ("", false)] {
        let model = stubborn();
        let home = home_of(&model);
        let config = home.read("triphammer.toml");
        home.write("triphammer.toml", &format!("{config}{line}\n"));
        home.forge(["specs/it.md", "--agent", "coder", "--attempts", "3"]);
        let run = home.only_run();
        let digest = run.text("attempts/001/digest.md");
        assert!(digest.contains("I could not find it.") && digest.contains("exit status 3"), "{digest}");
        assert_eq!(receipt(&home, 1).continuation, Some(Continuation::Fresh));
        let expected =
            if goes_on { Continuation::Digest { attempt: Attempt::new(1) } } else { Continuation::Fresh };
        assert_eq!(receipt(&home, 2).continuation, Some(expected), "{line}");
        let requests = model.working_requests();
        let second = requests.iter().find(|r| r.text().contains("attempt 2 of")).expect("a second attempt");
        assert_eq!(second.results(), 0);
        assert_eq!(second.text().contains("# From an earlier attempt"), goes_on, "{}", second.text());
        assert_eq!(second.text().contains("found-nothing; exit 3"), goes_on, "{}", second.text());
        // Its digest is the last attempt's, not a chat that grows.
        let third = requests.iter().find(|r| r.text().contains("attempt 3 of")).expect("a third attempt");
        assert_eq!(third.text().matches("I could not find it.").count(), usize::from(goes_on));
        let shown = home.run(["show", "latest", "2"]);
        let said = if goes_on { "went on with a digest of what it did in attempt 1" } else { "began afresh" };
        assert!(shown.stdout.contains(said), "{}", shown.stdout);
    }
}

#[test]
fn goal_and_findings_stand_in_a_request_whose_conversation_was_condensed() {
    let refused = std::sync::atomic::AtomicBool::new(false);
    let model = FakeModel::start(move |request| {
        let second = request.text().contains("attempt 2 of");
        match (second, request.results()) {
            (true, 1) if !refused.swap(true, std::sync::atomic::Ordering::SeqCst) => {
                Step::Fails(Failure::ContextOverflow, Vec::new())
            }
            (true, 0) if request.text().contains("in place of the conversation") => {
                Step::WriteCall { path: "answer.txt".to_owned(), content: "right\n".to_owned() }
            }
            (_, 0) => Step::heredoc("answer.txt", "wrong\n"),
            _ => Step::Text("Done.".to_owned()),
        }
    });
    let home = home_of(&model);
    let ran = home.forge(["specs/it.md", "--agent", "coder", "--attempts", "3"]);
    ran.expect("accepted", "gates-passed", 2, 0);
    let brief = home.only_run().brief(2);
    assert!(brief.contains("Make the gates pass.") && brief.contains("grep -q right"), "{brief}");
    let requests = model.working_requests();
    let condensed = requests.iter().find(|r| r.text().contains("in place of the conversation"));
    let text = condensed.expect("a request after the overflow").text();
    assert!(text.contains(brief.trim()), "{text}");
}

#[test]
fn a_refused_key_and_a_service_that_is_down_are_faults() {
    let model = FakeModel::start(|_| Step::Fails(Failure::Authentication, Vec::new()));
    let home = home_of(&model);
    let ran = home.forge(["specs/it.md", "--agent", "coder", "--attempts", "3"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert_eq!(receipt(&home, 1).fault.map(|fault| fault.kind), Some(FaultKind::Authentication));
}
