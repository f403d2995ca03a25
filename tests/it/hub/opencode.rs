//! Sessions in a server of OpenCode.

use serde_json::{Value, json};

use super::{bodies, hosted, session, trust};
use harness::{Agent, Home, Reply, gone, text, tool};

pub const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/opencode.py");

/// A home with the test server as the agent `other`, and these settings of it.
pub async fn home(flags: &[&str], settings: &str) -> Home {
    let command: Vec<&str> = ["python3", SERVER].into_iter().chain(flags.iter().copied()).collect();
    let home = Home::new();
    home.env("NUNCIO_TEST_VALUE", "a \"value\"");
    home.config(&format!(
        "[agents]\nallowed = [\"other\"]\n[agents.other]\nkind = \"opencode\"\ncommand = {}\n{settings}",
        json!(command)
    ));
    trust(&home).await;
    home
}

#[tokio::test]
async fn messages_thoughts_and_usage_are_forwarded() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "say it").await;
    assert_eq!(stop, "end_turn");
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello, world");
    assert_eq!(text(&updates, "agent_thought_chunk"), "thinking");
    let usage = updates.iter().find(|update| update["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!((&usage["used"], &usage["size"], &usage["cost"]["amount"]), (&json!(1225), &json!(200_000), &json!(0.25)));
    agent.finish().await;
    let messages = bodies(&home, &session, &["message.completed"]).await;
    assert_eq!(messages.len(), 3, "{messages:?}");
}

#[tokio::test]
async fn unknown_events_and_questions_do_not_stop_the_turn() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    for (prompt, expected) in [("garbage", "still here"), ("retry", "tried again"), ("question", "[reject]"), ("stuck", "stuck")] {
        let (stop, updates) = agent.turn(&session, prompt).await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", expected), "{prompt}");
    }
    agent.finish().await;
    let notices = bodies(&home, &session, &["notice"]).await;
    assert!(notices.iter().any(|notice| notice["description"] == "too many requests"), "{notices:?}");
}

#[tokio::test]
async fn clients_and_the_mode_decide_about_calls() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    // The prompt, the answers of the client, the text, and the number of questions.
    let cases: &[(&str, &[Reply], &str, usize)] = &[
        ("run touch once", &[Reply::Pick("allow_once")], "[once]", 1),
        ("run touch always", &[Reply::Pick("allow_always")], "[always]", 1),
        ("run touch rejected", &[Reply::Pick("reject_once")], "[reject]", 1),
        ("late touch late", &[Reply::Pick("allow_once")], "[once]", 1),
        ("again touch again", &[Reply::Pick("reject_once")], "[reject][reject][reject]", 1),
        ("hidden touch hidden", &[Reply::Pick("allow_once")], "[once]", 1),
    ];
    for (prompt, replies, expected, asked) in cases {
        let before = agent.questions();
        agent.replies = replies.iter().cloned().collect();
        agent.otherwise = Reply::Error;
        assert_eq!(agent.reply(&session, prompt).await, *expected, "{prompt}");
        assert_eq!(agent.questions() - before, *asked, "{prompt}");
        let file = prompt.rsplit(' ').next().unwrap();
        assert_eq!(home.get(file).is_some(), !expected.contains("reject"), "{prompt}");
    }
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission");
    let titles: Vec<&Value> = asked.map(|frame| &frame["params"]["toolCall"]["title"]).collect();
    assert_eq!((titles[0], titles[3]), (&json!("touch once"), &json!("touch late")));
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    let before = agent.questions();
    assert_eq!((agent.reply(&session, "late echo").await.as_str(), agent.questions() - before), ("[once]", 0));
    agent.finish().await;
}

#[tokio::test]
async fn mode_plan_uses_the_agent_plan_and_denies_edits() {
    let home = home(&[], "").await;
    home.put("a.txt", "one\n");
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    assert_eq!(agent.reply(&session, "mode").await, "(none)");
    let (_, updates) = agent.turn(&session, "edit").await;
    let call = tool(&updates, 0);
    assert_eq!(
        (&call["status"], &call["kind"], &call["content"][0]["newText"]),
        (&json!("completed"), &json!("edit"), &json!("two"))
    );
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "agent.mode", "value": "plan"})).await;
    assert_eq!(agent.reply(&session, "mode").await, "plan");
    let (_, updates) = agent.turn(&session, "edit").await;
    assert_eq!(tool(&updates, 0)["status"], "failed");
    agent.finish().await;
}

#[tokio::test]
async fn text_is_complete_after_the_event_stream_was_cut() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.reply(&session, "cut").await, "Hello, lost world");
    agent.finish().await;
}

#[tokio::test]
async fn cancelled_turn_ends_and_the_next_one_works() {
    // The server reports the end of a call after the first of two reports that it is idle.
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    for (start, last) in [("wait", "Tool execution aborted"), ("run touch made", "Tool execution aborted"), ("hang", "")] {
        let id = agent.prompt(&session, start).await;
        match start {
            "wait" => agent.until_update("tool_call").await,
            "hang" => agent.until_update("agent_message_chunk").await,
            _ => agent.until_question().await,
        };
        agent.cancel(&session, &id).await;
        let ended = bodies(&home, &session, &["tool.completed"]).await;
        let output = ended.last().map(|body| body["output"][0]["text"].to_string()).unwrap_or_default();
        assert!(output.contains(last), "{start}: {output}");
        assert_eq!(agent.reply(&session, "say").await, "Hello, world", "{start}");
    }
    agent.finish().await;
    assert_eq!(home.get("made"), None);
}

/// Runs a prompt whose turn fails. Returns the error's code and message.
async fn failure(flags: &[&str], text: &str) -> (String, String) {
    let home = home(flags, "").await;
    let (mut agent, session) = session(&home, &[]).await;
    let failed = agent.failure(&session, text).await;
    agent.finish().await;
    let error = bodies(&home, &session, &["turn.failed"]).await.remove(0);
    assert_eq!(error["code"], failed["data"]["code"]);
    (error["code"].as_str().unwrap().into(), error["message"].as_str().unwrap().into())
}

#[tokio::test]
async fn failures_have_a_cause() {
    for (flags, text, code, message) in [
        (&["broken"][..], "say", "agent_unavailable", "agent other: its process ended with exit code 1: Error: config is invalid"),
        (&["open"], "say", "agent_unavailable", "agent other: its server does not ask for the password"),
        (&[], "error", "model_error", "agent other: quota exceeded"),
        (&[], "silent", "model_error", "agent other: it ended the turn without an answer"),
        (&[], "crash", "agent_unavailable", "agent other: its process ended with exit code 3: out of memory"),
    ] {
        assert_eq!(failure(flags, text).await, (code.into(), message.into()), "{flags:?} {text}");
    }
}

#[tokio::test]
async fn server_starts_on_another_port_if_its_port_is_in_use() {
    let home = home(&["used"], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.reply(&session, "say").await, "Hello, world");
    agent.finish().await;
}

#[tokio::test]
async fn session_continues_after_a_crash_and_after_a_restart() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    let before = agent.reply(&session, "server").await;
    let attach = home.run(&["agents", "attach", &session], "").await;
    let place = before.split(' ').skip(1).collect::<Vec<_>>().join(" --session ");
    assert!(attach.stdout.contains(&format!("opencode.py attach http://127.0.0.1:{place}\n")), "{attach:?}");
    agent.failure(&session, "crash").await;
    let after = agent.reply(&session, "server").await;
    let (before, after): (Vec<&str>, Vec<&str>) = (before.split(' ').collect(), after.split(' ').collect());
    assert_eq!((before[0] == after[0], &before[1..]), (false, &after[1..]));
    let marker = agent.marker.clone();
    agent.kill().await;
    gone(&marker).await;
    let attach = home.run(&["agents", "attach", &session], "").await;
    assert!(attach.code != 0 && attach.stderr.contains("no server runs"), "{attach:?}");
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    assert_eq!(agent.reply(&session, "history").await, "server / crash / server / history");
    agent.finish().await;
}

#[tokio::test]
async fn sessions_share_a_server_by_scope() {
    for (scope, shared) in [("session", false), ("workspace", true)] {
        let home = home(&[], &format!("scope = \"{scope}\"\n")).await;
        let (mut agent, first) = session(&home, &[]).await;
        let second = hosted(&mut agent, &home, "other").await;
        let (one, two) = (agent.reply(&first, "server").await, agent.reply(&second, "server").await);
        let (one, two): (Vec<&str>, Vec<&str>) = (one.split(' ').collect(), two.split(' ').collect());
        assert_eq!((one[0] == two[0], one[2] == two[2]), (shared, false), "{scope}");
        // Each turn gets the events of its own session only.
        let id = agent.prompt(&first, "wait").await;
        agent.until_update("tool_call").await;
        assert_eq!(agent.reply(&second, "say").await, "Hello, world", "{scope}");
        agent.cancel(&first, &id).await;
        let marker = agent.marker.clone();
        agent.finish().await;
        gone(&marker).await;
    }
}

#[tokio::test]
async fn settings_become_the_environment_of_the_server() {
    let home = home(&[], "config = '{\"username\": \"${NUNCIO_TEST_VALUE}\"}'\n").await;
    let (mut agent, session) = session(&home, &[]).await;
    let content: Value = serde_json::from_str(&agent.reply(&session, "env OPENCODE_CONFIG_CONTENT").await).unwrap();
    assert_eq!(content["username"], "a \"value\"");
    let permission: Value = serde_json::from_str(&agent.reply(&session, "env OPENCODE_PERMISSION").await).unwrap();
    assert_eq!((&permission["*"], &permission["todowrite"]), (&json!("ask"), &json!("allow")));
    let rules: Value = serde_json::from_str(&agent.reply(&session, "rules").await).unwrap();
    assert_eq!(rules[0], json!({"permission": "*", "pattern": "*", "action": "ask"}));
    assert_eq!(agent.reply(&session, "env OPENCODE_DISABLE_AUTOUPDATE").await, "1");
    agent.finish().await;
    let ran = home.run(&["agents", "check", "other"], "").await;
    assert!(ran.code == 0 && ran.stdout.contains("9.9.9") && ran.stdout.contains("options: mode, model"), "{ran:?}");
}

#[tokio::test]
async fn models_agents_and_commands_are_offered() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.reply(&session, "model").await, "(none)");
    let set = |option: &str, value: &str| json!({"sessionId": session, "configId": option, "value": value});
    let options = agent.call("session/set_config_option", set("agent.mode", "careful")).await;
    let shown: Vec<(&str, &str, usize)> = options["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| {
            (option["id"].as_str().unwrap(), option["currentValue"].as_str().unwrap(), option["options"].as_array().unwrap().len())
        })
        .collect();
    assert_eq!(shown[1..], [("agent.mode", "build", 3), ("agent.model", "fake/model", 2)]);
    agent.call("session/set_config_option", set("agent.model", "fake/other")).await;
    for (prompt, expected) in [
        ("mode", "careful"),
        ("model", "fake/other"),
        ("/greet you all", "greeted you all"),
        ("/greet mode", "careful"),
        ("/none", ""),
    ] {
        let answer = agent.reply(&session, prompt).await;
        assert!(answer == expected || expected.is_empty() && answer.ends_with("/none"), "{prompt}: {answer}");
    }
    let updates = harness::session_updates(&agent.frames, &session);
    let commands = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    assert_eq!(commands["availableCommands"][0]["name"], "greet");
    agent.finish().await;
    // The text of a command is not a message of the user.
    let messages = bodies(&home, &session, &["message.completed"]).await;
    assert!(messages.iter().all(|message| message["parts"][0]["text"] != "echo greeted you all"), "{messages:?}");
}

/// Does what `words` say in the terminal client of OpenCode.
pub async fn terminal_client(home: &Home, session: &str, words: &str) {
    let attach = home.run(&["agents", "attach", session], "").await;
    let line = format!("{} {words}", attach.stdout.trim());
    let ran = tokio::process::Command::new("sh").args(["-c", &line]).current_dir(home.work()).output().await.unwrap();
    assert!(ran.status.success(), "{line}: {ran:?}");
}

/// Waits until the session has had `count` turns. Returns them.
pub async fn turns(agent: &mut Agent, session: &str, count: usize) -> Vec<Value> {
    let wait = async {
        loop {
            let list =
                agent.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"].as_array().unwrap().clone();
            if list.len() == count && list.iter().all(|turn| turn["status"] != "running") {
                return list;
            }
        }
    };
    harness::bounded("the turns have ended", wait).await
}

#[tokio::test]
async fn turn_of_another_client_is_recorded() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say it").await;
    for (words, expected) in [("echo from the terminal", "from the terminal"), ("cut", "Hello, lost world")] {
        let before = agent.frames.len();
        let known = bodies(&home, &session, &["turn.started"]).await.len();
        terminal_client(&home, &session, words).await;
        let list = turns(&mut agent, &session, known + 1).await;
        let last = list.last().unwrap();
        assert_eq!((&last["by"], &last["stopReason"]), (&json!("opencode-tui"), &json!("end_turn")), "{words}");
        // The updates may follow the answer about the turns.
        let shown = |agent: &Agent| text(&harness::session_updates(&agent.frames[before..], &session), "agent_message_chunk");
        let wait = async {
            while shown(&agent) != expected {
                agent.frame().await.expect("the output ended");
            }
        };
        harness::bounded(expected, wait).await;
    }
    assert_eq!(agent.reply(&session, "say it").await, "Hello, world");
    // The other client may be faster than nuncio after a turn.
    agent.reply(&session, "later echo at once").await;
    let list = turns(&mut agent, &session, 6).await;
    assert_eq!(list[5]["by"], "opencode-tui");
    agent.finish().await;
    let messages = bodies(&home, &session, &["message.completed"]).await;
    let users: Vec<&str> =
        messages.iter().filter(|body| body["role"] == "user").map(|body| body["parts"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(users, ["say it", "echo from the terminal", "cut", "say it", "later echo at once", "echo at once"]);
}

#[tokio::test]
async fn prompt_waits_for_the_turn_of_another_client() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.turn(&session, "say it").await;
    agent.otherwise = Reply::Never;
    terminal_client(&home, &session, "run touch made").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let prompt = agent.prompt(&session, "echo after it").await;
    // The first answer counts.
    terminal_client(&home, &session, "reply once").await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    let list = turns(&mut agent, &session, 3).await;
    assert_eq!((&list[1]["by"], &list[1]["status"]), (&json!("opencode-tui"), &json!("completed")));
    agent.finish().await;
    assert!(home.get("made").is_some());
    let resolved = bodies(&home, &session, &["permission.resolved"]).await;
    assert_eq!((resolved.len(), &resolved[0]["outcome"]), (1, &json!("cancelled")));
}

#[tokio::test]
async fn clients_of_nuncio_decide_about_the_turn_of_another_client() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.turn(&session, "say it").await;
    agent.replies = [Reply::Pick("allow_once"), Reply::Pick("reject_once")].into_iter().collect();
    for (file, count) in [("one", 2), ("two", 3)] {
        terminal_client(&home, &session, &format!("run touch {file}")).await;
        turns(&mut agent, &session, count).await;
    }
    assert_eq!((home.get("one").is_some(), home.get("two").is_some()), (true, false));
    agent.finish().await;
}

#[tokio::test]
async fn turn_of_another_client_is_cancelled_by_both() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say it").await;
    for (count, by_nuncio) in [(2, true), (3, false)] {
        terminal_client(&home, &session, "wait").await;
        agent.until_update("tool_call").await;
        match by_nuncio {
            true => agent.notify("session/cancel", json!({"sessionId": session})).await,
            false => terminal_client(&home, &session, "abort").await,
        }
        let list = turns(&mut agent, &session, count).await;
        assert_eq!(list.last().unwrap()["status"], "cancelled", "{by_nuncio}");
    }
    assert_eq!(agent.reply(&session, "say it").await, "Hello, world");
    agent.finish().await;
}

#[tokio::test]
async fn server_with_one_session_reaches_nuncio_over_http() {
    for (scope, kind) in [("session", "remote"), ("workspace", "local")] {
        let home = home(&[], &format!("scope = \"{scope}\"\n")).await;
        let (mut agent, _) = home.start_with_bridge(&[]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = hosted(&mut agent, &home, "other").await;
        let servers: Value = serde_json::from_str(&agent.reply(&session, "servers").await).unwrap();
        assert_eq!(servers["nuncio"]["type"], kind, "{servers}");
        let own = if scope == "session" { session.as_str() } else { "(unset)" };
        assert_eq!(agent.reply(&session, "env NUNCIO_SESSION").await, own);
        agent.reply(&session, "env NUNCIO_AGENT_PORT").await.parse::<u16>().unwrap();
        agent.finish().await;
    }
}
