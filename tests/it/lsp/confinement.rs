//! The confinement of language servers: when the model writes without a question, and after a
//! change of the mode.

use serde_json::{Value, json};

use super::{diagnostics, home, said, setting};
use harness::{Agent, Home, tool};

/// What a server of the mode `probe` reports without and with confinement.
const ALL: &str = "open: ../probe-outside probe-inside";
const INSIDE: &str = "open: probe-inside";

/// A trusted home with a server that reports what is open to it.
async fn probed(settings: &str) -> Home {
    let home = home(&["probe"]);
    home.config(&(home.config_text() + settings));
    home.put("a.x", "");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home
}

/// Runs a turn of a session whose model asks for diagnostics. Returns what the server reports.
async fn told(agent: &mut Agent, session: &str) -> String {
    let (_, updates) = agent.turn(session, "go").await;
    let told = said(&tool(&updates, 0)).0;
    told.replace("a.x:1:1: error: ", "").trim_end().replace(" ../home/token", "")
}

fn turns(count: usize) -> Value {
    json!(std::iter::repeat_n([diagnostics("a.x"), json!({"text": "seen"})], count).flatten().collect::<Vec<_>>())
}

#[tokio::test]
async fn server_is_confined_if_the_model_writes_without_a_question() {
    needs_linux!("sandbox");
    let cases = [
        ("", ALL),
        ("[permissions]\ndefault = \"allow\"\n", INSIDE),
        ("[permissions]\nrules = [{ kind = \"write\", policy = \"allow\" }]\n", INSIDE),
        ("[permissions]\nrules = [{ tool = \"edit\", path = \"src/**\", policy = \"allow\" }]\n", INSIDE),
        ("[permissions]\nrules = [{ kind = \"write\", policy = \"deny\" }]\n", ALL),
        ("[permissions]\nrules = [{ tool = \"read\", policy = \"allow\" }]\n", ALL),
    ];
    for (settings, expected) in cases {
        let home = probed(settings).await;
        let (mut agent, session) = home.session(turns(1), &["--mode", "ask"]).await;
        assert_eq!(told(&mut agent, &session).await, expected, "{settings}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn unconfined_server_stops_when_the_mode_confines_it() {
    needs_linux!("sandbox");
    let home = probed("").await;
    let (mut agent, session) = home.session(turns(3), &["--mode", "ask"]).await;
    assert_eq!(told(&mut agent, &session).await, ALL);
    for mode in ["accept-edits", "ask"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        assert_eq!(told(&mut agent, &session).await, INSIDE, "{mode}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn server_of_a_session_is_confined_for_other_sessions_in_the_directory() {
    needs_linux!("sandbox");
    let home = probed("").await;
    let (mut agent, asking) = home.session(turns(3), &["--mode", "ask"]).await;
    assert_eq!(told(&mut agent, &asking).await, ALL);
    let writing = agent.new_session(&home).await;
    agent.call("session/set_mode", json!({"sessionId": writing, "modeId": "accept-edits"})).await;
    assert_eq!(told(&mut agent, &writing).await, INSIDE);
    assert_eq!(told(&mut agent, &asking).await, INSIDE);
    agent.finish().await;
}

#[tokio::test]
async fn confined_server_that_fails_names_the_setting() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.config(&setting("own", &["sh", "-c", "exit 3"]));
    home.put("a.x", "");
    let (mut agent, session) = home.session(turns(1), &["--mode", "auto"]).await;
    let told = told(&mut agent, &session).await;
    assert!(told.contains("exit code 3 (it runs confined") && told.contains(".lsp.own]"), "{told}");
    agent.finish().await;
}
