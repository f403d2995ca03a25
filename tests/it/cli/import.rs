//! `nuncio sessions import`: what a file may decide, and what not.

use serde_json::{Value, json};

use super::check;
use crate::harness::Home;

#[tokio::test]
async fn a_file_does_not_decide_how_much_may_be_done_unasked() {
    let home = Home::new();
    let model = home.script(json!([{"text": "worked"}]));
    check(&home.run(&["run", "--model", &model, "--mode", "auto", "go"], "").await, 0, &["worked"]);
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_string();
    let mut lines = home.run(&["sessions", "export", &id], "").await.lines();
    lines[0]["mode"] = json!("auto");
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.put("session.jsonl", &file);

    let mut modes = Vec::new();
    for (arguments, input) in [(["sessions", "import", "session.jsonl"], ""), (["sessions", "import", "-"], file.as_str())] {
        let imported = home.run(&arguments, input).await;
        check(&imported, 0, &["sess_"]);
        let session = imported.stdout.trim().to_string();
        let mut agent = home.start(&["--model", &model]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let loaded = agent.call("session/load", json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
        modes.push(loaded["modes"]["currentModeId"].clone());
        agent.finish().await;
    }
    assert_eq!(modes, ["ask", "ask"].map(Value::from));
}
