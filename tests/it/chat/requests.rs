//! Permission requests in the chat: reasons, hunks, notifications, and answers of other clients.

use serde_json::json;

use super::{SIZE, answer, chat, end, session};
use harness::steps::bash_call;
use harness::{Home, Reply, poll};

#[tokio::test]
async fn rejection_gives_the_model_a_reason() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"expect": "not on Friday", "text": "understood"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("Reject and say why", SIZE).await;
    let number = screen.split("] Reject and say why").next().unwrap().rsplit('[').next().unwrap().to_owned();
    answer(&mut terminal, &number).await;
    terminal.until_screen("Enter rejects with this reason", SIZE).await;
    terminal.say("not on Friday\r").await;
    terminal.until_screen("understood\n", SIZE).await;
    assert!(home.get("made").is_none());
    end(terminal).await;
}

#[tokio::test]
async fn hunks_of_a_review_are_chosen() {
    let home = Home::new();
    home.config("[review]\nmode = \"request\"\n");
    let text = |third: &str, last: &str| {
        let line = |number| match number {
            3 => format!("{third}\n"),
            25 => format!("{last}\n"),
            number => format!("line {number}\n"),
        };
        (1..=30).map(line).collect::<String>()
    };
    home.put("a.txt", &text("line 3", "line 25"));
    let write = json!({"name": "write", "input": {"file_path": "a.txt", "content": text("THREE", "LAST")}});
    let read = json!({"name": "read", "input": {"file_path": "a.txt"}});
    let steps = json!([{"tool_calls": [read, write]}, {"text": "done"}, {"text": "done"}]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("Choose hunks", SIZE).await;
    let number = screen.split("] Choose hunks").next().unwrap().rsplit('[').next().unwrap().to_owned();
    answer(&mut terminal, &number).await;
    let screen = terminal.until_screen("2 of 2 changes accepted", SIZE).await;
    assert!(screen.contains("-line 3\n") && screen.contains("+THREE"), "{screen}");
    terminal.say("\u{1b}[B ").await;
    let screen = terminal.until_screen("1 of 2 changes accepted", SIZE).await;
    assert!(screen.contains("[ ] ") && screen.contains("+LAST"), "{screen}");
    terminal.until_screen("Enter sends", SIZE).await;
    // Pasted text sends nothing.
    terminal.say("x\r").await;
    terminal.until_screen("\nSpace accepts", SIZE).await;
    let screen = terminal.until_screen("Enter sends", SIZE).await;
    assert!(screen.contains("1 of 2 changes accepted"), "{screen}");
    terminal.say("\r").await;
    terminal.until_screen("tokens in", SIZE).await;
    assert_eq!(home.get("a.txt").unwrap(), text("THREE", "line 25"));
    end(terminal).await;
}

#[tokio::test]
async fn rejected_hunk_of_a_call_is_named_as_not_applied() {
    let home = Home::new();
    let text = |third: &str, last: &str| {
        let line = |number| match number {
            3 => format!("{third}\n"),
            25 => format!("{last}\n"),
            number => format!("line {number}\n"),
        };
        (1..=30).map(line).collect::<String>()
    };
    home.put("a.txt", &text("line 3", "line 25"));
    let read = json!({"name": "read", "input": {"file_path": "a.txt"}});
    let write = json!({"name": "write", "input": {"file_path": "a.txt", "content": text("THREE", "LAST")}});
    let mut terminal = chat(&home, json!([{"tool_calls": [read]}, {"tool_calls": [write]}, {"text": "done"}]), &[]).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("Choose hunks", SIZE).await;
    let number = screen.split("] Choose hunks").next().unwrap().rsplit('[').next().unwrap().to_owned();
    answer(&mut terminal, &number).await;
    terminal.until_screen("2 of 2 changes accepted", SIZE).await;
    terminal.say("\u{1b}[B ").await;
    terminal.until_screen("1 of 2 changes accepted", SIZE).await;
    terminal.until_screen("Enter sends", SIZE).await;
    terminal.say("\r").await;
    let screen = terminal.until_screen("tokens in", SIZE).await;
    assert!(screen.contains("\n  1 of 2 hunks applied; not applied: a.txt line 22\n"), "{screen}");
    assert_eq!(home.get("a.txt").unwrap(), text("THREE", "line 25"));
    end(terminal).await;
}

#[tokio::test]
async fn answer_for_the_session_says_what_it_allows() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"text": "done"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("] Always allow", SIZE).await;
    let number = screen.split("] Always allow").next().unwrap().rsplit('[').next().unwrap().to_owned();
    answer(&mut terminal, &number).await;
    let screen = terminal.until_screen("tokens in", SIZE).await;
    assert!(screen.contains("\n  you allowed it (Always allow "), "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn result_after_a_plan_names_its_call() {
    let home = Home::new();
    let entries = json!([{"content": "the first step", "priority": "medium", "status": "completed"}]);
    let calls = json!([bash_call("echo made"), {"name": "plan", "input": {"entries": entries}}]);
    let mut terminal = chat(&home, json!([{"tool_calls": calls}, {"text": "done"}]), &[]).await;
    terminal.say("go\r").await;
    terminal.until_screen("the first step", SIZE).await;
    terminal.until_screen("[1] Allow", SIZE).await;
    answer(&mut terminal, "1").await;
    let screen = terminal.until_screen("tokens in", SIZE).await;
    let (_, after) = screen.split_once("the first step").unwrap();
    assert!(after.contains("● echo made · exit 0 ") && after.contains("  you allowed it\n  made\n"), "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn request_is_notified_only_without_the_focus() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("true")]}, {"tool_calls": [bash_call("true # two")]}, {"text": "done"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("go\r").await;
    terminal.until_screen("[1] Allow", SIZE).await;
    // A title ends with the same character.
    let bells = |shown: &str| shown.matches('\u{7}').count() - shown.matches("\u{1b}]").count();
    assert_eq!(bells(&terminal.so_far()), 0);
    terminal.say("\u{1b}[O").await;
    answer(&mut terminal, "1").await;
    terminal.until_screen("Allow `true # two`?", SIZE).await;
    poll("the bell", || bells(&terminal.so_far()) == 1).await;
    terminal.say("\u{1b}[I").await;
    answer(&mut terminal, "1").await;
    terminal.until_screen("done\n", SIZE).await;
    end(terminal).await;
}

#[tokio::test]
async fn two_chats_and_an_editor_see_and_answer_the_same() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"tool_calls": [bash_call("touch again")]}, {"text": "the end"}]);
    let mut first = chat(&home, steps, &[]).await;
    first.say("go\r").await;
    first.until_screen("[1] Allow", SIZE).await;
    let listed = home.run(&["sessions", "list", "--json"], "").await;
    let listed: serde_json::Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    let id = listed["sessionId"].as_str().unwrap();
    let mut second = home.terminal(&["chat", "--resume", id]);
    second.until_screen("Allow `touch made`?", SIZE).await;
    let mut editor = home.start(&[]).await;
    editor.otherwise = Reply::Never;
    editor.call("session/load", json!({"sessionId": id, "cwd": home.work(), "mcpServers": []})).await;
    // The second chat answers the first request; both go on to the next one.
    answer(&mut second, "1").await;
    for terminal in [&mut first, &mut second] {
        terminal.until_screen("Allow `touch again`?", SIZE).await;
    }
    first.until_screen("  you allowed it", SIZE).await;
    // The editor answers the second one.
    let open = editor.call("_nuncio/permission/list", json!({"sessionId": id})).await;
    let permission = &open["permissions"][0]["permissionId"];
    editor.call("_nuncio/permission/answer", json!({"permissionId": permission, "outcome": "allow_once"})).await;
    for terminal in [&mut first, &mut second] {
        terminal.until_screen("the end\n", SIZE).await;
    }
    // A message of the second chat is shown in the first one.
    second.say("from the second\r").await;
    first.until_screen("> from the second\n", SIZE).await;
    assert!(home.get("made").is_some() && home.get("again").is_some());
    let shown = end(second).await;
    assert_eq!(session(&shown), id);
    end(first).await;
    editor.finish().await;
}

#[tokio::test]
async fn run_asks_about_each_file_of_a_review() {
    // Keys, kept files.
    for (keys, kept) in [("ny", &["b.txt"][..]), ("ya", &["a.txt", "b.txt", "c.txt"]), ("d", &[])] {
        let home = Home::new();
        home.config("[review]\nmode = \"request\"\n");
        let write = |name: &str| json!({"name": "write", "input": {"file_path": name, "content": "new\n"}});
        let steps = json!([{"tool_calls": [write("a.txt"), write("b.txt"), write("c.txt")]}, {"text": "done"}, {"text": "done"}]);
        let model = home.script(steps);
        let mut terminal = home.terminal(&["run", "--model", &model, "--mode", "auto", "go"]);
        for (number, key) in keys.chars().enumerate() {
            let name = ["a.txt", "b.txt", "c.txt"][number];
            let asked = terminal.until(&format!("({} of 3)  [y]es", number + 1)).await;
            assert!(asked.contains(&format!("Keep {}?", home.work().join(name).display())), "{asked}");
            terminal.say(&key.to_string()).await;
        }
        if keys == "ny" {
            terminal.until("(3 of 3)  [y]es").await;
            terminal.say("n").await;
        }
        let (code, shown) = terminal.end().await;
        let found: Vec<&str> = ["a.txt", "b.txt", "c.txt"].into_iter().filter(|name| home.get(name).is_some()).collect();
        assert_eq!(found, kept, "{keys}: {code} {shown}");
    }
}

/// Text that a terminal passes on without marks, or that contains the mark of its end, answers
/// nothing.
#[tokio::test]
async fn paste_answers_no_request() {
    for (pasted, shown) in [
        ("1x", "> 1x"),
        ("11", "> 11"),
        ("x1", "> x1"),
        ("1 2", "> 1 2"),
        ("1\u{1b}[200~x\u{1b}[201~", "> 1x"),
        ("\u{1b}[200~x\u{1b}[201~1", "> x1"),
        ("\u{1b}[200~x\u{1b}[201~1\u{1b}[201~", "> x1"),
        ("\u{1b}[I1", "> 1"),
        ("1\u{1b}[I", "> 1"),
        ("\t1\t", "> 1"),
        ("\t\t1", "> 1"),
    ] {
        let home = Home::new();
        let mut terminal = chat(&home, json!([{"tool_calls": [bash_call("touch made")]}, {"text": "done"}]), &[]).await;
        terminal.say("go\r").await;
        terminal.until_screen("[1] Allow", SIZE).await;
        terminal.say("\t").await;
        terminal.until_screen("digits answer", SIZE).await;
        terminal.say(pasted).await;
        let screen = terminal.until_screen(shown, SIZE).await;
        assert!(screen.contains("[1] Allow") && home.get("made").is_none(), "{pasted:?}: {screen}");
        // The key by itself answers.
        terminal.say("\u{3}").await;
        terminal.until_screen("\n>\n", SIZE).await;
        terminal.until_screen("digits answer", SIZE).await;
        terminal.say("1").await;
        terminal.until_screen("done\n", SIZE).await;
        assert!(home.get("made").is_some());
        end(terminal).await;
    }
}

/// Makes a named pipe in the directory of the session.
fn pipe(home: &Home, name: &str) {
    let path = home.work().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

/// Returns whether the rows of running work have one for the command.
fn is_running(screen: &str, command: &str) -> bool {
    screen.lines().any(|row| row.contains(&format!(" `{command}`  ")) && row.trim_end().ends_with(" s"))
}

#[tokio::test]
async fn each_running_call_has_a_row_also_beside_a_request() {
    let home = Home::new();
    for name in ["one", "two", "three"] {
        pipe(&home, name);
    }
    home.config("[permissions]\nrules = [{ tool = \"bash\", pattern = \"cat three\", policy = \"ask\" }]\n");
    let reads = |names: &[&str]| {
        let calls: Vec<_> = names.iter().map(|name| bash_call(&format!("cat {name}"))).collect();
        json!({ "tool_calls": calls })
    };
    let steps = json!([reads(&["one", "two"]), {"text": "the first"}, reads(&["one", "three"]), {"text": "the second"}]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    let write = |name: &str| std::fs::write(home.work().join(name), name).unwrap();
    terminal.say("go\r").await;
    let screen = terminal.until_screen("`cat two`  ", SIZE).await;
    assert!(is_running(&screen, "cat one") && is_running(&screen, "cat two"), "{screen}");
    write("two");
    write("one");
    terminal.until_screen("the first\n", SIZE).await;
    terminal.say("again\r").await;
    terminal.until_screen("Allow `cat three`?", SIZE).await;
    let screen = terminal.until_screen("`cat one`  ", SIZE).await;
    assert!(is_running(&screen, "cat one") && !is_running(&screen, "cat three"), "{screen}");
    answer(&mut terminal, "1").await;
    let screen = terminal.until_screen("`cat three`  ", SIZE).await;
    assert!(is_running(&screen, "cat one") && is_running(&screen, "cat three"), "{screen}");
    write("three");
    write("one");
    terminal.until_screen("the second\n", SIZE).await;
    end(terminal).await;
}
