//! Permission requests that describe a call only by its title, as Gemini CLI does, or not at all.

use serde_json::{Value, json};

use super::{bodies, session, setting, trust};
use harness::{Home, Reply, text};

const RULES: &str = r#"[permissions]
rules = [
  { tool = "bash", pattern = "rm *", policy = "deny" },
  { tool = "bash", pattern = "touch *", policy = "allow" },
]
"#;

/// The mode, a prompt, and then the answer to the agent and the number of questions to the client,
/// which rejects.
type Case = (&'static str, &'static str, &'static str, usize);

async fn check(rules: &str, cases: &[Case]) {
    let home = Home::new();
    home.config(&(rules.to_owned() + &setting("other", &[])));
    trust(&home).await;
    home.put("sub/file", "");
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    for (mode, prompt, said, asked) in cases {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let before = agent.questions();
        let (_, updates) = agent.turn(&session, prompt).await;
        let found = (text(&updates, "agent_message_chunk"), agent.questions() - before);
        assert_eq!(found, ((*said).to_owned(), *asked), "{mode}: {prompt}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn rules_apply_to_a_command_that_is_only_in_the_title() {
    check(
        RULES,
        &[
            ("ask", "gemini touch made", "[yes]", 0),
            ("ask", "old-gemini touch made", "[yes]", 0),
            ("ask", "gemini echo hi", "[no]", 1),
            ("auto", "gemini rm made", "[no]", 0),
            ("auto", "old-gemini rm made", "[no]", 0),
            ("auto", "gemini touch x; rm made", "[no]", 0),
            ("plan", "gemini touch made", "[no]", 0),
        ],
    )
    .await;
    let path = "[permissions]\nrules = [{ tool = \"bash\", path = \"sub/**\", policy = \"deny\" }, { tool = \"bash\", path = \"sub\", policy = \"deny\" }]\n";
    check(path, &[("auto", "gemini-sub echo hi", "[no]", 0), ("auto", "gemini echo hi", "[yes]", 0)]).await;
}

#[tokio::test]
async fn commands_in_titles_run_without_a_client_in_mode_auto() {
    let home = Home::new();
    home.config(&setting("other", &[]));
    trust(&home).await;
    for prompt in ["gemini echo hi", "old-gemini echo hi", "titled Run the tests"] {
        let ran = home.run(&["run", "--agent", "other", "--mode", "auto", prompt], "").await;
        assert!(ran.code == 0 && ran.stdout.contains("[yes]"), "{prompt}: {ran:?}");
    }
}

#[tokio::test]
async fn title_that_may_be_no_command_counts_as_any_command() {
    check(
        RULES,
        &[
            ("ask", "titled touch made", "[no]", 1),
            ("auto", "titled rm made", "[no]", 0),
            ("auto", "titled Run the tests", "[no]", 1),
            ("auto", "titled `rm made`", "[no]", 0),
            // The description could contain the end of the command.
            ("ask", "twice touch made", "[no]", 1),
            ("auto", "twice rm made", "[no]", 0),
        ],
    )
    .await;
}

#[tokio::test]
async fn request_without_kind_and_input_is_never_allowed_by_the_mode() {
    check("", &[("auto", "nameless touch made", "[no]", 1), ("auto", "nothing touch made", "[no]", 1)]).await;
    check("[permissions]\ndefault = \"allow\"\n", &[("ask", "nameless touch made", "[no]", 1)]).await;
}

#[tokio::test]
async fn option_id_with_two_kinds_refuses() {
    let home = Home::new();
    home.config(&setting("other", &[]));
    trust(&home).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "same"}}));
    let (_, updates) = agent.turn(&session, "twins touch made").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "[same]");
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    // The id would not tell the agent that the call is allowed.
    let (_, updates) = agent.turn(&session, "twins touch made").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "[cancelled]");
    agent.finish().await;
    let resolved: Vec<Value> = bodies(&home, &session, &["permission.resolved"]).await;
    assert_eq!(resolved[0]["outcome"], "reject_once", "{resolved:?}");
}
