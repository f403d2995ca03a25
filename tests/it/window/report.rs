//! The report of the tokens in the context window, and compaction over REST.

use serde_json::{Value, json};

use super::{asks_for_summary, calls, connect, home, says};
use harness::{Agent, text};

fn sum(report: &Value) -> u64 {
    let sources = report["sources"].as_object().unwrap();
    sources.iter().filter(|(name, _)| *name != "free").map(|(_, tokens)| tokens.as_u64().unwrap()).sum()
}

#[tokio::test]
async fn report_tells_tokens_by_source() {
    let (home, provider) = home(100_000, "").await;
    let mut number = 0;
    provider.respond(move |received| {
        number += 1;
        match number {
            1 => calls(received, "call-1", "read", json!({ "file_path": "a.txt" })),
            _ if asks_for_summary(received) => says(received, "SUMMARY"),
            _ => says(received, "Hello"),
        }
    });
    home.put("AGENTS.md", &"Follow these instructions. ".repeat(40));
    home.put("a.txt", &(0..4_000).map(|line| format!("{line} ")).collect::<String>());
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let before = agent.call("_nuncio/session/context", json!({ "sessionId": session })).await;
    assert_eq!(
        (&before["measured"], &before["contextWindow"], &before["compactAt"]),
        (&json!(false), &json!(100_000), &json!(80_000))
    );
    for source in ["system", "tools", "instructions"] {
        assert!(before["sources"][source].as_u64().unwrap() > 100, "{source}: {before}");
    }
    // The rest of a division.
    assert!(before["sources"]["toolResults"] == 0 && before["sources"]["messages"].as_u64().unwrap() < 10, "{before}");
    agent.turn(&session, "read the file").await;
    let (_, updates) = agent.turn(&session, "/context").await;
    let table = text(&updates, "agent_message_chunk");
    assert!(table.contains("| Tool results |") && table.contains("test/model"), "{table}");
    let after = agent.call("_nuncio/session/context", json!({ "sessionId": session })).await;
    assert_eq!(after["measured"], true);
    assert!(after["sources"]["toolResults"].as_u64().unwrap() > 2_000, "{after}");
    for report in [&before, &after] {
        assert_eq!(sum(report), report["tokens"].as_u64().unwrap(), "{report}");
        assert_eq!(report["tokens"].as_u64().unwrap() + report["sources"]["free"].as_u64().unwrap(), 100_000, "{report}");
    }
    agent.finish().await;

    let server = home.serve(&[]).await;
    let report = server.get(&format!("/v1/sessions/{session}/context")).expect(200).await;
    assert_eq!(report["tokens"], after["tokens"], "another process");
    let ended = server.post(&format!("/v1/sessions/{session}/compact"), &json!({ "focus": "files" })).expect(200).await;
    assert_eq!(ended["stopReason"], "end_turn");
    let compacted = server.get(&format!("/v1/sessions/{session}/context")).expect(200).await;
    assert_eq!(compacted["sources"]["toolResults"], 0, "{compacted}");
    assert!(compacted["tokens"].as_u64() < after["tokens"].as_u64(), "{compacted}");
    server.stop().await;
    provider.finish().await;
}

#[tokio::test]
async fn list_of_skills_is_part_of_the_system_prompt() {
    let (home, provider) = home(100_000, "").await;
    home.put("AGENTS.md", &"Follow these instructions. ".repeat(40));
    let mut agent = connect(&home).await;
    let sources = async |agent: &mut Agent| {
        let session = agent.new_session(&home).await;
        let report = agent.call("_nuncio/session/context", json!({ "sessionId": session })).await;
        ["system", "instructions"].map(|source| report["sources"][source].as_u64().unwrap())
    };
    let [system, instructions] = sources(&mut agent).await;
    for name in ["paint", "sand", "wash"] {
        let skill = format!("---\nname: {name}\ndescription: {}\n---\nText.", "Treats a wall. ".repeat(10));
        home.put(&format!(".nuncio/skills/{name}/SKILL.md"), &skill);
    }
    let with_skills = sources(&mut agent).await;
    assert!(with_skills[0] > system + 100, "{system}, then {with_skills:?}");
    assert!(with_skills[1].abs_diff(instructions) <= 1, "{instructions}, then {with_skills:?}");
    agent.finish().await;
    provider.finish().await;
}
