//! Rules that answers to permission requests add: to the session, or to the user's settings for its
//! directory. They are listed, and removed.

use serde_json::{Value, json};

use harness::steps::bash;
use harness::{Agent, Home, Reply};

const RULES: &str = "_nuncio/permission/rules";
const REMOVE: &str = "_nuncio/permission/rules/remove";

fn steps(calls: &[&str]) -> Value {
    calls.iter().flat_map(|command| [bash(command), json!({"text": "so be it"})]).collect()
}

/// The removable rules of a session: the scope and the rule.
async fn removable(agent: &mut Agent, session: &str) -> Vec<(Value, Value)> {
    let listed = agent.call(RULES, json!({"sessionId": session})).await;
    let rules = listed["rules"].as_array().unwrap().iter().filter(|rule| rule["removable"] == true);
    rules.map(|rule| (rule["scope"].clone(), rule["rule"].clone())).collect()
}

async fn remove(agent: &mut Agent, session: &str, rule: &(Value, Value)) {
    agent.call(REMOVE, json!({"sessionId": session, "scope": rule.0, "rule": rule.1})).await;
}

/// Runs a turn. Returns the number of its permission requests, which are answered with `option`.
async fn asked(agent: &mut Agent, session: &str, option: &'static str) -> usize {
    let before = agent.questions();
    agent.otherwise = Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    agent.turn(session, "go").await;
    agent.questions() - before
}

#[tokio::test]
async fn rule_of_a_session_is_listed_and_removed() {
    let home = Home::new();
    let (mut agent, session) = home.session(steps(&["echo a > a"; 4]), &[]).await;
    assert_eq!(asked(&mut agent, &session, "allow_always").await, 1);
    assert_eq!(asked(&mut agent, &session, "allow_always").await, 0);
    let rules = removable(&mut agent, &session).await;
    assert_eq!((rules.len(), &rules[0].0, &rules[0].1["policy"]), (1, &json!("session"), &json!("allow")), "{rules:?}");
    remove(&mut agent, &session, &rules[0]).await;
    assert!(removable(&mut agent, &session).await.is_empty());
    let again = agent.request(REMOVE, json!({"sessionId": session, "scope": "session", "rule": rules[0].1})).await;
    assert_eq!(again.unwrap_err()["code"], -32002);
    assert_eq!(asked(&mut agent, &session, "allow_once").await, 1);
    agent.finish().await;
    // The rule is still removed after a restart.
    let mut agent = home.start(&["--model", &home.script(steps(&["echo a > a"]))]).await;
    agent.load(&home, &session).await;
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 1);
    agent.finish().await;
}

#[tokio::test]
async fn rule_of_a_directory_is_in_the_settings_and_applies_there() {
    for before in ["# mine\n", "[[permissions.rules]]\ntool = \"fetch\"\npolicy = \"deny\"\n", "[permissions]\nrules = []\n"] {
        let home = Home::new();
        home.config(before);
        let call = "echo a && echo b > made";
        let (mut agent, session) = home.session(steps(&[call, call, "echo c > c"]), &[]).await;
        assert_eq!(asked(&mut agent, &session, "allow_project").await, 1);
        assert_eq!(asked(&mut agent, &session, "reject_once").await, 0);
        assert_eq!(asked(&mut agent, &session, "reject_once").await, 1, "another command");
        let text = home.config_text();
        assert_eq!(removable(&mut agent, &session).await.len(), 1, "{text}");
        assert!(text.contains(before.trim_end_matches("rules = []\n")), "{text}");
        assert!(text.contains(&format!("directory = \"{}\"", home.work().display())), "{text}");
        // Another session of this process, and then of another one, in the directory and elsewhere.
        let other = agent.new_session(&home).await;
        assert_eq!(asked(&mut agent, &other, "reject_once").await, 0, "{text}");
        agent.finish().await;
        let mut agent = home.start(&["--model", &home.script(steps(&[call, call]))]).await;
        let session = agent.new_session(&home).await;
        assert_eq!(asked(&mut agent, &session, "reject_once").await, 0);
        home.put("../elsewhere/x", "");
        let elsewhere = json!({"cwd": home.work().join("../elsewhere").canonicalize().unwrap(), "mcpServers": []});
        let elsewhere = agent.call("session/new", elsewhere).await["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(asked(&mut agent, &elsewhere, "reject_once").await, 1);
        let rules = removable(&mut agent, &session).await;
        assert_eq!((rules.len(), &rules[0].0), (1, &json!("user")), "{rules:?}");
        remove(&mut agent, &session, &rules[0]).await;
        assert_eq!(asked(&mut agent, &session, "reject_once").await, 1);
        assert!(!home.config_text().contains("directory"), "{}", home.config_text());
        agent.finish().await;
    }
}

/// A named token may allow a call, but not change the settings.
#[tokio::test]
async fn only_the_owner_may_keep_a_rule_in_the_settings() {
    let home = Home::new();
    let server = home.serve_script(steps(&["echo a > a", "echo b > b"]), &[]).await;
    let made = home.run(&["token", "new", "helper", "--role", "controller"], "").await;
    let helper = server.with_token(made.stdout.trim());
    let session = server.new_session(&home).await;
    let mut events = helper.follow(&session).events().await;
    server.begin(&session, "go").await;
    let requested = events.until("permission.requested").await.pop().unwrap().event;
    let ids = |options: &Value| Vec::from_iter(options.as_array().unwrap().iter().map(|option| option["optionId"].clone()));
    assert!(!ids(&requested["body"]["options"]).contains(&json!("allow_project")), "{requested}");
    let id = requested["body"]["permissionId"].as_str().unwrap().to_owned();
    for (bridge, is_offered) in [(&*server, true), (&helper, false)] {
        let listed = bridge.get("/v1/permissions").expect(200).await;
        assert_eq!(ids(&listed["permissions"][0]["options"]).contains(&json!("allow_project")), is_offered, "{listed}");
    }
    let (path, answer) = (format!("/v1/permissions/{id}"), json!({"optionId": "allow_project"}));
    helper.post(&path, &answer).expect(403).await;
    server.post(&path, &answer).expect(200).await;
    events.until("turn.completed").await;
    let rules = server.get(&format!("/v1/sessions/{session}/rules")).expect(200).await;
    let kept = rules["rules"].as_array().unwrap().iter().find(|rule| rule["scope"] == "user").unwrap().clone();
    let (path, params) = (format!("/v1/sessions/{session}/rules/remove"), json!({"scope": "user", "rule": kept["rule"]}));
    helper.post(&path, &params).expect(403).await;
    server.post(&path, &params).expect(200).await;
    server.stop().await;
}

/// The rule is for exactly the call that was shown, in exactly this directory, and does not precede
/// a rule of the user that denies.
#[tokio::test]
async fn kept_rule_allows_no_more_than_was_shown() {
    let home = Home::new();
    home.config("[[permissions.rules]]\ntool = \"bash\"\npath = \"prod/**\"\npolicy = \"deny\"\n");
    for directory in ["prod", "vendor", "inner"] {
        home.put(&format!("{directory}/x"), "");
    }
    let there = |directory: &str| json!({"tool_calls": [{"name": "bash", "input": {"command": "echo a > a", "cwd": directory}}]});
    let done = json!({"text": "so be it"});
    let steps = json!([
        bash("echo a > a"),
        done,
        bash("echo a > a"),
        done,
        there("vendor"),
        done,
        there("prod"),
        done,
        bash("echo b > b"),
        done,
        bash("echo a > a"),
        done
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    assert_eq!(asked(&mut agent, &session, "allow_project").await, 1);
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 0);
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 1, "another directory of the shell");
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 0, "denied by the user's rule");
    assert!(home.get("prod/a").is_none() && home.get("vendor/a").is_none() && home.get("a").is_some());
    // Another process adds a rule, and removes all.
    let text = home.config_text();
    home.exact_config(&text.replace("echo a > a", "echo b > b"));
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 0, "the other rule: {text}");
    home.exact_config("");
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 1, "the rule is gone");
    agent.finish().await;
}

#[tokio::test]
async fn kept_rule_does_not_hold_below_its_directory() {
    let home = Home::new();
    home.put("inner/x", "");
    let (mut agent, session) = home.session(steps(&["echo a > a", "echo a > a"]), &[]).await;
    assert_eq!(asked(&mut agent, &session, "allow_project").await, 1);
    let params = json!({"cwd": home.work().join("inner"), "mcpServers": []});
    let inner = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(asked(&mut agent, &inner, "reject_once").await, 1);
    assert!(removable(&mut agent, &inner).await.is_empty());
    agent.finish().await;
}

/// Such a rule has the digest of the tool's definition, and leaves the settings valid.
#[tokio::test]
async fn rule_of_an_mcp_tool_is_kept() {
    let home = crate::mcp::home(&[]);
    let call = json!({"tool_calls": [{"name": "mcp__docs__echo", "input": {"text": "x"}}]});
    let (mut agent, session) = home.session(json!([call, {"text": "one"}, call, {"text": "two"}]), &[]).await;
    assert_eq!(asked(&mut agent, &session, "allow_project").await, 1);
    assert_eq!(asked(&mut agent, &session, "reject_once").await, 0);
    let again = agent.new_session(&home).await;
    assert_eq!(asked(&mut agent, &again, "reject_once").await, 0);
    agent.finish().await;
    let ran = home.run(&["config", "check"], "").await;
    assert_eq!(ran.code, 0, "{ran:?} {}", home.config_text());
}
