//! `nuncio sessions`: short ids, the length of the list, confirmations; and what a session leaves.

use serde_json::json;

use super::check;
use harness::Home;
use harness::steps::bash_call;

/// Runs a prompt and returns the id of its session.
async fn session(home: &Home, title: &str) -> String {
    let model = home.script(json!([{"text": "fine"}]));
    let ran = home.run(&["run", "--model", &model, "--json", title], "").await;
    check(&ran, 0, &[]);
    ran.lines()[0]["sessionId"].as_str().unwrap().into()
}

#[tokio::test]
async fn unique_start_of_an_id_is_enough() {
    let home = Home::new();
    let (one, two) = (session(&home, "one").await, session(&home, "two").await);
    let same = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
    let short = &one[..=same];
    let bare = short.strip_prefix("sess_").unwrap();
    for given in [&one, short, bare] {
        check(&home.run(&["sessions", "show", given], "").await, 0, &["> one"]);
        check(&home.run(&["sessions", "export", given], "").await, 0, &[&one]);
    }
    let model = home.script(json!([{"expect": "fine", "text": "resumed"}]));
    check(&home.run(&["run", "-m", &model, "-r", bare, "more"], "").await, 0, &["resumed"]);
    let ambiguous = home.run(&["sessions", "rm", &one[..same]], "").await;
    check(&ambiguous, 2, &["several sessions", &one, &two]);
    check(&home.run(&["sessions", "rm", short], "").await, 0, &["deleted", &one, "one"]);
    check(&home.run(&["sessions", "show", &one], "").await, 2, &[&one]);
    check(&home.run(&["sessions", "show", "nothing"], "").await, 2, &["nothing", "nuncio sessions list"]);
}

#[tokio::test]
async fn list_shows_the_newest_sessions_and_counts_the_others() {
    let home = Home::new();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    for number in 0..23 {
        let session = agent.new_session(&home).await;
        agent.turn(&session, &format!("number {number}")).await;
    }
    agent.finish().await;
    let ran = home.run(&["sessions", "list"], "").await;
    assert_eq!(ran.stdout.lines().count(), 20, "{ran:?}");
    assert!(ran.stderr.contains("older sessions: nuncio sessions list --all"), "{ran:?}");
    assert!(ran.stdout.contains("number 22") && !ran.stdout.contains("number 1\n"), "{ran:?}");
    for flags in [&["sessions", "list", "--all"][..], &["sessions", "list", "--json"]] {
        let ran = home.run(flags, "").await;
        assert!(ran.stdout.lines().count() >= 23 && ran.stderr.is_empty(), "{ran:?}");
    }
}

#[tokio::test]
async fn deletion_is_confirmed_at_the_terminal() {
    let home = Home::new();
    let id = session(&home, "precious").await;
    for (flags, answer, code, kept) in [(&[][..], "n", 130, true), (&[], "y", 0, false), (&["--yes"], "", 0, false)] {
        let id = if flags.is_empty() { id.clone() } else { session(&home, "precious").await };
        let mut terminal = home.terminal(&[&["sessions", "rm", &id], flags].concat());
        if !answer.is_empty() {
            let shown = terminal.until("Delete this session?").await;
            assert!(shown.contains("precious"), "{shown}");
            terminal.say(answer).await;
        }
        let (ended, shown) = terminal.end().await;
        assert_eq!((ended, shown.contains(&format!("deleted {id}"))), (code, !kept), "{shown}");
        let rest = home.run(&["sessions", "list"], "").await.stdout;
        assert_eq!(rest.contains(&id), kept, "{rest}");
    }
}

#[tokio::test]
async fn denial_is_printed_once_with_the_way_to_allow_it() {
    let home = Home::new();
    let write = json!({"name": "write", "input": {"file_path": "a", "content": "b"}});
    for (call, hints) in [(bash_call("touch made"), &["--mode auto"][..]), (write, &["--mode accept-edits", "--mode auto"])] {
        let model = home.script(json!([{"tool_calls": [call, bash_call("touch other")]}, {"text": "so be it"}]));
        let ran = home.run(&["run", "--model", &model, "go"], "").await;
        check(&ran, 4, &[&["so be it", "denied: no connected client"], hints].concat());
        assert_eq!(ran.stderr.matches("denied").count(), 2, "one for each call: {ran:?}");
        assert_eq!(ran.stderr.matches("to allow it: ").count(), hints.len(), "{ran:?}");
    }
}

#[tokio::test]
async fn reads_are_named_in_one_row() {
    let home = Home::new();
    home.put("a.txt", "text of a\n");
    home.put("b.txt", "text of b\n");
    let read = |name: &str| json!({"name": "read", "input": {"file_path": name}});
    let model = home.script(json!([{"tool_calls": [read("a.txt"), read("b.txt")]}, {"text": "bye"}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    check(&ran, 0, &[]);
    // They run at the same time, and any of them may end first.
    let orders = [("a", "b"), ("b", "a")].map(|(first, last)| format!("● Read {first}.txt 1 line · Read {last}.txt 1 line\n"));
    assert!(orders.contains(&ran.stderr), "{ran:#?}");
    let model = home.script(json!([{"tool_calls": [read("a.txt")]}, {"text": "bye"}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert_eq!(ran.stderr.matches("Read a.txt").count(), 1, "{ran:#?}");
}

#[tokio::test]
async fn log_of_a_command_has_no_json_lines() {
    let home = Home::new();
    home.config("[mcp.docs]\ncommand = [\"sh\", \"-c\", \"exit 3\"]\n");
    let model = home.script(json!([{"text": "fine"}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    check(&ran, 0, &["an MCP server failed"]);
    assert!(!ran.stderr.lines().any(|line| line.starts_with('{')), "{ran:?}");
}

#[tokio::test]
async fn session_leaves_no_empty_artifact_directory() {
    let home = Home::new();
    let model = home.script(json!([{"tool_calls": [bash_call("echo hi > $TMPDIR/x; cat $TMPDIR/x")]}, {"text": "bye"}]));
    let ran = home.run(&["run", "--model", &model, "--mode", "auto", "go"], "").await;
    check(&ran, 0, &["hi"]);
    let left = std::fs::read_dir(home.data().join("artifacts")).into_iter().flatten().flatten();
    assert_eq!(left.map(|entry| entry.path()).collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    // Artifacts are kept.
    let model = home.script(json!([{"tool_calls": [bash_call("seq 1 100000")]}, {"text": "bye"}]));
    let ran = home.run(&["run", "--model", &model, "--mode", "auto", "--json", "go"], "").await;
    let id = ran.lines()[0]["sessionId"].clone();
    let kept = home.data().join("artifacts").join(id.as_str().unwrap());
    assert!(std::fs::read_dir(kept).unwrap().count() > 0, "{ran:?}");
}

/// People read local times; JSON is in UTC.
#[tokio::test]
async fn times_for_people_are_local() {
    let home = Home::new();
    let model = home.script(json!([{"text": "an answer"}]));
    assert_eq!(home.run(&["run", "--model", &model, "go"], "").await.code, 0);
    assert_eq!(home.run(&["token", "new", "phone"], "").await.code, 0);
    let listed = home.run(&["sessions", "list", "--json"], "").await.lines()[0].clone();
    let utc = listed["updatedAt"].as_str().unwrap();
    let minutes: i32 = utc[11..13].parse::<i32>().unwrap() * 60 + utc[14..16].parse::<i32>().unwrap();
    for (zone, offset) in [("UTC0", 0), ("JST-9", 540), ("NST3:30", -210), ("<+1345>-13:45", 825)] {
        home.env("TZ", zone);
        let local = (minutes + offset).rem_euclid(1440);
        let time = format!(" {:02}:{:02} ", local / 60, local % 60);
        let listed = home.run(&["sessions", "list"], "").await.stdout;
        assert!(listed.contains(&time), "{zone}: {time}, {listed}");
        let mut terminal = home.terminal(&["chat", "--model", &model]);
        terminal.until_screen("/help", (24, 100)).await;
        terminal.say("/resume\r").await;
        // The list of the chat has ages, which no zone changes.
        let screen = terminal.until_screen("Sessions of ", (24, 100)).await;
        assert!([" s  go", " min  go"].iter().any(|age| screen.contains(age)), "{zone}: {screen}");
        terminal.hang_up().kill().await.unwrap();
        let listed = home.run(&["sessions", "list", "--json"], "").await.lines()[0].clone();
        assert_eq!(listed["updatedAt"], utc, "{zone}");
    }
    // A token was created about when the session was updated.
    let list = async |zone| {
        home.env("TZ", zone);
        home.run(&["token", "list"], "").await.stdout
    };
    let (utc, local) = (list("UTC0").await, list("JST-9").await);
    assert!(utc != local && !utc.contains('Z'), "{utc}{local}");
}
