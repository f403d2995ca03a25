//! Calls that a replay answers from the record: of the network, of MCP servers, of subagents, and
//! those with another result in a replay.

use serde_json::{Value, json};

use super::{export, replay, repository, session};
use harness::steps::{bash, call, calls};
use harness::{Home, Site};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/server.py");

/// The recorded calls, with the reasons.
fn reasons(home: &Home) -> Value {
    serde_json::from_str::<Value>(&home.get("../recording/session.json").unwrap()).unwrap()["recorded"].take()
}

/// The page, the server and the subagent are gone when the session is replayed.
#[tokio::test]
async fn calls_of_network_servers_and_subagents_are_answered_from_the_record() {
    needs_linux!("sandbox");
    let (home, site) = (repository(), Site::start().await);
    site.page("/page", "200 OK\ncontent-type: text/plain", "the text of the page");
    let child = home.script(json!([{"text": "the report of the subagent"}]));
    let server = home.put("../server.py", &std::fs::read_to_string(SERVER).unwrap());
    home.config(&format!(
        "[mcp.docs]\ncommand = {}\n[roles]\nsubagent = {}\n[permissions]\nrules = [{{ tool = \"fetch\", policy = \"allow\" }}]\n\
         [tools]\nfetch_allowed_hosts = [\"127.0.0.1\"]\n",
        json!(["python3", server]),
        json!(child)
    ));
    let steps = json!([
        calls(&[call("fetch", json!({"url": site.url("/page")}))]),
        calls(&[call("mcp__docs__echo", json!({"text": "said to the server"}))]),
        calls(&[call("task", json!({"description": "Look", "prompt": "Look around."}))]),
        {"text": "ok"},
    ]);
    let id = session(&home, steps, &[]).await;
    let exported = export(&home, &id).await;
    drop(site);
    std::fs::remove_file(server).unwrap();
    let recorded = reasons(&home);
    let why = |call: &str| recorded[call]["why"].as_str().unwrap_or_else(|| panic!("{call}: {exported:?}")).to_owned();
    assert_eq!(
        [why("call_1"), why("call_2"), why("call_3")],
        ["it uses the network", "it uses an MCP server", "it starts a subagent"]
    );
    for line in
        ["call_1, fetch: it uses the network", "call_2, mcp__docs__echo: it uses an MCP server", "the report of the subagent"]
    {
        assert!(exported.stdout.contains(line), "{line}: {exported:?}");
    }
    let ran = replay(&home, &[]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = home.get("../recording/expected/requests.json").unwrap();
    for text in ["the text of the page", "the report of the subagent"] {
        assert!(requests.contains(text), "{text}: {requests}");
    }
}

/// A command that reads what the recording does not have is answered from the record.
#[tokio::test]
async fn call_whose_files_are_not_known_is_answered_from_the_record() {
    needs_linux!("sandbox");
    let home = repository();
    let outside = home.put("../outside.txt", "from outside\n");
    let steps = json!([bash(&format!("cat {}", outside.display())), bash("cat total.sh"), {"text": "ok"}]);
    let id = session(&home, steps, &[]).await;
    let exported = export(&home, &id).await;
    std::fs::remove_file(outside).unwrap();
    assert_eq!(reasons(&home).as_object().unwrap().keys().collect::<Vec<_>>(), ["call_1"], "{exported:?}");
    assert!(
        exported
            .stdout
            .contains("answered from the record: call_1, bash: its files or programs cannot be rebuilt; 12 bytes: from outside"),
        "{exported:?}"
    );
    assert_eq!(replay(&home, &[]).await.code, 0);
}

/// A recorded output that has a date is the same on another day.
#[tokio::test]
async fn date_in_a_recorded_output_is_equal_on_another_day() {
    needs_linux!("sandbox");
    let home = repository();
    let today = std::process::Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
    let today = String::from_utf8(today).unwrap().trim().to_owned();
    let outside = home.put("../outside.txt", &format!("built on {today}\n"));
    let id = session(&home, json!([bash(&format!("cat {}", outside.display())), {"text": "ok"}]), &[]).await;
    export(&home, &id).await;
    std::fs::remove_file(outside).unwrap();
    let recorded = home.get("../recording/recorded.json").unwrap();
    assert!(recorded.contains(&today), "{recorded}");
    home.put("../recording/recorded.json", &recorded.replace(&today, "2020-02-29"));
    let ran = replay(&home, &[]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
}
