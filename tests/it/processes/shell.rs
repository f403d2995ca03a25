//! Shells that commands start, whatever an earlier command exported, and commands that cannot start.

use serde_json::{Value, json};

use harness::Home;
use harness::steps::{bash, calls_one};

/// Runs the steps in one session. Returns what the model gets of each call.
async fn results(steps: &[Value]) -> Vec<String> {
    let home = Home::new();
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let completed = log.iter().filter(|event| event["body"]["type"] == "tool.completed");
    completed.map(|event| event["body"]["output"].to_string()).collect()
}

#[tokio::test]
async fn exported_path_without_a_shell_does_not_end_the_shell_of_the_session() {
    let background = json!({"command": "echo alive > job; echo $PATH > path", "background": true});
    let cases = [
        vec![bash("export PATH=/nowhere")],
        vec![bash("export PATH=")],
        vec![bash("unset PATH")],
        vec![bash("mkdir bin; printf 'exit 9' > bin/bash; chmod +x bin/bash; export PATH=bin:.")],
        vec![bash("mkdir -p sub/bash; export PATH=$PWD/sub")],
    ];
    for mut steps in cases {
        steps.push(bash("echo alive; echo \"<$PATH>\""));
        let shown = results(&steps).await;
        assert!(shown[1].contains("alive\\n") && shown[1].contains("exit code: 0"), "{steps:?}: {shown:?}");
    }
    // The variables of one call, and of a background job.
    let one = calls_one("bash", json!({"command": "echo alive in $PATH", "env": {"PATH": "/nowhere"}}));
    let job =
        [bash("export PATH=/nowhere"), calls_one("bash", background), bash("until [ -e path ]; do :; done; echo \"$(<job)\"")];
    assert!(results(&[one]).await[0].contains("alive in /nowhere"));
    assert!(results(&job).await[2].contains("alive\\n"));
}

#[tokio::test]
async fn command_above_the_limit_gets_the_hint_to_write_a_script() {
    let long = "x".repeat(140 << 10);
    let value = json!({"command": "echo $A", "env": {"A": long}});
    let part = "y".repeat(100 << 10);
    let cases = [
        bash(&format!("echo {long}")),
        bash(&format!("cat <<'E' > file\n{long}\nE")),
        calls_one("bash", json!({"command": format!("echo {long}"), "background": true})),
        calls_one("bash", value),
        calls_one("bash", json!({"command": format!("echo {part}"), "env": {"A": part}})),
    ];
    for case in cases {
        let shown = results(&[case, bash("echo still here")]).await;
        assert!(shown[0].contains("larger than 128 KiB") && shown[0].contains("tool write"), "{:.400}", shown[0]);
        assert!(shown[1].contains("still here"), "{}", shown[1]);
    }
}

/// The sandbox is no second cause of what a full disk causes.
#[tokio::test]
async fn full_disk_is_the_only_cause_in_the_message() {
    let lines = [
        "echo text > /dev/full",
        "printf 'x%.0s' 1 2 3 > /dev/full; exit 1",
        "head -c 100000 /dev/zero > /dev/full",
        "echo 'cp: error writing: Disk quota exceeded' >&2; exit 1",
        "echo 'Error: ENOSPC: no space left on device, write' >&2; exit 243",
    ];
    let steps: Vec<Value> = lines.iter().map(|line| bash(line)).chain([bash("echo Permission denied; false")]).collect();
    let shown = results(&steps).await;
    for (line, failed) in lines.iter().zip(&shown) {
        assert!(!failed.contains("sandbox ") && !failed.contains("exit code: 0"), "{line}: {failed}");
    }
    assert!(shown[5].contains("\"sandbox ") || harness::POSIX, "{}", shown[5]);
}
