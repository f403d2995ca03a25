//! The list of sessions, archived sessions, titles, system prompts and the login state.

use serde_json::{Value, json};

use harness::{Agent, Home, text};

/// The ids of the listed sessions.
async fn listed(agent: &mut Agent, params: Value) -> Vec<String> {
    let listed = agent.call("session/list", params).await;
    let id = |session: &Value| session["sessionId"].as_str().unwrap().to_string();
    listed["sessions"].as_array().unwrap().iter().map(id).collect()
}

/// What the first and the second process send, and the words that the model then reads.
type PromptCase<'a> = (&'a str, Value, Value, &'a [&'a str], &'a [&'a str]);

/// A model, the environment, and the expected state and label of its account.
type AuthCase<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, Value);

/// Another process with the same data.
async fn other(home: &Home, steps: Value) -> Agent {
    let mut other = home.start(&["--model", &home.script(steps)]).await;
    other.call("initialize", json!({"protocolVersion": 1})).await;
    other
}

/// A long answer.
fn slow() -> Value {
    json!({"text": "x".repeat(2000), "chunk_chars": 1, "delay_ms": 50})
}

#[tokio::test]
async fn session_without_messages_is_not_listed() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([slow()]), &[]).await;
    let mut other = other(&home, json!([])).await;
    let all = json!({"_meta": {"nuncio": {"empty": true}}});
    // Settings are no messages.
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    agent.call("_nuncio/session/configure", json!({"sessionId": session, "title": "named"})).await;
    for params in [json!({}), json!({"cwd": home.work()})] {
        assert_eq!(listed(&mut agent, params.clone()).await, Vec::<String>::new(), "{params}");
        assert_eq!(listed(&mut other, params.clone()).await, Vec::<String>::new(), "{params}, another process");
    }
    assert_eq!(listed(&mut other, all).await, std::slice::from_ref(&session));
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout, "");
    // The message is listed as soon as it is sent, before any answer.
    let prompt = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    for process in [&mut agent, &mut other] {
        assert_eq!(listed(process, json!({"cwd": home.work()})).await, std::slice::from_ref(&session));
    }
    agent.cancel(&session, &prompt).await;
    agent.finish().await;
    assert_eq!(listed(&mut other, json!({})).await, std::slice::from_ref(&session));
    other.finish().await;
}

/// Words of a title, a directory and messages, without regard to case, on each database.
#[tokio::test]
async fn sessions_are_found_by_their_texts() {
    let home = Home::new();
    let quoted: &str = r#"A "quoted"  line\and 100% of a_b"#;
    let steps = json!([{"text": format!("{}\nDer Bär schläft.\n{quoted}", "x".repeat(300))}]);
    let (mut agent, first) = home.session(steps, &[]).await;
    agent.turn(&first, "Why does the marmot sleep?").await;
    agent.call("_nuncio/session/configure", json!({"sessionId": first, "title": "Animals"})).await;
    let second = agent.new_session(&home).await;
    let note = json!({"sessionId": second, "autoRun": false, "parts": [{"type": "text", "text": "Another question"}]});
    agent.call("_nuncio/session/message", note).await;
    let both = [second.clone(), first.clone()];
    let directory = home.work().file_name().unwrap().to_str().unwrap().to_uppercase();
    let found = async |agent: &mut Agent, words: &str| {
        let listed = agent.call("session/list", json!({"_meta": {"nuncio": {"text": words}}})).await;
        let found = listed["sessions"].as_array().unwrap().iter();
        found.map(|row| (row["sessionId"].clone(), row["_meta"]["nuncio"]["excerpt"].clone())).collect::<Vec<_>>()
    };
    let marmot = "Why does the marmot sleep?";
    let bear = format!("…{} Der Bär schläft. {}", "x".repeat(35), quoted.replace("  ", " "));
    let cases: &[(&str, &[&String], Value)] = &[
        ("animals", &[&first], Value::Null),
        (&directory, &[&both[0], &both[1]], Value::Null),
        ("MARMOT", &[&first], json!(marmot)),
        ("sleep?  marmot", &[&first], json!(marmot)),
        ("BÄR schläft", &[&first], json!(bear)),
        ("question", &[&second], json!("Another question")),
        ("marmot schläft", &[], Value::Null),
        ("bar", &[], Value::Null),
        ("messageId", &[], Value::Null),
        ("role assistant", &[], Value::Null),
        ("100_", &[], Value::Null),
        ("%", &[&first], Value::Null),
        ("a_b", &[&first], Value::Null),
        (r#""quoted""#, &[&first], Value::Null),
        (r"line\and", &[&first], Value::Null),
    ];
    let mut other = other(&home, json!([])).await;
    for (words, ids, excerpt) in cases {
        for process in [&mut agent, &mut other] {
            let rows = found(process, words).await;
            let expected: Vec<Value> = ids.iter().map(|id| json!(id)).collect();
            assert_eq!(rows.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), expected, "{words}");
            if !excerpt.is_null() {
                assert_eq!(rows[0].1, *excerpt, "{words}");
            }
        }
    }
    for bad in ["", "  \n", &"x".repeat(201)] {
        let error = agent.request("session/list", json!({"_meta": {"nuncio": {"text": bad}}})).await.unwrap_err();
        let message = "_meta.nuncio.text: must have a word, and at most 200 bytes";
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(message)), "{error}");
    }
    agent.finish().await;
    other.finish().await;
    let shown = home.run(&["sessions", "list", "--text", "marmot"], "").await.stdout;
    assert!(shown.contains("Animals\n    Why does the marmot sleep?\n") && shown.lines().count() == 2, "{shown}");
}

#[tokio::test]
async fn archived_session_is_hidden_until_unarchived() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "kept"}]), &[]).await;
    agent.turn(&session, "go").await;
    let mut other = other(&home, json!([{"text": "second"}, slow()])).await;
    let second = other.new_session(&home).await;
    other.turn(&second, "go").await;
    let both = vec![second.clone(), session.clone()];
    assert_eq!(listed(&mut other, json!({})).await, both);
    let before = other.call("session/list", json!({})).await;

    // The other process archives: the owner closes the session.
    for _ in 0..2 {
        assert_eq!(other.call("session/archive", json!({"sessionId": session})).await, json!({}));
    }
    for process in [&mut agent, &mut other] {
        assert_eq!(listed(process, json!({})).await, std::slice::from_ref(&second));
        assert_eq!(listed(process, json!({"archived": "only"})).await, std::slice::from_ref(&session));
    }
    let all = other.call("session/list", json!({"archived": "include"})).await;
    let archived: Vec<&Value> = all["sessions"].as_array().unwrap().iter().map(|session| &session["archived"]).collect();
    assert_eq!(archived.len(), 2);
    assert!(all["sessions"].as_array().unwrap().iter().all(|one| one["archived"] == (one["sessionId"] == session)), "{all}");
    assert!(home.run(&["sessions", "list"], "").await.stdout.lines().count() == 1);

    // Loading does not change the state.
    let replayed = agent.load(&home, &session).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "kept");
    assert_eq!(listed(&mut agent, json!({})).await, std::slice::from_ref(&second));
    for _ in 0..2 {
        assert_eq!(agent.call("session/unarchive", json!({"sessionId": session})).await, json!({}));
    }
    assert_eq!(listed(&mut other, json!({})).await.len(), 2);
    let updated = |list: &Value| list["sessions"].as_array().unwrap().iter().find(|one| one["sessionId"] == second).cloned();
    assert_eq!(updated(&other.call("session/list", json!({})).await), updated(&before));

    // Archiving ends the running turn.
    let prompt = other.prompt(&second, "wait").await;
    other.until_update("agent_message_chunk").await;
    other.call("session/archive", json!({"sessionId": second})).await;
    assert_eq!(other.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    for method in ["session/archive", "session/unarchive"] {
        let error = other.request(method, json!({"sessionId": "sess_never"})).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{method}: {error}");
    }
    let error = other.request("session/list", json!({"archived": "sometimes"})).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    agent.finish().await;
    other.finish().await;
}

#[tokio::test]
async fn title_can_be_set_by_any_process_while_a_turn_runs() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "slow", "delay_ms": 60_000}]), &[]).await;
    let mut other = other(&home, json!([])).await;
    let prompt = agent.prompt(&session, "the first line").await;
    agent.until_update("session_info_update").await;
    let set = other.call("session/set_title", json!({"sessionId": session, "title": "  My \n parser "})).await;
    assert_eq!(set, json!({"title": "My parser"}));
    assert_eq!(agent.until_update("session_info_update").await["title"], "My parser");
    let list = other.call("session/list", json!({})).await;
    assert_eq!(list["sessions"][0]["title"], "My parser");
    for title in [json!(""), json!(" \n"), Value::Null] {
        let error = other.request("session/set_title", json!({"sessionId": session, "title": title})).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{title}: {error}");
    }
    agent.cancel(&session, &prompt).await;
    agent.finish().await;
    other.finish().await;
}

#[tokio::test]
async fn system_prompt_of_the_client_applies() {
    let prompt = |mode: &str, text: &str| json!({"mode": mode, "content": [{"type": "text", "text": text}]});
    let cases: &[PromptCase<'_>] = &[
        (
            "append",
            prompt("append", "Rhyme."),
            prompt("append", "Rhyme."),
            &["You are nuncio", "Rhyme."],
            &["You are nuncio", "Rhyme."],
        ),
        ("override", prompt("override", "You are a parrot."), Value::Null, &["You are a parrot."], &["You are a parrot."]),
        ("changed", prompt("append", "Rhyme."), prompt("append", "Do not rhyme."), &["Rhyme."], &["Do not rhyme."]),
        ("added", Value::Null, prompt("append", "Rhyme."), &["You are nuncio"], &["You are nuncio", "Rhyme."]),
    ];
    for (name, first, second, reads, then) in cases {
        for reopen in ["session/load", "session/resume"] {
            let home = Home::new();
            let expecting = |words: &[&str]| words.iter().map(|word| json!({"expect": word, "text": word})).collect::<Vec<_>>();
            let mut agent = other(&home, json!(expecting(reads))).await;
            let made = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": [], "systemPrompt": first})).await;
            let session = made["sessionId"].as_str().unwrap().to_string();
            for word in *reads {
                assert_eq!(agent.turn(&session, "go").await.0, "end_turn", "{name}: {word}");
            }
            let size = home.log(&session).await.len();
            agent.finish().await;
            let mut agent = other(&home, json!(expecting(then))).await;
            agent.call(reopen, json!({"sessionId": session, "cwd": home.work(), "mcpServers": [], "systemPrompt": second})).await;
            let updates =
                home.log(&session).await[size..].iter().filter(|event| event["body"]["type"] == "session.updated").count();
            assert_eq!(updates, usize::from(!second.is_null() && first != second), "{name}");
            for word in *then {
                assert_eq!(agent.turn(&session, "go on").await.0, "end_turn", "{name}: {word}");
            }
            agent.finish().await;
        }
    }
}

#[tokio::test]
async fn unsupported_system_prompt_is_refused() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let text = json!([{"type": "text", "text": "x"}]);
    for (prompt, word) in [
        (json!({"mode": "prepend", "content": text}), "systemPrompt.mode"),
        (json!({"mode": "append", "content": []}), "systemPrompt.content"),
        (
            json!({"mode": "append", "content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
            "systemPrompt.content[0]",
        ),
        (json!({"content": text}), "systemPrompt"),
    ] {
        for method in ["session/new", "session/load", "session/resume", "session/fork"] {
            let params = json!({"sessionId": session, "cwd": home.work(), "mcpServers": [], "systemPrompt": prompt});
            let error = agent.request(method, params).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{method}: {error}");
            assert!(error["message"].as_str().unwrap().contains(word), "{method}: {error}");
        }
    }
    agent.finish().await;
}

#[tokio::test]
async fn auth_status_names_the_login_of_the_default_model() {
    let cases: &[AuthCase<'_>] = &[
        ("anthropic/claude-sonnet-5", &[("ANTHROPIC_API_KEY", "secret")], "authenticated", json!("anthropic (ANTHROPIC_API_KEY)")),
        ("anthropic/claude-sonnet-5", &[], "unauthenticated", Value::Null),
        ("ollama/none", &[], "not_required", Value::Null),
    ];
    for (model, environment, state, label) in cases {
        let home = Home::new();
        for (name, value) in *environment {
            home.env(name, value);
        }
        let mut agent = home.start(&["--model", model]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let status = agent.call("auth/status", json!({})).await;
        assert_eq!((&status["state"], &status["accounts"][0]["label"]), (&json!(state), label), "{model}: {status}");
        assert!(!status.to_string().contains("secret"), "{status}");
        agent.call("logout", json!({})).await;
        assert_eq!(agent.call("auth/status", json!({})).await["state"], "unauthenticated", "{model}");
        agent.finish().await;
    }
}
