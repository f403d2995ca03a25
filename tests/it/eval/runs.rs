//! Runs of tasks: limits, what they may read, and what a line of the results says.

use serde_json::json;

use super::{SOLVE, cache, eval, harm, put_task, results};
use harness::provider::{Exchange, KEY, Protocol, Provider};
use harness::steps::{bash, bash_call, calls};
use harness::{Home, bounded, gone, marker, poll};

/// At the limit all processes of the run end; what was done by then is tested.
#[tokio::test]
async fn run_ends_at_its_limit_with_all_its_processes() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[("task.toml", "[agent]\ntimeout_sec = 1.0\n")]);
    eval(&home, &["--prove"]).await;
    let marker = marker();
    let leave = format!("{SOLVE}; setsid sleep 1000 {marker} & sleep 1000 {marker}");
    let model = home.script(json!([bash(&leave)]));
    let ran = eval(&home, &["-m", &model, "--out", "../out.jsonl"]).await;
    gone(&marker).await;
    let line = &results(&home, "out.jsonl")[0];
    assert_eq!((&line["class"], &line["requests"]), (&json!("timeout"), &json!(1)), "{line} {ran:?}");
    assert!(line["seconds"].as_f64().is_some_and(|seconds| (1.0..20.0).contains(&seconds)), "{line}");
    let longer = eval(&home, &["-m", &model, "--timeout", "2", "--out", "../out.jsonl"]).await;
    let line = &results(&home, "out.jsonl")[1];
    assert!(line["seconds"].as_f64().is_some_and(|seconds| seconds >= 2.0), "{line} {longer:?}");
    assert!(longer.stdout.contains("0 % (0 to 79)"), "{longer:?}");
}

/// Commands of a run read neither tasks, results, proofs and data, nor keys, and have no network.
#[tokio::test]
async fn commands_read_no_tasks_results_and_keys() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    std::fs::write(home.data().join("notes"), "x").unwrap();
    home.env("ANTHROPIC_API_KEY", KEY);
    eval(&home, &["--prove"]).await;
    let top = home.work().join("..").canonicalize().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The tasks are in a repository of the user.
    home.put("../.git/objects/one", "x");
    let hidden = [
        top.join("tasks/good/tests/test.sh"),
        top.join(".git/objects/one"),
        top.join("out.jsonl"),
        home.data().join("notes").canonicalize().unwrap(),
        top.join(".cache/nuncio/eval/nuncio/config.toml"),
    ];
    let reads = hidden.iter().map(|path| format!("cat {} && touch read; ", path.display())).collect::<String>();
    let proofs = format!("cat {}/* && touch read; ", top.join(".cache/nuncio/eval/proofs").display());
    let port = listener.local_addr().unwrap().port();
    let connects = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && touch connected; ");
    let own = "env > variables; cat notes.txt > own; touch ~/written";
    let model = home.script(json!([calls(&[bash_call(&format!("{reads}{proofs}{connects}{own}"))]), {"text": "ok"}]));
    eval(&home, &["-m", &model, "--out", "../out.jsonl"]).await;
    let file = |name: &str| std::fs::read_to_string(cache(&home).join("task").join(name)).ok();
    assert_eq!((file("read"), file("connected")), (None, None));
    assert_eq!(file("own").as_deref(), Some("first\nsecond\nmy idea\n"));
    let variables = file("variables").unwrap();
    assert!(!variables.contains(KEY) && !variables.contains("tasks") && variables.contains("HOME="), "{variables}");
    assert!(!cache(&home).join("home/written").exists());
}

/// The key arrives at the provider, and the line has what the provider counted.
#[tokio::test]
async fn line_has_tokens_and_cost_that_the_provider_reports() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    let usage =
        |cached: u32| json!({"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": cached}});
    let event = |delta: serde_json::Value, reason: &str, cached: u32| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice], "usage": usage(cached)}))
    };
    let call =
        json!([{"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": json!({"command": SOLVE}).to_string()}}]);
    let answers = [event(json!({"tool_calls": call}), "tool_calls", 0), event(json!({"content": "It prints 4."}), "stop", 900)];
    let exchanges = answers.into_iter().map(|body| Exchange::bytes(200, "text/event-stream", vec![body.into()]));
    let provider = Provider::start(Protocol::OpenaiChat, exchanges.collect()).await;
    home.env("TEST_KEY", KEY);
    home.config(&format!(
        "[providers.test]\nbase_url = \"{}\"\nprotocol = \"openai-chat\"\napi_key_env = \"TEST_KEY\"\n[models.\"test/m\"]\nprice = {{ input = 1.0, output = 100.0, cache_read = 0.1 }}\n",
        provider.base_url
    ));
    eval(&home, &["--prove"]).await;
    let ran = eval(&home, &["-m", "test/m", "--max-cost", "1", "--out", "../out.jsonl"]).await;
    provider.finish().await;
    let line = &results(&home, "out.jsonl")[0];
    // 1,100 tokens at 1 dollar, 900 at 0.1 and 20 at 100, per million.
    let expected = json!({"class": "solved", "stopReason": "end_turn", "requests": 2, "model": "test/m", "agent": "nuncio",
        "tokens": {"in": 2000, "cached": 900, "out": 20}, "cost": 0.00319, "run": 1});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name}: {line}");
    }
    assert!(ran.stdout.contains("0.0032") && ran.stdout.contains("2020"), "{ran:?}");
}

/// The session of a line can be read later.
#[tokio::test]
async fn session_of_a_run_is_kept() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    eval(&home, &["--prove"]).await;
    let model = home.script(json!([bash(SOLVE), {"text": "It prints 4."}]));
    // A path of a script is relative to the directory of the command.
    let relative = format!("scripted:../{}", model.rsplit('/').next().unwrap());
    eval(&home, &["-m", &relative, "--out", "../out.jsonl"]).await;
    let session = results(&home, "out.jsonl")[0]["sessionId"].as_str().unwrap().to_owned();
    home.env("NUNCIO_HOME", cache(&home).join("nuncio").to_str().unwrap());
    home.env("NUNCIO_STORE", "");
    let shown = home.run(&["sessions", "show", &session], "").await;
    assert!(shown.stdout.contains("It prints 4."), "{shown:?}");
}

/// A hosted agent works in the task's directory and cannot read the tasks; its network is open.
#[tokio::test]
async fn hosted_agent_solves_a_task_confined() {
    needs_linux!("sandbox");
    let home = Home::new();
    let tasks = home.work().join("..").canonicalize().unwrap().join("tasks");
    let order = format!("run cp {}/hosted/tests/test.sh stolen || {SOLVE}", tasks.display());
    put_task(&home, "hosted", &[("instruction.md", &order)]);
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/agent.py");
    home.config(&format!(
        "[agents]\nallowed = [\"other\"]\n[agents.other]\nkind = \"acp\"\ncommand = [\"python3\", \"{agent}\"]\n"
    ));
    eval(&home, &["--prove"]).await;
    let ran = eval(&home, &["--agent", "other", "--out", "../out.jsonl"]).await;
    let line = &results(&home, "out.jsonl")[0];
    assert!(line["class"] == "solved" && line["agent"] == "other" && line["network"] == "open", "{line} {ran:?}");
    assert!(line.get("model").is_none() && line["versions"]["agent"].is_string() && harm(line) == json!({}), "{line}");
}

/// Ctrl+C ends the run with its processes, and leaves no line of it.
#[tokio::test]
async fn interrupt_ends_the_run() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    eval(&home, &["--prove"]).await;
    let (marker, quick) = (marker(), home.script(json!([{"text": "no"}])));
    let slow = home.script(json!([bash(&format!("touch running; sleep 1000 {marker}"))]));
    let flags = ["eval", "../tasks", "-m", &quick, "-m", &slow, "--out", "../out.jsonl"];
    let child = home.spawn(&flags);
    let running = cache(&home).join("task/running");
    poll("the start of the command", || running.exists()).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = bounded("the end", child.wait_with_output()).await.unwrap();
    gone(&marker).await;
    let table = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.code() == Some(130) && table.contains("FAILED"), "{:?} {table}", ended.status);
    assert_eq!(results(&home, "out.jsonl").len(), 1, "only the first run has a line");
}

/// Stored keys reach the provider, and no copy of them is left.
#[tokio::test]
async fn stored_key_is_used_and_its_copy_removed() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    let choice = json!({"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"});
    let answer = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
    let exchange = Exchange::bytes(200, "text/event-stream", vec![answer.into()]);
    let provider = Provider::start(Protocol::OpenaiChat, vec![exchange]).await;
    home.config(&format!("[providers.test]\nbase_url = \"{}\"\nprotocol = \"openai-chat\"\n", provider.base_url));
    let login = home.run(&["login", "test"], KEY).await;
    assert!(login.code == 0 && home.data().join("keys.json").exists(), "{login:?}");
    eval(&home, &["--prove"]).await;
    eval(&home, &["-m", "test/m", "--out", "../out.jsonl"]).await;
    // The provider checks the key.
    provider.finish().await;
    assert!(!cache(&home).join("nuncio/keys.json").exists());
}
