//! Servers that hang, crash, print garbage or do not exist.

use serde_json::json;

use super::{calls, home, session, setting, text, turn};
use harness::steps::calls_one;
use harness::{Home, gone, notices, tool};

#[tokio::test]
async fn server_that_dies_during_a_call_fails_the_call_and_is_started_again() {
    let steps = [calls_one("mcp__docs__die", json!({})), calls_one("mcp__docs__echo", json!({"text": "alive"}))];
    let finished = calls(&home(&[]), &steps).await;
    assert_eq!(finished[0]["status"], "failed");
    assert!(text(&finished[0]).contains("the MCP server docs ended during the call"), "{}", finished[0]);
    assert_eq!(text(&finished[1]), "alive");
}

#[tokio::test]
async fn restart_is_reported_before_the_next_turn() {
    let home = home(&[]);
    let steps =
        json!([calls_one("mcp__docs__die", json!({})), calls_one("mcp__docs__echo", json!({"text": "1"})), {"text": "end"}]);
    let (mut agent, session) = session(&home, steps).await;
    agent.turn(&session, "go").await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(notices(&updates).contains(&"MCP server docs was started again"), "{updates:?}");
    agent.finish().await;
}

#[tokio::test]
async fn server_that_cannot_start_is_reported_once() {
    let cases = [
        (setting("docs", &["exit"]), "exit code 4"),
        ("[mcp.docs]\ncommand = [\"nuncio-no-such-program\"]\n".into(), "nuncio-no-such-program was not found"),
        ("[mcp.docs]\ncommand = [\"true\"]\n".into(), "closed"),
        ("[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\n".into(), "Connection refused"),
        ("[mcp.docs]\ncommand = [\"x\"]\nenv = { A = \"$NOT_THERE\" }\n".into(), "NOT_THERE is not set"),
    ];
    for (config, why) in cases {
        let home = Home::new();
        home.config(&config);
        let (mut agent, session) = session(&home, json!([{"text": "one"}, {"text": "two"}])).await;
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!(stop, "end_turn");
        let notice =
            updates.iter().find(|update| update["sessionUpdate"] == "notice").unwrap_or_else(|| panic!("{config}: {updates:?}"));
        assert_eq!(notice["title"], "MCP server docs failed");
        assert!(notice["description"].as_str().unwrap().contains(why), "{config}: {notice}");
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(notices(&updates), Vec::<&str>::new(), "{config}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn garbage_on_standard_output_is_skipped() {
    let finished = calls(&home(&["garbage"]), &[calls_one("mcp__docs__echo", json!({"text": "hi"}))]).await;
    assert_eq!(text(&finished[0]), "hi");
}

#[tokio::test]
async fn fifty_servers_of_which_ten_hang_do_not_delay_new_sessions() {
    let home = Home::new();
    let log = home.put("../server.log", "");
    let (log_mode, release) = (format!("log={}", log.display()), home.work().join("../release"));
    let wait = format!("wait={}", release.display());
    let servers = (0..50).map(|number| setting(&format!("s{number:02}"), &[&log_mode, if number < 10 { "hang" } else { &wait }]));
    home.config(&("[tools]\nmcp_wait_s = 0\nmcp_tokens = 1000000\n".to_owned() + &servers.collect::<String>()));
    let (mut agent, session) = session(&home, json!([])).await;
    // No server answers before the file exists, so neither the session nor the turn waits for one.
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(notices(&updates).iter().filter(|title| title.ends_with("is still starting")).count(), 50);
    std::fs::write(&release, "").unwrap();
    super::logged(&log, "tools/list", 40).await;
    let mut ready = 0;
    for _ in 0..1000 {
        let (_, updates) = agent.turn(&session, "go").await;
        ready += notices(&updates).iter().filter(|title| title.ends_with("is ready")).count();
        if ready == 40 {
            break;
        }
    }
    assert_eq!(ready, 40);
    agent.finish().await;
}

#[tokio::test]
async fn killed_nuncio_leaves_no_server() {
    let home = home(&[]);
    let steps = json!([calls_one("mcp__docs__hang", json!({}))]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.prompt(&session, "go").await;
    agent.until("the running call", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    let marker = agent.marker.clone();
    agent.kill().await;
    gone(&marker).await;
}

#[tokio::test]
async fn sessions_share_a_server_that_ends_with_the_last_of_them() {
    let home = Home::new();
    let log = home.put("../server.log", "");
    let mark = format!("log={}", log.display());
    home.config(&setting("docs", &[&mark]));
    let steps = json!([calls_one("mcp__docs__echo", json!({"text": "hi"})), {"text": "end"}]);
    let (mut agent, first) = home.session(steps, &["--mode", "auto"]).await;
    let second = agent.new_session(&home).await;
    for session in [&first, &second] {
        assert_eq!(text(&turn(&mut agent, session, 1).await[0]), "hi");
    }
    let started = |log: &str| log.lines().filter(|line| line.starts_with("started")).count();
    assert_eq!(started(&std::fs::read_to_string(&log).unwrap()), 1);
    agent.call("session/close", json!({"sessionId": first})).await;
    let (_, updates) = agent.turn(&second, "go").await;
    assert_eq!(tool(&updates, 0), json!(null));
    agent.call("session/close", json!({"sessionId": second})).await;
    gone(&mark).await;
    agent.finish().await;
}

#[tokio::test]
async fn exit_does_not_wait_for_the_command_of_a_token() {
    let home = Home::new();
    let script = json!(format!("echo > {}/started; sleep 60", home.work().display()));
    home.config(&format!(
        "[tools]\nmcp_wait_s = 0\n[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_token_command = [\"sh\", \"-c\", {script}]\n"
    ));
    let (mut agent, session) = session(&home, json!([])).await;
    agent.turn(&session, "go").await;
    home.appears("started").await;
    let ending = std::time::Instant::now();
    agent.finish().await;
    // The command may run for ten seconds.
    assert!(ending.elapsed().as_secs() < 8, "{:?}", ending.elapsed());
}
