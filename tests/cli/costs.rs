//! Where a cost comes from, through whole runs: reported, computed, or not known.

use triphammer_model::{CostBy, MicroUsd, Receipt};
use triphammer_testkit::{Ran, TestHome};

use crate::common::{rewrite_journal, strike};
use crate::vendors::run;

/// A home whose gate is red, with more lines of configuration.
fn home(more: &str) -> TestHome {
    let home = TestHome::with_gates(&[("never", "false")]);
    let config = home.read("triphammer.toml");
    home.write("triphammer.toml", &format!("{config}\n{more}\n"));
    home
}

/// Codex, which names neither its model nor a cost; its own record has the model.
fn codex(home: &TestHome, model: &str, args: &[&str]) -> Ran {
    let state = home.beside("codex");
    let script = format!(
        "echo x >> work.txt
        day=\"$CODEX_HOME/sessions/2026/01/01\"; mkdir -p \"$day\"
        echo '{{\"type\":\"turn_context\",\"payload\":{{\"model\":\"{model}\"}}}}' > \"$day/rollout-1-t-1.jsonl\"
        echo '{{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}}'
        echo '{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":300000,\"cached_input_tokens\":100000,\
         \"output_tokens\":10000}}}}'"
    );
    let vars = [("CODEX_HOME", state.to_str().unwrap())];
    run(home, "codex", &script, &vars, &[&["--agent", "codex"], args].concat())
}

/// Claude Code, which tells what it thinks it cost.
fn claude(home: &TestHome, dollars: &str, args: &[&str]) -> Ran {
    let script = format!(
        "echo x >> work.txt
        echo '{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"claude-opus-4-5-x\"}}'
        echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\
         \"total_cost_usd\":{dollars},\"usage\":{{\"input_tokens\":100000,\"cache_read_input_tokens\":0,\
         \"output_tokens\":20000}}}}'"
    );
    run(home, "claude", &script, &[], &[&["--agent", "claude"], args].concat())
}

fn receipt(home: &TestHome) -> Receipt {
    home.only_run().receipt(1)
}

/// 200,000 tokens in at $1.25 a million, 100,000 from the cache at $0.125, 10,000 out at $10.
const OF_THE_TABLE: MicroUsd = MicroUsd::new(250_000 + 12_500 + 100_000);

#[test]
fn a_cost_that_nobody_reports_is_computed_and_ends_the_run_at_its_cap() {
    let home = home("");
    let ran = codex(&home, "gpt-5", &["--max-cost", "0.70"]);
    ran.expect("rejected", "budget-exhausted", 2, 4);
    let receipt = receipt(&home);
    assert_eq!((receipt.model.as_deref(), receipt.cost), (Some("gpt-5"), Some(OF_THE_TABLE)));
    let Some(CostBy::Prices { as_of }) = receipt.cost_by else { panic!("{:?}", receipt.cost_by) };
    assert_eq!(home.only_run().summary()["spent"]["cost"], 2 * OF_THE_TABLE.micros());
    let said = format!("cost {OF_THE_TABLE}, computed from prices of {as_of}");
    let attempt = home.run(["show", "latest", "1"]);
    assert!(attempt.stdout.contains(&said), "{}", attempt.stdout);
    let shown = home.run(["show", "latest"]);
    let sum = format!("$0.72; computed from prices of {as_of} for 2 agent calls");
    assert!(shown.stdout.contains(&sum), "{}", shown.stdout);
}

#[test]
fn a_model_without_a_price_costs_nobody_knows_what() {
    let home = home("");
    codex(&home, "model-7", &["--max-cost", "9"]).expect("suspended", "cost-unknown", 1, 5);
    let receipt = receipt(&home);
    assert_eq!((receipt.cost, receipt.cost_by), (None, None));
    assert!(receipt.tokens.is_some());

    let heedless = self::home("[run]\nunknown_cost = \"ignore\"");
    let ran = codex(&heedless, "model-7", &["--max-cost", "9", "--attempts", "2"]);
    ran.expect("rejected", "attempts-exhausted", 2, 1);
}

#[test]
fn a_command_that_names_its_model_is_priced() {
    let home = home("[prices]\n\"mine-*\" = { input = 1.0, output = 1.0 }");
    let agent = "echo x >> work.txt
        echo '{\"model\": \"mine-1\", \"tokens\": {\"input\": 300000, \"output\": 10000}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &["--max-cost", "0.30"]).expect("rejected", "budget-exhausted", 1, 4);
    let receipt = receipt(&home);
    assert_eq!(receipt.model.as_deref(), Some("mine-1"));
    assert_eq!((receipt.cost, receipt.cost_by), (Some(MicroUsd::new(310_000)), Some(CostBy::OwnPrices)));
}

#[test]
fn a_report_counts_before_the_table_and_the_users_prices_before_a_report() {
    let plain = home("");
    claude(&plain, "0.5", &["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let reported = receipt(&plain);
    assert_eq!((reported.cost, reported.cost_by), (Some(MicroUsd::new(500_000)), Some(CostBy::Reported)));

    let priced = home("[prices]\n\"claude-opus-*\" = { input = 1.0, output = 10.0 }");
    claude(&priced, "0.0001", &["--max-cost", "0.30"]).expect("rejected", "budget-exhausted", 1, 4);
    let own = receipt(&priced);
    assert_eq!((own.cost, own.cost_by), (Some(MicroUsd::new(300_000)), Some(CostBy::OwnPrices)));
    let shown = priced.run(["show", "latest", "1"]);
    assert!(shown.stdout.contains("cost $0.30, computed from your prices"), "{}", shown.stdout);
}

#[test]
fn a_resumed_run_goes_on_with_the_prices_of_its_start() {
    let home = home(
        "[prices]\n\"dear-1\" = { input = 1.0, output = 1.0 }\n\"other\" = { input = 1.0, output = 1.0 }",
    );
    codex(&home, "nameless", &["--max-cost", "9"]).expect("suspended", "cost-unknown", 1, 5);
    let run = home.only_run();
    let pinned: serde_json::Value = serde_json::from_str(&run.text("pinned/prices.json")).unwrap();
    assert!(pinned["user"]["dear-1"].is_object() && pinned["table"]["gpt-5"].is_object(), "{pinned}");
    // Its price today is another one, and is not asked for.
    let config =
        home.read("triphammer.toml").replace("\"dear-1\" = { input = 1.0", "\"dear-1\" = { input = 99.0");
    home.write("triphammer.toml", &config);
    let ran = resumed(&home, "dear-1");
    assert_eq!(run.receipt(2).cost, Some(MicroUsd::new(310_000)), "{}\n{}", ran.stdout, ran.stderr);
}

/// Goes on with a run of [`codex`], which names another model now.
fn resumed(home: &TestHome, model: &str) -> Ran {
    let program = home.beside("bin/codex");
    let script = std::fs::read_to_string(&program).unwrap().replace("nameless", model);
    std::fs::write(&program, script).unwrap();
    let mut command = home.command(["resume", "latest", "--json"]);
    let path = std::env::join_paths([home.beside("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    command.env("PATH", path).env("CODEX_HOME", home.beside("codex"));
    Ran::of(command.output().unwrap())
}

#[test]
fn a_run_from_before_prices_were_pinned_has_them_nevertheless() {
    for (model, cost) in [("gpt-5", OF_THE_TABLE), ("own-1", MicroUsd::new(310_000))] {
        let home = home("[prices]\n\"own-1\" = { input = 1.0, output = 1.0 }");
        codex(&home, "nameless", &["--max-cost", "9"]).expect("suspended", "cost-unknown", 1, 5);
        let run = home.only_run();
        rewrite_journal(&run, |line| {
            if let Some(pins) = line["event"]["pins"].as_object_mut() {
                pins.remove("prices.json").expect("it is pinned nowadays");
            }
        });
        std::fs::remove_file(run.path().join("pinned/prices.json")).unwrap();
        let ran = resumed(&home, model);
        assert_eq!(run.receipt(2).cost, Some(cost), "{model}: {}\n{}", ran.stdout, ran.stderr);
    }
}
