//! Hints that name a mode, a flag or a setting fit the mode and the source of the value: each hint
//! of the table is carried out, and then the command succeeds.

use serde_json::{Value, json};

use harness::steps::bash_call;
use harness::{Home, Reply};

/// Flags and settings, the calls of the model, parts of the hint, words that it must not have, and
/// the flags and settings with which it works.
struct Case<'a> {
    given: (&'a [&'a str], &'a str),
    call: Value,
    hint: &'a [&'a str],
    not: &'a [&'a str],
    then: (&'a [&'a str], &'a str),
}

async fn check(case: Case<'_>) {
    let Case { given, call, hint, not, then } = case;
    let run = async |(flags, settings): (&[&str], &str)| {
        let home = Home::new();
        home.config(settings);
        home.put(".nuncio/present", "");
        let model = home.script(json!([{"tool_calls": [call]}, {"text": "done"}]));
        home.run(&[&["run", "--model", &model], flags, &["go"]].concat(), "").await
    };
    let failed = run(given).await;
    assert_ne!(failed.code, 0, "{given:?}: {failed:?}");
    let shown = failed.stderr.lines().filter(|line| line.contains("to allow it: ") || line.contains("used up"));
    let shown: String = shown.collect();
    for word in hint {
        assert!(shown.contains(word), "{given:?}: {word} is missing: {failed:?}");
    }
    for word in not {
        assert!(!shown.contains(word), "{given:?}: {word} does not help: {failed:?}");
    }
    let worked = run(then).await;
    assert_eq!(worked.code, 0, "{given:?}, then {then:?}: {worked:?}");
}

fn write(path: &str) -> Value {
    json!({"name": "write", "input": {"file_path": path, "content": "x"}})
}

const ALLOWS: &str = "[permissions]\nrules = [{ tool = \"write\", path = \"**\", policy = \"allow\" }]\n";
const ASKS: &str = "[permissions]\nrules = [{ tool = \"bash\", policy = \"ask\" }]\n";
const RUNS: &str = "[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n";
const RULE: &str = "a rule in [permissions]";

#[tokio::test]
async fn hints_of_denied_calls_fit_the_mode() {
    let (auto, edits, plan): (&[&str], &[&str], &[&str]) = (&["--mode", "auto"], &["--mode", "accept-edits"], &["--mode", "plan"]);
    let touch = || bash_call("touch made");
    let cases = [
        Case { given: (&[], ""), call: touch(), hint: &["--mode auto", RULE], not: &[], then: (auto, "") },
        Case { given: (&[], ""), call: touch(), hint: &[RULE], not: &[], then: (&[], RUNS) },
        Case { given: (edits, ""), call: touch(), hint: &["--mode auto"], not: &["accept-edits"], then: (auto, "") },
        Case { given: (auto, ASKS), call: touch(), hint: &[RULE], not: &["--mode"], then: (auto, RUNS) },
        Case { given: (&[], ""), call: write("a"), hint: &["--mode accept-edits"], not: &[], then: (edits, "") },
        Case { given: (&[], ""), call: write("a"), hint: &[RULE], not: &[], then: (&[], ALLOWS) },
        Case { given: (&[], ""), call: write(".nuncio/a"), hint: &[RULE], not: &["--mode"], then: (&[], ALLOWS) },
        Case { given: (edits, ""), call: write(".nuncio/a"), hint: &[RULE], not: &["--mode"], then: (edits, ALLOWS) },
        Case { given: (auto, ""), call: write(".nuncio/a"), hint: &[RULE], not: &["--mode"], then: (auto, ALLOWS) },
        Case { given: (auto, ""), call: write("../a"), hint: &[RULE], not: &["--mode"], then: (auto, ALLOWS) },
        Case { given: (plan, ""), call: write("a"), hint: &["--mode auto"], not: &[], then: (auto, "") },
        Case { given: (plan, ""), call: touch(), hint: &["--mode auto"], not: &[], then: (auto, "") },
    ];
    for case in cases {
        check(case).await;
    }
}

#[tokio::test]
async fn hint_of_a_used_up_budget_names_the_source_of_the_limit() {
    let auto: &[&str] = &["--mode", "auto"];
    let flag = |count| ["--mode", "auto", "--max-requests", count];
    let (one, five) = (flag("1"), flag("5"));
    let setting = |count: u32| format!("[budget]\nmax_requests = {count}\n");
    let (low, high) = (setting(1), setting(5));
    for (given, hint, not, then) in [
        ((&one[..], ""), "raise --max-requests", "[budget]", (&five[..], "")),
        ((&one, high.as_str()), "raise --max-requests", "[budget]", (&five, "")),
        ((auto, &low), "raise max_requests in [budget]", "--max-requests", (auto, high.as_str())),
    ] {
        check(Case { given, call: bash_call("true"), hint: &[hint], not: &[not], then }).await;
    }
}

/// Clients of ACP and REST give limits in the same object.
#[tokio::test]
async fn hint_of_a_limit_of_a_client_names_its_parameter() {
    for field in ["maxRequests", "sessionMaxRequests"] {
        for (count, stop) in [(1, "max_turn_requests"), (5, "end_turn")] {
            let home = Home::new();
            let model = home.script(json!([{"tool_calls": [bash_call("true")]}, {"text": "done"}]));
            let mut agent = home.start(&["--mode", "auto", "--model", &model]).await;
            agent.otherwise = Reply::Pick("reject_once");
            agent.call("initialize", json!({"protocolVersion": 1})).await;
            let budget = json!({"nuncio": {"budget": {field: count}}});
            let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": [], "_meta": budget})).await;
            let id = made["sessionId"].as_str().unwrap().to_owned();
            assert_eq!(agent.turn(&id, "go").await.0, stop, "{field}");
            agent.finish().await;
            let exported = home.run(&["sessions", "export", &id], "").await.lines();
            assert_eq!(exported[0]["budget"], json!({field: count}), "{exported:?}");
            let out = home.data().join("out");
            assert_eq!(home.run(&["sessions", "export", &id, "--layout", out.to_str().unwrap()], "").await.code, 0);
            let described: Value = serde_json::from_slice(&std::fs::read(out.join("session.json")).unwrap()).unwrap();
            assert_eq!((&described["budget"], &described["mode"]), (&json!({field: count}), &json!("auto")), "{described}");
            let log = json!(home.log(&id).await).to_string();
            let named =
                log.contains(&format!("or raise {field} of the request")) || log.contains(&format!("or {field} of the request"));
            assert_eq!(named, count == 1, "{field}: {log}");
        }
    }
}
