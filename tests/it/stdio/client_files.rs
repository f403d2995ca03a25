//! Files and terminals of the client: unsaved buffers have precedence over the disk, and a client
//! that fails, is slow or gives false answers loses no changes.

use serde_json::{Value, json};

use harness::{Agent, Editor, Home, Manner, notices, tool};

/// Creates a session for an editor with files and terminals. The model makes these calls one after
/// another.
pub(super) async fn session(home: &Home, editor: Editor, calls: &[(&str, Value)]) -> (Agent, String) {
    let steps = calls.iter().map(|(name, input)| json!({"tool_calls": [{"name": name, "input": input}]}));
    let steps: Vec<Value> = steps.chain([json!({"text": "done"})]).collect();
    let model = home.script(json!(steps));
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    let mut capabilities = Editor::capabilities();
    capabilities["_meta"]["nuncio"]["exactText"] = json!(editor.has_exact_texts);
    agent.editor = Some(editor);
    capabilities["session"] = json!({"notices": {}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

/// Status and text of the call number `index`.
pub(super) fn said(updates: &[Value], index: usize) -> String {
    let call = tool(updates, index);
    let texts = call["content"].as_array().unwrap().iter().filter_map(|content| content["content"]["text"].as_str());
    format!("{} {}", call["status"].as_str().unwrap(), texts.collect::<String>())
}

#[tokio::test]
async fn unsaved_buffers_are_read_and_changed() {
    for manner in [Manner::Saves, Manner::Buffers] {
        let home = Home::new();
        let (file, other) = (home.put("a.txt", "saved\n"), home.put("b.txt", "one\r\ntwo\r\n"));
        let editor = Editor::with_buffers(manner, &[(file.clone(), "typed\nsaved\n")]);
        let calls = [
            ("read", json!({"file_path": "a.txt"})),
            ("edit", json!({"file_path": "a.txt", "old_string": "typed", "new_string": "typed and edited"})),
            ("read", json!({"file_path": "a.txt"})),
            ("edit", json!({"file_path": "b.txt", "old_string": "one\ntwo", "new_string": "one\nand\ntwo"})),
            ("write", json!({"file_path": "new.txt", "content": "new\n"})),
            ("edit", json!({"file_path": "a.txt", "old_string": "saved", "new_string": "end"})),
        ];
        let (mut agent, session) = session(&home, editor, &calls).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert!(said(&updates, 0).contains("1\ttyped\n"), "{manner:?}: {}", said(&updates, 0));
        assert!(said(&updates, 2).contains("1\ttyped and edited\n"), "{manner:?}: {}", said(&updates, 2));
        for index in [1, 3, 4, 5] {
            let call = tool(&updates, index);
            assert_eq!(call["status"], "completed", "{manner:?} {index}: {call}");
            assert_eq!(call["content"][0]["type"], "diff", "{manner:?} {index}");
        }
        let editor = agent.editor.as_ref().unwrap();
        let whole = "typed and edited\nend\n";
        if manner == Manner::Saves {
            assert_eq!(home.get("a.txt").as_deref(), Some(whole));
            assert_eq!(home.get("b.txt").as_deref(), Some("one\r\nand\r\ntwo\r\n"));
            assert!(editor.buffers.is_empty());
        } else {
            assert_eq!(home.get("a.txt").as_deref(), Some("saved\n"), "nobody saved it");
            assert_eq!(editor.buffers[&file], whole);
            assert_eq!(editor.buffers[&other], "one\nand\ntwo\n");
        }
        // nuncio itself writes the new file.
        assert_eq!(home.get("new.txt").as_deref(), Some("new\n"));
        assert_eq!(editor.calls.iter().filter(|call| *call == "fs/write_text_file").count(), 3, "{manner:?}");
        assert_eq!(notices(&updates), Vec::<&str>::new());
        agent.finish().await;
    }
}

#[tokio::test]
async fn buffer_changed_since_read_is_not_overwritten() {
    let home = Home::new();
    let file = home.put("a.txt", "saved\n");
    let calls = [("read", json!({"file_path": "a.txt"})), ("write", json!({"file_path": "a.txt", "content": "mine\n"}))];
    let (mut agent, session) = session(&home, Editor::new(Manner::Buffers), &calls).await;
    let id = agent.prompt(&session, "go").await;
    agent.until("the first call's end", |frame| frame["params"]["update"]["status"] == "completed").await;
    agent.editor.as_mut().unwrap().buffers.insert(file.clone(), "typed meanwhile\n".into());
    agent.answer(&id).await.unwrap();
    let told = said(&agent.updates(&session), 1);
    // The write may come before the change of the buffer. Then the write succeeds.
    if agent.editor.as_ref().unwrap().calls.contains(&"fs/write_text_file".to_owned()) {
        assert!(told.starts_with("completed"), "{told}");
    } else {
        assert!(told.starts_with("failed stale: a.txt changed"), "{told}");
        assert_eq!(agent.editor.as_ref().unwrap().buffers[&file], "typed meanwhile\n");
    }
    agent.finish().await;
}

#[tokio::test]
async fn client_without_methods_or_with_false_answers_loses_no_edit() {
    let unused = "The client's files are not used";
    for (manner, notice) in [(Manner::Lacks, "A request to the client failed"), (Manner::Lies, unused)] {
        let home = Home::new();
        home.put("a.txt", "one\n");
        let calls = [
            ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
            ("write", json!({"file_path": "new/file.txt", "content": "new\n"})),
            ("edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"})),
        ];
        let (mut agent, session) = session(&home, Editor::new(manner), &calls).await;
        let (_, updates) = agent.turn(&session, "go").await;
        for index in 0..3 {
            assert_eq!(tool(&updates, index)["status"], "completed", "{manner:?}: {}", tool(&updates, index));
        }
        assert_eq!(home.get("a.txt").as_deref(), Some("three\n"), "{manner:?}");
        assert_eq!(home.get("new/file.txt").as_deref(), Some("new\n"), "{manner:?}");
        assert_eq!(notices(&updates), [notice], "{manner:?}: once");
        agent.finish().await;
    }
}

#[tokio::test]
async fn silent_client_is_waited_for_once() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let calls = [
        ("read", json!({"file_path": "a.txt"})),
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
    ];
    let (mut agent, session) = session(&home, Editor::new(Manner::Silent), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).contains("1\tone\n"));
    assert_eq!(home.get("a.txt").as_deref(), Some("two\n"));
    assert_eq!(agent.editor.as_ref().unwrap().calls, ["fs/read_text_file"]);
    let withdrawn = agent.frames.iter().filter(|frame| frame["method"] == "$/cancel_request").count();
    assert_eq!(withdrawn, 1, "the request is taken back");
    assert_eq!(notices(&updates), ["A request to the client failed"]);
    agent.finish().await;
}

#[tokio::test]
async fn unsaved_text_is_kept_if_client_only_reads_or_only_writes() {
    // Without reading, the disk is changed and the buffer of the editor stays.
    let home = Home::new();
    let file = home.put("a.txt", "one\ntwo\n");
    let edit = [("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"}))];
    let (mut agent, session) =
        session(&home, Editor::with_buffers(Manner::CannotRead, &[(file.clone(), "one\ntwo\ntyped\n")]), &edit).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(said(&updates, 0).split(' ').next(), Some("completed"));
    assert_eq!(home.get("a.txt").as_deref(), Some("1\ntwo\n"));
    assert_eq!(agent.editor.as_ref().unwrap().buffers[&file], "one\ntwo\ntyped\n");
    agent.finish().await;

    // Without writing, the unsaved text is saved with the edit, with the line endings of the file.
    let home = Home::new();
    let file = home.put("a.txt", "one\r\ntwo\r\n");
    let (mut agent, session) =
        self::session(&home, Editor::with_buffers(Manner::CannotWrite, &[(file.clone(), "one\ntwo\ntyped\n")]), &edit).await;
    agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt").as_deref(), Some("1\r\ntwo\r\ntyped\r\n"));
    agent.finish().await;
}

#[tokio::test]
async fn unsaved_changes_to_files_with_bom_or_mixed_line_endings_block_edits() {
    let home = Home::new();
    for (name, content) in [("marked.txt", "\u{feff}one\n"), ("mixed.txt", "one\r\ntwo\n")] {
        let file = home.put(name, content);
        let edit = [("edit", json!({"file_path": name, "old_string": "one", "new_string": "1"}))];
        let (mut agent, session) =
            session(&home, Editor::with_buffers(Manner::Saves, &[(file.clone(), "one\ntyped\n")]), &edit).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert!(said(&updates, 0).contains("ask the user to save it first"), "{}", said(&updates, 0));
        assert_eq!(home.get(name).as_deref(), Some(content));
        agent.finish().await;
    }
}

#[tokio::test]
async fn write_by_another_program_during_edit_is_kept() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let calls = [
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"})),
        ("read", json!({"file_path": "a.txt"})),
        ("write", json!({"file_path": "a.txt", "content": "all mine\n"})),
    ];
    let (mut agent, session) = session(&home, Editor::new(Manner::Disturbed), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    for index in [0, 2] {
        assert!(
            said(&updates, index).starts_with("failed stale: a.txt was changed by another program"),
            "{}",
            said(&updates, index)
        );
    }
    assert_eq!(home.get("a.txt").as_deref(), Some("one\nsomebody else's\nsomebody else's\nsomebody else's\n"));
    agent.finish().await;
}

#[tokio::test]
async fn command_in_silent_terminal_is_not_run_again() {
    let home = Home::new();
    home.config("[tools]\nclient_terminal = true\n[sandbox]\nmode = \"off\"\n");
    let call = [("bash", json!({"command": "touch ran"}))];
    let (mut agent, session) = session(&home, Editor::new(Manner::Silent), &call).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).contains("it may be running"), "{}", said(&updates, 0));
    assert_eq!(home.get("ran"), None);
    agent.finish().await;
}

#[tokio::test]
async fn files_that_editors_would_alter_are_written_to_disk() {
    let home = Home::new();
    let contents: [(&str, &[u8], &[u8]); 4] = [
        ("marked.txt", b"\xef\xbb\xbfone\n", b"\xef\xbb\xbftwo\n"),
        ("mixed.txt", b"a\r\none\nb\r\n", b"a\r\ntwo\nb\r\n"),
        ("latin.txt", b"caf\xe9 one\n", b"caf\xe9 two\n"),
        ("lone.txt", b"a\rone\n", b"a\rtwo\n"),
    ];
    let mut calls = Vec::new();
    for (name, content, _) in contents {
        std::fs::write(home.work().join(name), content).unwrap();
        calls.push(("edit", json!({"file_path": name, "old_string": "one", "new_string": "two"})));
    }
    let outside = home.put("../outside.txt", "one\n");
    calls.push(("read", json!({"file_path": outside})));
    let (mut agent, session) = session(&home, Editor::new(Manner::Saves), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    for (name, _, content) in contents {
        assert_eq!(std::fs::read(home.work().join(name)).unwrap(), content, "{name}");
    }
    let calls = &agent.editor.as_ref().unwrap().calls;
    assert!(!calls.contains(&"fs/write_text_file".to_owned()), "{calls:?}");
    assert!(calls.len() <= 2 * contents.len(), "what is outside of the roots is not the client's: {calls:?}");
    assert_eq!(notices(&updates), Vec::<&str>::new());
    agent.finish().await;
}

#[tokio::test]
async fn commands_run_in_client_terminals_if_enabled() {
    let home = Home::new();
    home.config("[tools]\nclient_terminal = true\n[sandbox]\nmode = \"off\"\n");
    home.put("below/here.txt", "");
    let calls = [
        (
            "bash",
            json!({"command": "echo $GREETING ${NUNCIO_SESSION:0:5}; ls; exit 3", "cwd": "below", "env": {"GREETING": "hello"}}),
        ),
        ("bash", json!({"command": "echo begun; sleep 600", "timeout_ms": 3000})),
        ("bash", json!({"command": "seq 1 20000"})),
    ];
    let (mut agent, session) = session(&home, Editor::new(Manner::Saves), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    for index in 0..3 {
        let call = tool(&updates, index);
        let shown = updates.iter().find(|update| {
            update["toolCallId"] == call["toolCallId"] && update["status"].is_null() && update["content"][0]["type"] == "terminal"
        });
        assert!(shown.is_some(), "{index}: the terminal is shown while the command runs");
    }
    let first = tool(&updates, 0);
    assert_eq!((&first["status"], &first["content"][0]["type"]), (&json!("completed"), &json!("terminal")), "{first}");
    assert_eq!(first["rawOutput"]["exitCode"], 3);
    let log = home.log(&session).await;
    let told = |index: usize| {
        let ended = log.iter().filter(|event| event["body"]["type"] == "tool.completed").nth(index).unwrap();
        ended["body"]["output"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(0), "hello sess_\nhere.txt\nexit code: 3");
    assert!(told(1).starts_with("begun\ntimed out after 3000 ms"), "{}", told(1));
    assert!(told(2).contains("bytes left out; all 108894 bytes are in"), "{}", told(2));
    let editor = agent.editor.as_ref().unwrap();
    assert_eq!(editor.calls.iter().filter(|call| *call == "terminal/kill").count(), 1);
    // Another client gets the output as text.
    let replayed = agent.load(&home, &session).await;
    assert_eq!(tool(&replayed, 0)["content"][0]["type"], "terminal", "it is the same client");
    agent.finish().await;
    let mut other = home.start(&[]).await;
    other.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = other.load(&home, &session).await;
    assert_eq!(tool(&replayed, 0)["content"][0]["content"]["text"], "hello sess_\nhere.txt\n");
    other.finish().await;
}

#[tokio::test]
async fn cancel_kills_terminal_command_and_unavailable_terminal_is_replaced() {
    let home = Home::new();
    home.config("[tools]\nclient_terminal = true\n[sandbox]\nmode = \"off\"\n");
    let call = [("bash", json!({"command": "touch begun; sleep 600"}))];
    let (mut agent, session) = session(&home, Editor::new(Manner::Saves), &call).await;
    let id = agent.prompt(&session, "go").await;
    agent.until("the terminal", |frame| frame["params"]["update"]["content"][0]["type"] == "terminal").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    let calls = &agent.editor.as_ref().unwrap().calls;
    assert!(calls.contains(&"terminal/kill".to_owned()), "{calls:?}");
    agent.finish().await;

    let home = Home::new();
    home.config("[tools]\nclient_terminal = true\n[sandbox]\nmode = \"off\"\n");
    let (mut agent, session) = self::session(&home, Editor::new(Manner::Errs), &[("bash", json!({"command": "echo ours"}))]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(said(&updates, 0), "completed ours\nexit code: 0");
    assert_eq!(notices(&updates), ["A request to the client failed"]);
    agent.finish().await;
}

#[tokio::test]
async fn sandboxed_command_does_not_run_in_client_terminal() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.config("[tools]\nclient_terminal = true\n");
    let call = [("bash", json!({"command": "echo x > ../outside || echo confined"}))];
    let (mut agent, session) = session(&home, Editor::new(Manner::Saves), &call).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).ends_with("confined\nexit code: 0"), "{}", said(&updates, 0));
    assert!(!agent.editor.as_ref().unwrap().calls.contains(&"terminal/create".to_owned()));
    agent.finish().await;
}
