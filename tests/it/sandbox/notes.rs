//! Notes on the sandbox in the results of commands: what a model receives, and what people see.

use serde_json::{Value, json};

use crate::workspaces::repository;
use harness::Home;
use harness::steps::bash_call;

const WRITABLE: &str = "[sandbox: `writable` in [sandbox] of your settings allows writes in more directories]\n";
const NETWORK: &str = "[sandbox: `network = true` in [sandbox] of your settings allows it]\n";
const GIT: &str = "[sandbox: `git_config = true` in [sandbox] of your settings allows changes of git's configuration]\n";
const WRITES: &str = "[sandbox: --sandbox workspace-write allows writes in the project]\n";

/// A command, its flags, the note for people, and the settings and flags with which the command
/// works.
type Case<'a> = (&'a str, &'a [&'a str], &'a str, &'a str, &'a [&'a str]);

const CASES: [Case<'_>; 7] = [
    ("exit 3", &[], "", "", &[]),
    ("echo x", &[], "", "", &[]),
    ("exit 3", &["--sandbox", "read-only"], "", "", &[]),
    ("echo x > ../outside", &[], WRITABLE, "[sandbox]\nwritable = [\"..\"]\n", &[]),
    ("exec 3<> /dev/tcp/127.0.0.1/PORT", &[], NETWORK, "[sandbox]\nnetwork = true\n", &[]),
    ("git config user.name x", &[], GIT, "[sandbox]\ngit_config = true\n", &[]),
    ("echo x > new", &["--sandbox", "read-only"], WRITES, "", &["--sandbox", "workspace-write"]),
];

/// Runs the command of a model. Returns the `tool.completed` of its call.
async fn run(home: &Home, flags: &[&str], command: &str) -> Value {
    let model = home.script(json!([{"tool_calls": [bash_call(command)]}, {"text": "done"}]));
    let ran = home.run(&[&["run", "--json", "--mode", "auto", "--model", &model], flags, &["go"]].concat(), "").await;
    let completed = |line: &Value| line["body"]["type"] == "tool.completed";
    ran.lines().into_iter().find(completed).unwrap_or_else(|| panic!("{ran:?}"))["body"].take()
}

#[tokio::test]
async fn notes_for_the_model_are_not_shown_to_people() {
    needs_linux!("sandbox");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for (command, flags, note, settings, allowing) in CASES {
        let home = repository();
        let command = command.replace("PORT", &port);
        let completed = run(&home, flags, &command).await;
        let shown = completed["content"][0]["content"]["text"].as_str().unwrap();
        let code = &completed["details"]["exitCode"];
        let told: String = completed["output"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        // An ordinary failure does not look like one of the sandbox.
        assert_eq!(told.contains("; no network, no sockets; nuncio's own"), !note.is_empty(), "{command}: {told}");
        // The model and people get the same output of the command, before the notes.
        let end = format!("{note}exit code: {code}");
        let output = shown.strip_suffix(&end).unwrap_or_else(|| panic!("{command}: {shown}"));
        assert!(told.starts_with(output) && !output.contains('['), "{command}: {shown}");
        if !note.is_empty() {
            let home = repository();
            home.config(settings);
            let completed = run(&home, allowing, &command).await;
            assert_eq!(completed["details"]["exitCode"], 0, "{note} {completed}");
        }
    }
}

/// Messages of programs that have no network: git, curl, pip, Go and its proxy, Node.js, Java,
/// cargo, uv, npm, Yarn and Corepack.
const NO_NETWORK: [&str; 12] = [
    "fatal: unable to access 'https://example.com/': Could not resolve host: example.com",
    "curl: (6) Could not resolve host: example.com",
    "ERROR: No matching distribution found for idna",
    "go: example.com/x@v1: dial tcp: lookup example.com on 127.0.0.53:53: operation not permitted",
    "go: example.com/x@v1: module lookup disabled by GOPROXY=off",
    "Error: getaddrinfo EAI_AGAIN example.com",
    "java.net.UnknownHostException: example.com",
    "if this error is too confusing you may wish to retry without `--offline`.",
    "hint: Packages were unavailable because the network was disabled.",
    "npm error code ENOTCACHED",
    "YN0080: Request to 'https://example.com/' has been blocked because of network access",
    "Network access disabled by the environment; can't reach https://example.com/",
];

#[tokio::test]
async fn error_of_a_missing_network_names_the_setting() {
    needs_linux!("sandbox");
    let home = Home::new();
    let calls: Vec<Value> = NO_NETWORK.iter().map(|message| bash_call(&format!("cat <<'END'\n{message}\nEND\nexit 1"))).collect();
    let model = home.script(json!([{"tool_calls": calls}, {"text": "done"}]));
    let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
    let lines = ran.lines();
    let completed = lines.iter().map(|line| &line["body"]).filter(|body| body["type"] == "tool.completed");
    let shown: Vec<String> = completed.map(|body| body["content"][0]["content"]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown.len(), NO_NETWORK.len(), "{ran:?}");
    for message in NO_NETWORK {
        let text = shown.iter().find(|text| text.contains(message)).unwrap();
        assert!(text.contains(NETWORK), "{text}");
    }
}

#[tokio::test]
async fn notes_on_failed_checks_are_not_shown_to_people() {
    needs_linux!("sandbox");
    let calls = [
        json!({"tool_calls": [{"name": "verify", "input": {"commands": ["echo short; exit 3", "seq 9999; exit 4"]}}]}),
        json!({"text": "done"}),
    ];
    let home = Home::new();
    let model = home.script(json!(calls));
    let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
    let verified = ran.lines().into_iter().rfind(|line| line["body"]["type"] == "tool.completed").unwrap();
    let verified = &verified["body"];
    let (told, shown) = (verified["output"].to_string(), verified["content"].to_string());
    assert!(!told.contains("[sandbox") && told.matches("[whole output: ").count() == 2, "{told}");
    assert!(!shown.contains("[sandbox") && shown.matches("[whole output: ").count() == 1, "{shown}");
}
