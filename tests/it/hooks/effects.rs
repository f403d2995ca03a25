//! The effects of hooks on tool calls.

use serde_json::{Value, json};

use super::{Events, home, hook, one_call, read_a};
use harness::{Home, Reply};

/// A hook on a call that reads `a.txt`, and what must follow.
struct Case {
    name: &'static str,
    event: &'static str,
    script: &'static str,
    outcomes: &'static [&'static str],
    status: &'static str,
    /// Texts that the result contains.
    output: &'static [&'static str],
    /// Text that the next model request contains.
    next: &'static str,
}

const BEFORE: &str = "tool.execute.before";
const AFTER: &str = "tool.execute.after";
const VALIDATE: &str = "tool.result.validate";

const CASES: &[Case] = &[
    Case {
        name: "no answer",
        event: BEFORE,
        script: "cat > /dev/null",
        outcomes: &["unchanged"],
        status: "completed",
        output: &["alpha"],
        next: "alpha",
    },
    Case {
        name: "an approval",
        event: BEFORE,
        script: r#"echo '{"decision":"approve"}'"#,
        outcomes: &["unchanged"],
        status: "completed",
        output: &["alpha"],
        next: "alpha",
    },
    Case {
        name: "exit code 2",
        event: BEFORE,
        script: "echo not this file >&2; exit 2",
        outcomes: &["blocked"],
        status: "failed",
        output: &["blocked by hook sh -c", "not this file"],
        next: "not this file",
    },
    Case {
        name: "a decision",
        event: BEFORE,
        script: r#"echo '{"decision":"block","reason":"not this file"}'"#,
        outcomes: &["blocked"],
        status: "failed",
        output: &["not this file"],
        next: "not this file",
    },
    Case {
        name: "a new input",
        event: BEFORE,
        script: r#"echo '{"input":{"file_path":"b.txt"}}'"#,
        outcomes: &["changed"],
        status: "completed",
        output: &["beta", "a hook changed the input of this call to the following\n{\"file_path\":\"b.txt\"}"],
        next: "beta",
    },
    Case {
        name: "an equal input",
        event: BEFORE,
        script: r#"echo '{"input":{"file_path":"a.txt"}}'"#,
        outcomes: &["unchanged"],
        status: "completed",
        output: &["alpha"],
        next: "alpha",
    },
    Case {
        name: "an invalid input",
        event: BEFORE,
        script: r#"echo '{"input":{"file_path":"b.txt","nonsense":1}}'"#,
        outcomes: &["failed"],
        status: "failed",
        output: &["the new input is invalid", "nonsense"],
        next: "nonsense",
    },
    Case {
        name: "a misspelled field",
        event: BEFORE,
        script: r#"echo '{"decison":"block"}'"#,
        outcomes: &["failed"],
        status: "failed",
        output: &["unknown field `decison`"],
        next: "decison",
    },
    Case {
        name: "a new output",
        event: AFTER,
        script: r#"echo '{"output":"gamma"}'"#,
        outcomes: &["changed"],
        status: "completed",
        output: &["gamma"],
        next: "gamma",
    },
    Case {
        name: "new parts",
        event: AFTER,
        script: r#"echo '{"parts":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}'"#,
        outcomes: &["changed"],
        status: "completed",
        output: &["one\ntwo"],
        next: "two",
    },
    Case {
        name: "a withheld output",
        event: AFTER,
        script: "echo secret >&2; exit 2",
        outcomes: &["blocked"],
        status: "failed",
        output: &["the call ran, but its result is withheld by hook", "secret"],
        next: "withheld",
    },
    Case {
        name: "messages",
        event: VALIDATE,
        script: r#"echo '{"messages":["check the tests","and the docs"]}'"#,
        outcomes: &["messages"],
        status: "completed",
        output: &["alpha"],
        next: "and the docs",
    },
    Case {
        name: "a message as a reason",
        event: VALIDATE,
        script: "echo check the tests >&2; exit 2",
        outcomes: &["blocked"],
        status: "completed",
        output: &["alpha"],
        next: "check the tests",
    },
    Case {
        name: "no messages",
        event: VALIDATE,
        script: r#"echo '{"messages":[]}'"#,
        outcomes: &["unchanged"],
        status: "completed",
        output: &["alpha"],
        next: "alpha",
    },
];

#[tokio::test]
async fn hooks_change_and_block_calls() {
    for case in CASES {
        let home = home(&hook(case.event, case.script, ""));
        let ran = Events::from_run(&home, read_a(Some(case.next)), &[]).await;
        assert_eq!(ran.code, 0, "{}: {:#?}", case.name, ran.events);
        assert_eq!(ran.outcomes(), case.outcomes, "{}", case.name);
        let (status, output) = ran.result();
        assert_eq!(status, case.status, "{}: {output}", case.name);
        let missing: Vec<_> = case.output.iter().filter(|text| !output.contains(**text)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} is not in {output:?}", case.name);
        assert_eq!(ran.all("hook.completed")[0]["event"], case.event, "{}", case.name);
        assert_eq!(ran.all("turn.completed").len(), 1, "{}", case.name);
    }
}

#[tokio::test]
async fn hooks_match_the_name_of_the_tool() {
    for (glob, name, runs) in [("read", "read", 1), ("read", "read_file", 1), ("{write,edit}", "read", 0), ("*", "read", 1)] {
        let home = home(&hook(BEFORE, "true", &format!("match = \"{glob}\"")));
        let ran = Events::from_run(&home, one_call(name, &json!({"file_path": "a.txt"}), None), &[]).await;
        assert_eq!(ran.outcomes().len(), runs, "{glob} {name}");
    }
}

/// A path guard sees the argument names of the tool, however the model writes them.
#[tokio::test]
async fn hooks_get_corrected_names_and_types() {
    let script = r#"input=$(cat); case "$input" in *'"file_path":"migrations/'*) exit 2;; esac"#;
    // A name in another style, aliases, and a name with a word in common.
    for name in ["file_path", "filePath", "FILE-PATH", "path", "file", "target_file"] {
        let home = home(&[hook(BEFORE, script, ""), hook(AFTER, "cat > after.json", "")].concat());
        let input = |path: &str| json!({name: path, "content": "new\n"});
        let blocked = Events::from_run(&home, one_call("write", &input("migrations/x"), None), &[]).await;
        assert_eq!(blocked.outcomes(), ["blocked"], "{name}: {:#?}", blocked.events);
        assert_eq!((blocked.result().0, home.get("migrations/x")), ("failed", None), "{name}");
        let allowed = Events::from_run(&home, one_call("write", &input("x"), None), &[]).await;
        assert_eq!((allowed.result().0, home.get("x").as_deref()), ("completed", Some("new\n")), "{name}");
        let after: Value = serde_json::from_str(&home.get("after.json").unwrap()).unwrap();
        assert_eq!(after["tool"]["input"], json!({"file_path": "x", "content": "new\n"}), "{name}");
    }
    let home = home(&hook(BEFORE, "cat > seen.json", ""));
    let input = json!({"filePath": "a.txt", "limit": "1", "offset": null});
    let ran = Events::from_run(&home, one_call("read", &input, Some("alpha")), &[]).await;
    assert_eq!(ran.outcomes(), ["unchanged"]);
    let seen: Value = serde_json::from_str(&home.get("seen.json").unwrap()).unwrap();
    assert_eq!(seen["tool"]["input"], json!({"file_path": "a.txt", "limit": 1}));
}

#[tokio::test]
async fn hooks_run_in_the_order_of_the_file() {
    let first = hook(BEFORE, r#"echo '{"input":{"file_path":"b.txt"}}'"#, "");
    let second = hook(BEFORE, "cat > second.json; echo enough >&2; exit 2", "");
    let home = home(&[first, second, hook(BEFORE, "true", "")].concat());
    let ran = Events::from_run(&home, read_a(Some("enough")), &[]).await;
    assert_eq!(ran.outcomes(), ["changed", "blocked"], "a hook after the one that blocks does not run");
    let request: Value = serde_json::from_str(&home.get("second.json").unwrap()).unwrap();
    assert_eq!(request["tool"]["input"], json!({"file_path": "b.txt"}), "the second hook gets the input of the first");
}

#[tokio::test]
async fn permission_rules_see_the_changed_input() {
    let rewrite = hook(BEFORE, r#"echo '{"input":{"file_path":"b.txt"}}'"#, "");
    let deny = |path: &str| format!("[permissions]\nrules = [ {{ path = \"{path}\", policy = \"deny\" }} ]\n{rewrite}");
    let denied = Events::from_run(&home(&deny("b.txt")), read_a(None), &[]).await;
    assert_eq!(denied.result(), ("failed", "denied by a rule in the settings".into()));
    let allowed = Events::from_run(&home(&deny("a.txt")), read_a(None), &[]).await;
    assert_eq!(allowed.result().0, "completed");
    // The log has both inputs.
    assert_eq!(allowed.all("tool.started")[0]["input"], json!({"file_path": "a.txt"}));
    assert_eq!(allowed.all("hook.completed")[0]["changed"]["input"], json!({"file_path": "b.txt"}));
    assert_eq!(allowed.all("tool.completed")[0]["title"], "Read b.txt");
}

#[tokio::test]
async fn permission_request_shows_the_changed_input() {
    let home = home(&hook(BEFORE, r#"echo '{"input":{"command":"echo changed"}}'"#, "match = \"bash\""));
    let (mut agent, session) = home.session(one_call("bash", &json!({"command": "echo original"}), Some("changed")), &[]).await;
    agent.otherwise = Reply::Pick("allow_once");
    agent.turn(&session, "go").await;
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap().clone();
    assert_eq!(asked["params"]["toolCall"]["rawInput"]["command"], "echo changed", "{asked}");
    assert_eq!(asked["params"]["toolCall"]["title"], "`echo changed`", "{asked}");
    let update = |update: &&Value| update["sessionUpdate"] == "tool_call_update" && update["rawInput"]["command"] == "echo changed";
    assert_eq!(agent.updates(&session).iter().filter(update).count(), 1);
    agent.finish().await;
}

#[tokio::test]
async fn messages_of_hooks_remain_in_the_history() {
    let home = home(&hook(VALIDATE, r#"echo '{"messages":["remember the milk"]}'"#, "match = \"read\""));
    // Both calls of an answer have their results before the message.
    let calls = json!([
        {"tool_calls": [
            {"name": "read", "input": {"file_path": "a.txt"}},
            {"name": "bash", "input": {"command": "sleep 0.1; echo the second"}},
        ]},
        {"text": "the end", "expect": "the second"},
    ]);
    let ran = Events::from_run(&home, calls, &[]).await;
    assert_eq!((ran.code, ran.outcomes()), (0, vec!["messages"]), "{:#?}", ran.events);
    let notice = ran.all("notice")[0];
    assert_eq!((&notice["code"], notice["quoted"].as_str().unwrap().contains("remember the milk")), (&json!("hook_message"), true));
    let again = Events::from_run(&home, json!([{"text": "yes", "expect": "remember the milk"}]), &["--continue"]).await;
    assert_eq!(again.code, 0, "{:#?}", again.events);
}

#[tokio::test]
async fn hooks_run_for_the_command_tool() {
    let run = async |settings: &str| {
        let home: Home = home(settings);
        home.run(&["tool", "read", "--mode", "auto", r#"{"file_path":"a.txt"}"#], "").await
    };
    let blocked = run(&hook(BEFORE, "echo no >&2; exit 2", "")).await;
    assert_eq!(blocked.code, 4, "{blocked:?}");
    assert!(blocked.lines()[0]["output"].as_str().unwrap().starts_with("blocked by hook"), "{blocked:?}");
    let both =
        run(&[hook(AFTER, r#"echo '{"output":"gamma"}'"#, ""), hook(VALIDATE, r#"echo '{"messages":["m"]}'"#, "")].concat()).await;
    assert_eq!(both.code, 0, "{both:?}");
    assert_eq!(both.lines()[0]["output"], "gamma");
    assert!(both.lines()[0]["messages"][0].as_str().unwrap().ends_with("] m"), "{both:?}");
}

#[tokio::test]
async fn hooks_get_the_request_and_no_keys() {
    let home = home(&[hook(BEFORE, "cat > before.json; env > env.txt", ""), hook(AFTER, "cat > after.json", "")].concat());
    home.env("ANTHROPIC_API_KEY", "key-of-the-test");
    let ran = Events::from_run(&home, read_a(None), &[]).await;
    let read = |name: &str| -> Value { serde_json::from_str(&home.get(name).unwrap()).unwrap() };
    let (before, after) = (read("before.json"), read("after.json"));
    let started = &ran.events.iter().find(|event| event["body"]["type"] == "tool.started").unwrap();
    assert_eq!(before["hookEvent"], BEFORE);
    assert_eq!((&before["sessionId"], &before["turnId"]), (&started["sessionId"], &started["turnId"]));
    assert_eq!((&before["cwd"], &before["mode"]), (&json!(home.work()), &json!("auto")));
    assert!(before["model"].as_str().unwrap().starts_with("scripted:"), "{before}");
    let call = &started["body"]["toolCallId"];
    assert_eq!(before["tool"], json!({"toolCallId": call, "name": "read", "input": {"file_path": "a.txt"}}));
    assert_eq!(
        (&after["tool"]["status"], after["tool"]["output"].as_str().unwrap().contains("alpha")),
        (&json!("completed"), true)
    );
    assert!(!home.get("env.txt").unwrap().contains("key-of-the-test"));
}
