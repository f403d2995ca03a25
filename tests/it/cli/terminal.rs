//! Terminal output contains no control sequences of models, tools or files, and permission requests
//! show every character.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::check;
use harness::steps::bash_call;
use harness::{Home, Terminal};

/// Control sequences and characters of a terminal.
const HOSTILE: &[&str] = &[
    "\u{1b}[2K",
    "\u{1b}[1;31m",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]52;c;Y3VybA==\u{1b}\\",
    "\u{1b}P1$r0m\u{1b}\\",
    "\u{1b}_app\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}Xstart\u{1b}\\",
    "\u{1b}c",
    "\u{1b}(0",
    "\u{8}\u{8}",
    "\u{7f}",
    "\u{9b}31m",
    "\u{9d}0;title\u{9c}",
    "\u{85}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{61c}",
    "\r",
];

fn hostile(marker: &str) -> String {
    HOSTILE.iter().map(|piece| format!("{piece}{marker}")).collect()
}

/// Asserts that the text contains no control characters of a terminal.
#[track_caller]
fn assert_plain(shown: &str) {
    let acts = |character: char| match character {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    };
    let found: Vec<char> = shown.chars().filter(|character| acts(*character)).collect();
    assert!(found.is_empty(), "{found:?} in {shown:?}");
}

/// A home without terminal colours: every escape sequence in the output is an error.
fn home() -> Home {
    let home = Home::new();
    home.env("NO_COLOR", "1");
    home
}

#[tokio::test]
async fn forged_question_shows_the_whole_command() {
    let home = home();
    home.put("victim/file", "");
    let command = "rm -rf victim #\u{1b}[2K\rls -la";
    let model = home.script(json!([{"tool_calls": [bash_call(command)]}, {"text": "so be it"}]));
    let mut terminal = home.terminal(&["run", "--model", &model, "go"]);
    let shown = terminal.until("[r] always reject: ").await;
    assert!(shown.contains("Allow `rm -rf victim #^[[2K^Mls -la`?"), "{shown:?}");
    terminal.reject().await;
    let (code, shown) = terminal.end().await;
    assert_plain(&shown);
    assert_eq!((code, home.get("victim/file").is_some()), (4, true), "{shown}");
}

#[tokio::test]
async fn question_shows_every_line_and_every_invisible_character() {
    let home = home();
    let long = format!("echo {}", "x".repeat(500));
    let odd = "echo a\u{202e}b\u{200b}c\u{a0}d\u{9b}e\u{7f}f\u{e0041}g\u{feff}h";
    // A call, and the required texts of its question.
    let cases = [
        (bash_call(odd), vec!["echo a<U+202E>b<U+200B>c<U+00A0>d<U+009B>e^?f<U+E0041>g<U+FEFF>h"]),
        (
            bash_call("echo one\n\u{1b}[1A\u{1b}[2Kecho two\r\necho three"),
            vec!["  echo one\n", "  ^[[1A^[[2Kecho two^M\n", "  echo three\n"],
        ),
        (bash_call(&long), vec![long.as_str()]),
        (
            json!({"name": "bash", "input": {"command": "ls", "env": {"LD_PRELOAD": "./evil\u{1b}[8m.so"}}}),
            vec!["LD_PRELOAD", "evil", "^[[8m", ".so"],
        ),
        (
            json!({"name": "write", "input": {"file_path": "a\nb\u{1b}[2K.sh", "content": "one\u{202e}\r\ntwo\u{1b}[1A\n"}}),
            vec![r#"Allow Write "a\nb\u{1b}[2K.sh"?"#, "+one<U+202E>^M\n", "+two^[[1A\n"],
        ),
    ];
    for flags in [&[][..], &["--json"]] {
        for (call, words) in &cases {
            let model = home.script(json!([{"tool_calls": [call]}, {"text": "so be it"}]));
            let mut terminal = home.terminal(&[&["run", "--model", &model], flags, &["go"]].concat());
            let shown = terminal.until("[r] always reject: ").await;
            for word in words {
                assert!(shown.contains(word), "{flags:?}: no {word:?} in {shown:?}");
            }
            terminal.reject().await;
            let (code, shown) = terminal.end().await;
            assert_plain(&shown);
            assert_eq!(code, 4, "{shown}");
        }
    }
    // `nuncio tool` asks the same question.
    let input = json!({"command": odd}).to_string();
    let mut terminal = home.terminal(&["tool", "bash", &input]);
    let shown = terminal.until("[r] always reject: ").await;
    assert!(shown.contains(cases[0].1[0]), "{shown:?}");
    terminal.reject().await;
    let (code, shown) = terminal.end().await;
    assert_plain(&shown);
    assert_eq!(code, 4, "{shown}");
}

#[tokio::test]
async fn only_offered_answers_are_listed() {
    let home = home();
    // A call with changes to two files has no "always" options.
    let patch = "*** Begin Patch\n*** Add File: a\n+a\n*** Add File: b\n+b\n*** End Patch";
    let call = json!({"name": "apply_patch", "input": {"patch": patch}});
    let model = home.script(json!([{"tool_calls": [call]}, {"text": "so be it"}]));
    let mut terminal = home.terminal(&["run", "--model", &model, "go"]);
    // An answer that was not offered is not accepted, and neither are an arrow key and pasted text.
    for (asked, key) in ["a", "\u{1b}[A", "yes", "y\n", "\ny", "\u{1b}[200~y\u{1b}[201~"].into_iter().enumerate() {
        terminal.until_times("[n]o: ", asked + 1).await;
        terminal.say(key).await;
    }
    terminal.until_times("[n]o: ", 7).await;
    terminal.reject().await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 4, "{shown}");
    assert!(!shown.contains("[a]") && !shown.contains("[r]"), "{shown}");
    assert!(home.get("a").is_none(), "{shown}");
}

async fn only_session(home: &Home) -> String {
    home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().into()
}

#[tokio::test]
async fn output_on_a_terminal_has_no_control_sequences() {
    let home = home();
    let file = format!("f{}.txt", "\u{1b}]0;t\u{7}\u{202e}x");
    home.put(&file, "one\n");
    home.put("raw", &hostile("R"));
    let steps = json!([
        {"thinking": hostile("T"), "text": hostile("A"), "chunk_chars": 1, "tool_calls": [
            {"name": "read", "input": {"file_path": "raw"}},
            bash_call("cat raw; exit 1"),
            {"name": "edit", "input": {"file_path": file, "old_string": "one", "new_string": hostile("E")}},
            {"name": "edit", "input": {"file_path": hostile("missing"), "old_string": "one", "new_string": "two"}},
            {"name": "plan", "input": {"entries": [{"content": hostile("P"), "status": "pending"}]}},
            {"name": hostile("unknown"), "input": {}},
        ]},
        {"text": "the end"},
    ]);
    let model = home.script(steps);
    let prompt = format!("{}\nmore", hostile("U"));
    let (code, shown) = home.terminal(&["run", "--model", &model, "--mode", "auto", &prompt]).end().await;
    assert_plain(&shown);
    assert_eq!(code, 0, "{shown}");
    for letter in ["A", "R", "E", "P"] {
        assert!(shown.contains(&letter.repeat(3)), "no {letter}: {shown}");
    }
    let session = only_session(&home).await;
    for command in [&["sessions", "show", &session][..], &["sessions", "list"]] {
        let (code, shown) = home.terminal(command).end().await;
        assert_plain(&shown);
        assert!(code == 0 && shown.contains("UUU"), "{shown}");
        // Output for humans is filtered in pipes too.
        let piped = home.run(command, "").await;
        assert_plain(&piped.stdout);
    }
    // JSON values are the same on a terminal and in a pipe, in spite of escapes.
    for command in
        [&["sessions", "show", &session, "--json"][..], &["sessions", "list", "--json"], &["sessions", "export", &session]]
    {
        let (code, shown) = home.terminal(command).end().await;
        assert_plain(&shown);
        let values = |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
        assert_eq!((code, values(&shown)), (0, values(&home.run(command, "").await.stdout)));
    }
    // The list has one line per session.
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout.lines().count(), 1);
}

#[tokio::test]
async fn messages_that_quote_input_have_no_control_sequences() {
    let home = home();
    let name = hostile("N");
    let commands: &[&[&str]] = &[
        &[&name],
        &["run", "--mode", &name, "go"],
        &["run", "--model", &format!("{name}/x"), "go"],
        &["run", "--cwd", &name, "go"],
        &["sessions", "show", &name],
        &["tool", &name],
        &["schema", &name],
        &["token", "revoke", &name],
        &["doctor", "--model", &format!("scripted:{name}")],
        &["trust", &name],
    ];
    for command in commands {
        let (code, shown) = home.terminal(command).end().await;
        assert_plain(&shown);
        assert!(code != 0 && shown.contains("NNN"), "{command:?}: {shown}");
    }
}

/// Text of the model is written to pipes and files unchanged.
#[tokio::test]
async fn answer_on_a_pipe_is_exact() {
    let home = home();
    let model = home.script(json!([{"text": hostile("A"), "chunk_chars": 1}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert_eq!(ran.stdout, hostile("A") + "\n");
}

#[tokio::test]
async fn no_color_and_dumb_terminals_get_no_colours() {
    let steps = json!([{"thinking": "hm", "text": "hello", "tool_calls": [{"name": "list", "input": {}}]}, {"text": "bye"}]);
    // Variable, value, flags, colours expected.
    let cases = [
        ("TERM", "xterm", &[][..], true),
        ("NO_COLOR", "", &[], true),
        ("NO_COLOR", "1", &[], false),
        ("TERM", "dumb", &[], false),
        ("TERM", "xterm", &["--plain"], false),
    ];
    for (name, value, flags, colours) in cases {
        let home = Home::new();
        home.env(name, value);
        let model = home.script(steps.clone());
        let (code, shown) = home.terminal(&[&["run", "--model", &model], flags, &["go"]].concat()).end().await;
        assert_eq!((code, shown.contains('\u{1b}')), (0, colours), "{name}={value} {flags:?}: {shown:?}");
        let (code, shown) = home.terminal(&["sessions", "show", &only_session(&home).await]).end().await;
        assert_eq!((code, shown.contains('\u{1b}')), (0, colours || !flags.is_empty()), "{name}={value}: {shown:?}");
    }
}

#[tokio::test]
async fn command_shows_its_last_lines_and_its_exit_code() {
    let home = Home::new();
    let model = home.script(
        json!([{"tool_calls": [bash_call("seq 1 40; exit 3")]}, {"tool_calls": [bash_call("seq 101 140")]}, {"text": "bye"}]),
    );
    let ran = home.run(&["run", "--model", &model, "--mode", "auto", "--sandbox", "off", "go"], "").await;
    check(&ran, 0, &["✗ seq 1 40; exit 3 · exit 3 · ", "  … 35 lines: nuncio sessions show sess_", "  36\n", "  40\n"]);
    check(&ran, 0, &["● seq 101 140 · exit 0 · ", "  … 38 lines: nuncio sessions show sess_", "  139\n", "  140\n"]);
    assert!(!ran.stderr.contains("  35\n") && !ran.stderr.contains("  138\n"), "{ran:?}");
}

/// The follower is another process: an event that it has read would already be on the terminal.
#[tokio::test]
async fn question_is_not_interleaved_with_a_parallel_result() {
    let home = home();
    home.put("a.txt", "what the file holds\n");
    let model = home.script(json!([
        {"tool_calls": [bash_call("echo ran"), {"name": "read", "input": {"file_path": "a.txt"}}]},
        {"text": "bye"},
    ]));
    let server = home.serve(&[]).await;
    let mut terminal = home.terminal(&["run", "--model", &model, "go"]);
    terminal.until("[r] always reject: ").await;
    let mut events = server.follow(&only_session(&home).await).events().await;
    events.until("tool.completed").await;
    drop(events);
    server.stop().await;
    let question = terminal.so_far();
    assert!(question.ends_with(": ") && !question.contains("Read a.txt"), "{question}");
    terminal.say("y").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    let after = &shown[question.len()..];
    assert!(["Read a.txt 1 line", "  ran", "bye"].iter().all(|words| after.contains(words)), "{shown}");
}

#[tokio::test]
async fn input_that_is_not_json_gets_a_hint_on_standard_error() {
    let home = Home::new();
    let ran = home.run(&[], "hello\n").await;
    check(&ran, 0, &["parse_error"]);
    assert!(ran.stderr.contains("nuncio run"), "{ran:?}");
    for (arguments, input) in [
        (&[][..], " \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n"),
        (&["acp"], "hello\n"),
    ] {
        let ran = home.run(arguments, input).await;
        assert!(!ran.stderr.contains("nuncio run"), "{ran:?}");
    }
}

#[tokio::test]
async fn prompt_as_a_command_suggests_run() {
    let home = Home::new();
    check(&home.run(&["explain"], "").await, 2, &["'explain'", "nuncio run \"explain\""]);
}

/// On a terminal, the path of the token and the address come first, then one readable line per
/// request, except for the files of the console.
#[tokio::test]
async fn serve_logs_readable_lines_on_a_terminal() {
    let home = home();
    let mut terminal: Terminal = home.terminal(&["serve", "--http", "127.0.0.1:0"]);
    let shown = terminal.until("/#token=").await;
    let (place, url) = shown.trim_end().split_once('\n').unwrap();
    assert!(place.contains(home.data().join("token").to_str().unwrap()), "{shown}");
    let address = url.strip_prefix("nuncio listens on http://").and_then(|rest| rest.split('/').next()).unwrap();
    let bridge = harness::Bridge { address: address.parse().unwrap(), token: home.token() };
    assert_eq!(bridge.get("/console/app.js").send().await.status, 200);
    bridge.get("/v1/sessions").expect(200).await;
    let shown = terminal.until("GET /v1/sessions 200").await;
    assert!(!shown.contains("app.js"), "{shown}");
    kill_process(Pid::from_raw(terminal.pid as i32).unwrap(), Signal::TERM).unwrap();
    let (code, shown) = terminal.end().await;
    assert_plain(&shown);
    assert!(code == 0 && !shown.contains('{'), "{shown}");
}

/// Without a terminal, the log has JSON lines; one of them contains the path of the token file.
#[tokio::test]
async fn serve_log_names_token_file_without_terminal() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    let (token, said) = (server.token.clone(), server.stop().await);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file = home.data().join("token").display().to_string();
    assert!(lines.iter().any(|line| line["fields"]["token_file"] == file), "{said}");
    assert!(!said.contains(&token), "{said}");
}

#[tokio::test]
async fn reason_of_a_rejection_reaches_the_model() {
    let home = home();
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"expect": "use the makefile", "text": "so be it"}]);
    let mut terminal = home.terminal(&["run", "--model", &home.script(steps), "go"]);
    terminal.until("[r] always reject: ").await;
    // One key is enough.
    terminal.say("n").await;
    terminal.until("Reason for the model").await;
    terminal.say("use the makefile\n").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 4 && shown.contains("so be it"), "{shown}");
}

#[tokio::test]
async fn run_names_the_session_shows_its_work_and_what_it_used() {
    let home = Home::new();
    let wait = bash_call("echo started; until test -e go; do sleep 0.01; done; echo finished; exit 3");
    let steps = json!([{"tool_calls": [wait]}, {"text": "the end"}]);
    let mut terminal = home.terminal(&["run", "--model", &home.script(steps), "--mode", "auto", "go"]);
    // The line about the running command has its last output line.
    let shown = terminal.until("s  started").await;
    assert!(shown.contains("· scripted:") && shown.contains("· mode auto · session sess_"), "{shown}");
    home.put("go", "");
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("exit 3") && shown.contains(" tokens in, "), "{shown}");
    // In a pipe there is neither.
    let ran = home.run(&["run", "--model", &home.script(json!([{"text": "the end"}])), "go"], "").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("the end\n", ""));
}

#[tokio::test]
async fn markdown_is_rendered_on_a_terminal_and_unchanged_in_a_pipe() {
    let home = Home::new();
    let answer = "# Head\nplain **bold** and `code *x*` end\n- item\n  1. one\n> quote\n\n---\n```rust\nlet a = **b;\n```\n| a | Bé |\n|---|---|\n| long cell | 世 |\nafter 2 * 3 ** 4";
    // Pieces of all lengths give the same output.
    for chunk in [1, 3, 1000] {
        let steps = json!([{"text": answer, "chunk_chars": chunk}]);
        let (code, shown) = home.terminal(&["run", "--model", &home.script(steps), "go"]).end().await;
        let expected = "\u{1b}[1;4mHead\u{1b}[0m\nplain \u{1b}[1mbold\u{1b}[0m and \u{1b}[36mcode *x*\u{1b}[0m end\n\
            • item\n  1. one\n\u{1b}[2m│\u{1b}[0m quote\n\n\u{1b}[2m───\u{1b}[0m\n\u{1b}[2m─── rust\u{1b}[0m\n\u{1b}[35mlet\u{1b}[0m a = **b;\n\
            \u{1b}[2m───\u{1b}[0m\n\u{1b}[1ma\u{1b}[0m                \u{1b}[2m│\u{1b}[0m \u{1b}[1mBé\u{1b}[0m\n\
            \u{1b}[2m─────────────────┼───\u{1b}[0m\nlong cell        \u{1b}[2m│\u{1b}[0m 世\n\
            after 2 * 3 ** 4 \u{1b}[2m│\u{1b}[0m\n";
        assert!(code == 0 && shown.contains(expected), "{chunk}: {shown:?}");
    }
    let ran = home.run(&["run", "--model", &home.script(json!([{"text": answer}])), "go"], "").await;
    assert_eq!(ran.stdout, format!("{answer}\n"));
    let plain = home.script(json!([{"text": answer}]));
    let (_, shown) = home.terminal(&["run", "--plain", "--model", &plain, "go"]).end().await;
    assert!(shown.contains("plain **bold** and `code *x*` end\n"), "{shown}");
}
