//! Environment variables with which the programs of a session find it.

use serde_json::json;

use harness::Home;
use harness::steps::calls;

/// Prints the variables.
const PRINT: &str =
    "echo $NUNCIO_SESSION $NUNCIO_WORKSPACE ${NUNCIO_HTTP-unset} ${NUNCIO_AGENT_PORT-unset} ${NUNCIO_AGENT_SESSION-unset}";

/// A home in whose environment an outer nuncio has set the variables.
fn home() -> Home {
    let home = Home::new();
    for name in ["NUNCIO_SESSION", "NUNCIO_WORKSPACE", "NUNCIO_HTTP", "NUNCIO_AGENT_PORT", "NUNCIO_AGENT_SESSION"] {
        home.env(name, "outer");
    }
    home
}

#[tokio::test]
async fn programs_of_a_session_find_it() {
    let home = home();
    let hook = format!(
        "[[hooks]]\nevent = \"tool.execute.after\"\nmatch = \"bash\"\ncommand = [\"sh\", \"-c\", '{PRINT} > \"$NUNCIO_WORKSPACE/hook\"']\n"
    );
    home.config(&hook);
    let bash = json!({"name": "bash", "input": {"command": format!("{PRINT} > bash")}});
    let verify = json!({"name": "verify", "input": {"commands": [format!("{PRINT} > verify")]}});
    let model = home.script(json!([calls(&[bash, verify]), {"text": "done"}]));
    let (mut agent, bridge) = home.start_with_bridge(&["--mode", "auto", "--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
    let expected = format!("{session} {} http://{} unset unset\n", home.work().display(), bridge.address);
    for name in ["bash", "verify", "hook"] {
        assert_eq!(home.get(name).as_deref(), Some(expected.as_str()), "{name}");
    }
}

#[tokio::test]
async fn variables_without_a_value_are_unset() {
    let home = home();
    let input = json!({"command": PRINT}).to_string();
    let ran = home.run(&["tool", "--mode", "auto", "bash", &input], "").await;
    assert_eq!(ran.lines()[0]["output"], format!("{} unset unset unset\nexit code: 0", home.work().display()), "{ran:?}");
}
