//! A model replaces or deletes only files that its session has read whole or written.

use serde_json::{Value, json};

use harness::Home;
use harness::steps::{bash_call, call, calls, says};

fn write(content: &str) -> Value {
    call("write", json!({"file_path": "f.py", "content": content}))
}

fn read(offset: u64, limit: u64) -> Value {
    call("read", json!({"file_path": "f.py", "offset": offset, "limit": limit}))
}

fn patch(patch: &str) -> Value {
    call("apply_patch", json!({"patch": format!("*** Begin Patch\n{patch}*** End Patch\n")}))
}

fn text(lines: usize) -> String {
    (1..=lines).map(|line| format!("x{line} = {line}\n")).collect()
}

/// The results of calls in one answer, in mode auto.
async fn results(home: &Home, made: &[Value]) -> Vec<String> {
    let model = home.script(json!([calls(made), {"text": "done"}]));
    let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
    let completed = |line: &Value| line["body"]["type"] == "tool.completed";
    let results: Vec<String> = ran
        .lines()
        .iter()
        .filter(|line| completed(line))
        .map(|line| line["body"]["output"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(results.len(), made.len(), "{ran:?}");
    results
}

const REFUSED: &str = "f.py exists, and this session has not read all of it, so it is not replaced or deleted";

/// The lines of the file, the calls, and the beginning of the last one's result.
fn cases() -> Vec<(usize, Vec<Value>, &'static str)> {
    let edit = call("edit", json!({"file_path": "f.py", "old_string": "x1 = 1", "new_string": "x1 = 2"}));
    let create = call("edit", json!({"file_path": "f.py", "old_string": "", "new_string": "made\n"}));
    let move_to = patch("*** Update File: f.py\n*** Move to: g.py\n@@\n-x1 = 1\n+x1 = 2\n");
    vec![
        (14, vec![write("new\n")], REFUSED),
        (300, vec![write("new\n")], REFUSED),
        (14, vec![patch("*** Delete File: f.py\n")], "f.py: f.py exists, and this session has not read all"),
        (14, vec![patch("*** Delete File: f.py\n*** Add File: f.py\n+new\n")], "f.py: f.py exists, and this"),
        (300, vec![read(1, 1), write("new\n")], REFUSED),
        (300, vec![read(1, 200), read(202, 200), write("new\n")], REFUSED),
        (300, vec![call("grep", json!({"pattern": "x"})), write("new\n")], REFUSED),
        (300, vec![edit.clone(), write("new\n")], REFUSED),
        (300, vec![bash_call("cat f.py"), write("new\n")], REFUSED),
        (300, vec![write("new\n"), write("new\n")], REFUSED),
        // A small file was shown by the refusal, unless it was changed since.
        (14, vec![write("new\n"), write("new\n")], "overwrote f.py: 14 lines before, 1 now (4 bytes)"),
        (14, vec![write("new\n"), bash_call("echo x >> f.py"), write("new\n")], REFUSED),
        (300, vec![read(1, 300), write("new\n")], "overwrote f.py: 300 lines before, 1 now"),
        (300, vec![read(101, 200), read(1, 100), write("new\n")], "overwrote f.py: 300"),
        (300, vec![read(1, 300), edit, write("new\n")], "overwrote f.py: 300"),
        (300, vec![read(1, 300), patch("*** Delete File: f.py\n")], "applied the patch"),
        (300, vec![read(1, 300), bash_call("echo x >> f.py"), write("new\n")], "stale"),
        (300, vec![read(1, 300), read(1, 10), write("new\n")], "overwrote f.py: 300"),
        (300, vec![read(1, 300), bash_call("sed -i s/x9/y9/ f.py"), read(1, 2), write("new\n")], REFUSED),
        (300, vec![read(1, 150), bash_call("sed -i s/x9/y9/ f.py"), read(151, 150), write("new\n")], REFUSED),
        (0, vec![write(&text(300)), read(1, 10), write("new\n")], "overwrote f.py: 300"),
        (0, vec![write("new\n")], "created f.py (4 bytes)"),
        (0, vec![write("new\n"), write("two\nlines\n")], "overwrote f.py: 1 lines before, 2 now"),
        (0, vec![create, write("new\n")], "overwrote f.py: 1"),
        (0, vec![patch("*** Add File: f.py\n+new\n"), write("new\n")], "overwrote f.py: 1"),
        (0, vec![bash_call(": > f.py"), write("new\n")], "overwrote f.py: 0 lines before, 1 now"),
        (0, vec![bash_call("echo x > f.py"), write("new\n")], REFUSED),
        (14, vec![move_to], "applied the patch"),
    ]
}

#[tokio::test]
async fn file_that_was_not_read_is_not_replaced() {
    for (lines, calls, expected) in cases() {
        let home = Home::new();
        if lines > 0 {
            home.put("f.py", &text(lines));
        }
        let results = results(&home, &calls).await;
        let last = results.last().unwrap();
        assert!(last.starts_with(expected), "{calls:?}: {results:?}");
        if last.starts_with(REFUSED) && calls.len() == 1 {
            assert_eq!(home.get("f.py"), Some(text(lines)));
            assert_eq!(last.contains("    14\tx14 = 14\n"), lines == 14, "{last}");
        }
    }
}

/// What the session has read is known after a restart, unless the file was changed meanwhile.
#[tokio::test]
async fn files_of_a_session_stay_known_after_a_restart() {
    for (change, expected) in [(false, "overwrote f.py: 300 lines before"), (true, REFUSED)] {
        let home = Home::new();
        home.put("f.py", &text(300));
        let (mut agent, session) = home.session(json!([calls(&[read(1, 300)]), {"text": "done"}]), &["--mode", "auto"]).await;
        agent.turn(&session, "go").await;
        agent.finish().await;
        if change {
            home.put("f.py", &text(301));
        }
        let steps = json!([calls(&[write("new\n")]), says(expected, "seen")]);
        let mut agent = home.start(&["--mode", "auto", "--model", &home.script(steps)]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        agent.load(&home, &session).await;
        let (stop, updates) = agent.turn(&session, "go on").await;
        assert_eq!((stop.as_str(), harness::text(&updates, "agent_message_chunk").as_str()), ("end_turn", "seen"), "{updates:?}");
        agent.finish().await;
    }
}

/// An attached file is known; a part of it is not all of it.
#[tokio::test]
async fn attached_file_is_known() {
    for (fragment, expected) in [("", "overwrote f.py: 300"), ("#L1-L300", REFUSED)] {
        let home = Home::new();
        home.put("f.py", &text(300));
        let steps = json!([calls(&[write("new\n")]), says(expected, "seen")]);
        let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
        let uri = format!("file://{}{fragment}", home.work().join("f.py").display());
        let prompt = json!([{"type": "resource", "resource": {"uri": uri, "text": text(300)}}]);
        agent.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await.unwrap();
        assert_eq!(harness::text(&agent.updates(&session), "agent_message_chunk"), "seen", "{fragment}");
        agent.finish().await;
    }
}

/// The refusal shows no file that a rule hides, and a person's own call replaces any file.
#[tokio::test]
async fn refusal_shows_only_what_may_be_read() {
    let home = Home::new();
    home.config("[[permissions.rules]]\ntool = \"read\"\npath = \"f.py\"\npolicy = \"deny\"\n");
    home.put("f.py", "password = 1\n");
    let results = results(&home, &[write("new\n"), write("new\n")]).await;
    assert!(results.iter().all(|result| result.starts_with(REFUSED) && !result.contains("password")), "{results:?}");
    let told = super::told(&home, "write", &json!({"file_path": "f.py", "content": "new\n"})).await;
    assert!(told.starts_with("overwrote f.py: 1 lines before, 1 now"), "{told}");
}
