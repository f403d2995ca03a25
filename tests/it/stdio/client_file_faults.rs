//! Files of clients that refuse requests, change written text or do not support the methods.

use serde_json::{Value, json};

use super::client_files::{said, session};
use harness::{Editor, Home, Manner, notices};

const UNUSED: &str = "The client's files are not used";
const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

fn edit(file: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"file_path": file, "old_string": old, "new_string": new}))
}

fn read(file: &str) -> (&'static str, Value) {
    ("read", json!({"file_path": file}))
}

/// Returns whether the result of call `index` reports unsaved changes of the file.
async fn unsaved(home: &Home, session: &str, index: usize) -> bool {
    let log = home.log(session).await;
    let ended = log.iter().filter(|event| event["body"]["type"] == "tool.completed").nth(index).unwrap();
    ended["body"]["output"].to_string().contains("including unsaved changes")
}

#[tokio::test]
async fn editor_that_adds_a_blank_line_on_each_write_is_distrusted() {
    let home = Home::new();
    let file = home.put("a.txt", "one\ntwo\n");
    let editor = Editor::with_buffers(Manner::AddsBlankLine, &[(file, "one\ntwo\n")]);
    let calls = [edit("a.txt", "one", "1"), edit("a.txt", "two", "2"), read("a.txt")];
    let (mut agent, session) = session(&home, editor, &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt").as_deref(), Some("1\n2\n"));
    assert!(!unsaved(&home, &session, 2).await);
    assert_eq!(agent.editor.as_ref().unwrap().calls, [READ, WRITE, READ], "the disk is used after the first edit");
    assert_eq!(notices(&updates), [UNUSED]);
    agent.finish().await;
}

#[tokio::test]
async fn editor_with_stale_reads_is_distrusted() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let calls = [edit("a.txt", "one", "two"), read("a.txt"), edit("a.txt", "two", "three")];
    let (mut agent, session) = session(&home, Editor::new(Manner::Stale), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 1).contains("1\ttwo\n"), "{}", said(&updates, 1));
    assert!(!unsaved(&home, &session, 1).await);
    assert_eq!(home.get("a.txt").as_deref(), Some("three\n"));
    assert_eq!(agent.editor.as_ref().unwrap().calls, [READ, WRITE, READ]);
    assert_eq!(notices(&updates), [UNUSED]);
    agent.finish().await;
}

/// A program replaces a directory, or the file, by a symlink while the editor reads or writes it.
#[tokio::test]
async fn symlink_that_appears_during_a_call_of_the_client_is_reported() {
    let new = ("write", json!({"file_path": "below/deep/new.txt", "content": "new\n"}));
    for (method, replaced, target, call, words) in [
        (WRITE, "below", "", edit("below/deep/a.txt", "one", "1"), "while the editor wrote it"),
        (WRITE, "below/deep", "deep", edit("below/deep/a.txt", "one", "1"), "while the editor wrote it"),
        (WRITE, "below/deep/a.txt", "deep/a.txt", edit("below/deep/a.txt", "one", "1"), "while the editor wrote it"),
        (READ, "below/deep", "deep", read("below/deep/a.txt"), "while the editor read it"),
        (READ, "below/deep/a.txt", "deep/a.txt", read("below/deep/a.txt"), "while the editor read it"),
        (READ, "below", "", edit("below/deep/a.txt", "one", "1"), "while the editor read it"),
        // The client is not asked about a new file.
        (WRITE, "below/deep", "deep", new, ""),
    ] {
        let home = Home::new();
        let file = home.put("below/deep/a.txt", "one\n");
        let outside = home.put("../outside/deep/a.txt", "outside\n").parent().unwrap().parent().unwrap().to_owned();
        let mut editor = Editor::with_buffers(Manner::Saves, &[(file, "one\ntyped\n")]);
        editor.swap = Some((method, home.work().join(replaced), outside.join(target)));
        let what = format!("{method} {replaced} {call:?}");
        let (mut agent, session) = session(&home, editor, &[call, read("below/deep/a.txt")]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        let (told, editor) = (said(&updates, 0), agent.editor.as_ref().unwrap());
        if words.is_empty() {
            assert_eq!((told.starts_with("completed"), home.get("below/deep/new.txt").as_deref()), (true, Some("new\n")), "{told}");
            assert!(editor.calls.iter().all(|call| call != WRITE), "{what}");
        } else {
            assert!(told.starts_with("failed") && told.contains(words) && told.contains("outside"), "{what}: {told}");
            // The client is not asked any more.
            assert_eq!((editor.calls.last().map(String::as_str), notices(&updates)), (Some(method), vec![UNUSED]), "{what}");
        }
        assert!(!outside.join("deep/new.txt").exists());
        agent.finish().await;
    }
}

#[tokio::test]
async fn editor_that_did_not_write_is_distrusted() {
    let home = Home::new();
    home.put("a.txt", "a + b\n");
    let (mut agent, session) = session(&home, Editor::new(Manner::Lies), &[edit("a.txt", "+", "-")]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt").as_deref(), Some("a - b\n"));
    assert_eq!(notices(&updates), [UNUSED]);
    agent.finish().await;
}

#[tokio::test]
async fn final_newline_dropped_by_editor_is_kept() {
    // (text of the buffer, whether the buffer has unsaved changes, text on the disk after the edit)
    let cases = [("one\ntwo\n", false, "1\ntwo\n"), ("typed\none\n", true, "typed\n1\n")];
    for (open, typed, after) in cases {
        let home = Home::new();
        let file = home.put("a.txt", "one\ntwo\n");
        let calls = [read("a.txt"), edit("a.txt", "one", "1"), read("a.txt")];
        let (mut agent, session) = session(&home, Editor::with_buffers(Manner::DropsFinalNewline, &[(file, open)]), &calls).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(unsaved(&home, &session, 0).await, typed, "{open:?}");
        assert!(!unsaved(&home, &session, 2).await, "{open:?}");
        assert_eq!(home.get("a.txt").as_deref(), Some(after), "{open:?}");
        assert!(agent.editor.as_ref().unwrap().calls.contains(&WRITE.to_owned()), "the editor writes it");
        assert_eq!(notices(&updates), Vec::<&str>::new());
        agent.finish().await;
    }
}

#[tokio::test]
async fn client_files_can_be_turned_off() {
    let home = Home::new();
    home.config("[tools]\nclient_files = false\n");
    let file = home.put("a.txt", "saved\n");
    let calls = [read("a.txt"), edit("a.txt", "saved", "edited"), ("write", json!({"file_path": "new.txt", "content": "new\n"}))];
    let (mut agent, session) = session(&home, Editor::with_buffers(Manner::Saves, &[(file, "typed\n")]), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).contains("1\tsaved\n"), "{}", said(&updates, 0));
    assert_eq!(home.get("a.txt").as_deref(), Some("edited\n"));
    assert_eq!(home.get("new.txt").as_deref(), Some("new\n"));
    assert_eq!(agent.editor.as_ref().unwrap().calls, Vec::<String>::new());
    agent.finish().await;
}

#[tokio::test]
async fn untrusted_project_cannot_turn_off_client_files() {
    let home = Home::new();
    home.put(".nuncio/config.toml", "[tools]\nclient_files = false\n");
    home.put("secret.txt", "hidden\n");
    let (mut agent, session) = session(&home, Editor::new(Manner::Refuses), &[read("secret.txt")]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).starts_with("failed the client refused"), "{}", said(&updates, 0));
    agent.finish().await;
}

#[tokio::test]
async fn refusal_of_the_client_is_not_overruled() {
    let both = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: locked.txt\n@@\n-one\n+1\n*** End Patch";
    let cases = [
        (Manner::Refuses, read("secret.txt"), "failed the client refused to read secret.txt: the user said no"),
        (Manner::Refuses, edit("secret.txt", "one", "1"), "failed the client refused to read secret.txt: the user said no"),
        (Manner::Refuses, edit("locked.txt", "one", "1"), "failed the client refused to write locked.txt: the user said no"),
        (
            Manner::Refuses,
            ("apply_patch", json!({"patch": both})),
            "failed the client refused to write locked.txt: the user said no",
        ),
        (Manner::Refuses, read("secret-new.txt"), "failed secret-new.txt is not on the disk, and the client refused to read it"),
        (Manner::Errs, read("a.txt"), "failed the client refused to read a.txt: broken editor"),
    ];
    for (manner, call, expected) in cases {
        let home = Home::new();
        for name in ["a.txt", "secret.txt", "locked.txt"] {
            home.put(name, "one\n");
        }
        let what = format!("{manner:?} {call:?}");
        let (mut agent, session) = session(&home, Editor::new(manner), &[call]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert!(said(&updates, 0).starts_with(expected), "{what}: {}", said(&updates, 0));
        for name in ["a.txt", "secret.txt", "locked.txt"] {
            assert_eq!(home.get(name).as_deref(), Some("one\n"), "{what}: {name}");
        }
        assert_eq!(notices(&updates), Vec::<&str>::new(), "{what}: the call's result says it");
        agent.finish().await;
    }
}

#[tokio::test]
async fn disk_is_used_if_client_lacks_method_or_file() {
    for manner in [Manner::Lacks, Manner::FindsNothing, Manner::Malformed] {
        let home = Home::new();
        home.put("a.txt", "one\n");
        let calls = [
            read("a.txt"),
            edit("a.txt", "one", "two"),
            ("write", json!({"file_path": "new/b.txt", "content": "new\n"})),
            read("missing.txt"),
        ];
        let (mut agent, session) = session(&home, Editor::new(manner), &calls).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert!(said(&updates, 0).contains("1\tone\n"), "{manner:?}: {}", said(&updates, 0));
        assert_eq!(home.get("a.txt").as_deref(), Some("two\n"), "{manner:?}: {}", said(&updates, 1));
        assert_eq!(home.get("new/b.txt").as_deref(), Some("new\n"), "{manner:?}: {}", said(&updates, 2));
        assert!(said(&updates, 3).starts_with("failed missing.txt does not exist"), "{manner:?}: {}", said(&updates, 3));
        agent.finish().await;
    }
}

#[tokio::test]
async fn files_in_roots_unknown_to_client_are_not_requested() {
    let home = Home::new();
    let other = home.put("../other/locked.txt", "one\n").canonicalize().unwrap();
    home.config(&format!("allowed_paths = [{:?}]\n", other.parent().unwrap()));
    let calls = [edit(other.to_str().unwrap(), "one", "two")];
    let (mut agent, session) = session(&home, Editor::new(Manner::Refuses), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert!(said(&updates, 0).starts_with("completed"), "{}", said(&updates, 0));
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "two\n");
    assert_eq!(agent.editor.as_ref().unwrap().calls, Vec::<String>::new());
    agent.finish().await;
}

#[tokio::test]
async fn file_written_without_answer_can_be_edited_again() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let calls = [edit("a.txt", "one", "two"), edit("a.txt", "two", "three")];
    let (mut agent, session) = session(&home, Editor::new(Manner::WritesSilently), &calls).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt").as_deref(), Some("three\n"), "{}", said(&updates, 1));
    assert_eq!(agent.editor.as_ref().unwrap().calls, [READ, WRITE]);
    assert_eq!(notices(&updates), ["A request to the client failed"]);
    agent.finish().await;
}

#[tokio::test]
async fn new_file_is_not_read_before_write() {
    let patch = "*** Begin Patch\n*** Add File: c.txt\n+new\n*** End Patch";
    let calls = [
        ("write", json!({"file_path": "a.txt", "content": "new\n"})),
        edit("below/b.txt", "", "new\n"),
        ("apply_patch", json!({"patch": patch})),
    ];
    for (call, name) in calls.into_iter().zip(["a.txt", "below/b.txt", "c.txt"]) {
        let home = Home::new();
        let (mut agent, session) = session(&home, Editor::new(Manner::Saves), &[call]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(home.get(name).as_deref(), Some("new\n"), "{name}: {}", said(&updates, 0));
        assert_eq!(agent.editor.as_ref().unwrap().calls, Vec::<String>::new(), "{name}");
        assert_eq!(notices(&updates), Vec::<&str>::new());
        agent.finish().await;
    }
}

#[tokio::test]
async fn changed_new_buffer_is_not_overwritten() {
    let home = Home::new();
    let file = home.work().join("new.txt");
    let calls = [read("new.txt"), ("write", json!({"file_path": "new.txt", "content": "mine\n"}))];
    let (mut agent, session) = session(&home, Editor::with_buffers(Manner::Buffers, &[(file.clone(), "typed\n")]), &calls).await;
    let id = agent.prompt(&session, "go").await;
    agent.until("the read's end", |frame| frame["params"]["update"]["status"] == "completed").await;
    agent.editor.as_mut().unwrap().buffers.insert(file.clone(), "typed more\n".into());
    agent.answer(&id).await.unwrap();
    let updates = agent.updates(&session);
    assert!(said(&updates, 0).contains("1\ttyped\n"), "{}", said(&updates, 0));
    assert!(said(&updates, 1).starts_with("failed stale: new.txt changed"), "{}", said(&updates, 1));
    assert_eq!(agent.editor.as_ref().unwrap().buffers[&file], "typed more\n");
    agent.finish().await;
}

/// An answer to `fs/read_text_file` as a client in JavaScript writes it, and what the model receives.
#[tokio::test]
async fn answer_that_is_not_quite_json_is_not_replaced_by_the_disk() {
    let deep = format!("{{\"content\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let cases: [(&[u8], &str); 3] = [
        (br#"{"content":"typed \ud83d\n"}"#, "completed      1\ttyped \u{fffd}"),
        (b"{\"content\":\"typed \xff\"}", "failed "),
        (deep.as_bytes(), "failed "),
    ];
    for (result, expected) in cases {
        let home = Home::new();
        home.put("a.txt", "saved\n");
        let (mut agent, session) = session(&home, Editor::new(Manner::Silent), &[read("a.txt")]).await;
        let prompt = agent.prompt(&session, "go").await;
        let asked = agent.until(READ, |frame| frame["method"] == READ).await;
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", asked["id"]);
        agent.raw(&[start.as_bytes(), result, b"}\n"].concat()).await;
        agent.answer(&prompt).await.unwrap();
        let updates: Vec<Value> = agent.frames.iter().map(|frame| frame["params"]["update"].clone()).collect();
        let told = said(&updates, 0);
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains("saved"), "{told}");
        agent.finish().await;
    }
}
