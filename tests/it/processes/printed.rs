//! The output of commands as models receive it: what a terminal would show.

use serde_json::json;

use harness::steps::{bash, calls_one};
use harness::{Home, tool};

/// What a command prints, in the notation of printf(1), and what the model gets.
const CASES: &[(&str, &str)] = &[
    // Colours, titles, hyperlinks.
    (r"\033[1;31mred\033[0m\n", "red\n"),
    (r"\033]0;title\007text\n", "text\n"),
    (r"\033]8;;http://a.b\033\\link\033]8;;\033\\\n", "link\n"),
    (r"\033[38;2;1;2;3mrgb\033[m \033(Bset\n", "rgb set\n"),
    (r"\302\23331mc1\n", "c1\n"),
    // Lines that are overwritten.
    (r"10%%\r50%%\r100%%\n", "100%\n"),
    (r"\r10%%\r50%%\r100%%", "100%\n"),
    (r"fetching 1/2\r\033[Kdone\n", "done\n"),
    (r"fetching 1/2\033[2K\rdone\n", "done\n"),
    (r"fetching 1/2\033[1Gready\033[0K\n", "ready\n"),
    (r"abc\b\b\bxyz\n", "xyz\n"),
    (r"one\nwait 1\033[1A\033[2K\rdone\n\033[2Knext\n", "done\nnext\n"),
    // Line breaks of Windows, and what a terminal does not show.
    (r"a\r\nb\r\n", "a\nb\n"),
    (r"nul\000 bell\007 del\177 ff\f end\n", "nul bell del ff end\n"),
    (r"\t\303\251 tab \360\237\231\202\n", "\té tab 🙂\n"),
    (r"bad \377\303 byte\n", "bad \u{fffd}\u{fffd} byte\n"),
    (r"open \033[31", "open \n"),
    (r"open \033]0;title\nnext\n", "open \nnext\n"),
];

#[tokio::test]
async fn output_for_the_model_has_no_terminal_sequences_and_the_last_state_of_each_line() {
    let home = Home::new();
    let steps: Vec<_> = CASES.iter().map(|(printed, _)| bash(&format!("printf '{printed}'"))).collect();
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    agent.finish().await;
    let messages = harness::provider::session::messages(&home, &session).await;
    let results: Vec<&str> =
        messages.iter().filter(|message| message["role"] == "tool").map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(results.len(), CASES.len());
    for (index, (printed, text)) in CASES.iter().enumerate() {
        assert_eq!(results[index], format!("{text}exit code: 0"), "{printed}");
        assert!(!tool(&updates, index).to_string().contains("\\u00"), "{printed}");
    }
}

/// A progress bar of 200 kB is one line for the model; the artifact has every byte.
#[tokio::test]
async fn artifact_keeps_the_bytes_that_the_model_does_not_get() {
    let home = Home::new();
    let bar = "for i in {1..20000}; do printf '\\r\\033[32mstep %d\\033[0m' $i; done; echo";
    let long = "for i in {1..20000}; do printf '\\033[32mline %d\\033[0m\\n' $i; done";
    let (mut agent, session) = home.session(json!([bash(bar), bash(long)]), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    agent.finish().await;
    let details = |index| tool(&updates, index)["rawOutput"].clone();
    for (index, truncated, piece) in [(0, false, "\r\u{1b}[32mstep 20000\u{1b}[0m\n"), (1, true, "\u{1b}[32mline 20000\u{1b}[0m\n")]
    {
        let details = details(index);
        assert_eq!(details["truncated"], truncated, "{details}");
        let kept = std::fs::read_to_string(details["artifact"].as_str().unwrap()).unwrap();
        assert!(kept.contains(piece) && kept.matches('\u{1b}').count() == 40_000, "{} bytes", kept.len());
    }
    let shown = tool(&updates, 0)["content"].to_string();
    assert!(shown.contains("step 20000\\nexit code: 0") && shown.len() < 200, "{shown}");
    let shown = tool(&updates, 1)["content"].to_string();
    assert!(!shown.contains("u001b") && shown.contains("line 20000\\n") && shown.contains("bytes left out"), "{shown:.300}");
}

/// The output of a background job arrives in pieces that end anywhere.
#[tokio::test]
async fn background_output_has_no_terminal_sequences() {
    let home = Home::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join("pipe"), mode).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join("back"), mode).unwrap();
    let line = "printf '1%%\\r\\033[32m2%%\\033[0m\\nbegun \\033[3'; echo > pipe; cat back; printf '1mred\\033[0m\\n'; echo > pipe";
    let steps = [
        calls_one("bash", json!({"command": line, "background": true})),
        bash("cat pipe"),
        calls_one("bash_output", json!({"job": "1"})),
        bash("echo > back; cat pipe"),
        calls_one("bash_output", json!({"job": "1"})),
    ];
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    agent.finish().await;
    let shown = |index| tool(&updates, index)["content"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(shown(2).starts_with("2%\nbegun \n["), "{:?}", shown(2));
    assert!(shown(4).contains("red\n[job 1"), "{:?}", shown(4));
}

#[tokio::test]
async fn output_of_a_failed_check_has_no_terminal_sequences() {
    let home = Home::new();
    let check = "printf '\\r1/2\\r\\033[K\\033[31mFAILED\\033[0m one_test\\n'; exit 1";
    let steps = [calls_one("verify", json!({"commands": [check]}))];
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    agent.finish().await;
    let shown = tool(&updates, 0).to_string();
    assert!(shown.contains("\\nFAILED one_test\\n") || shown.contains("FAILED one_test"), "{shown}");
    let content = tool(&updates, 0)["content"].to_string();
    assert!(!content.replace(check, "").contains("u001b["), "{content}");
}
