//! Scope of a permission: the environment and directory shown in the request. Writes to files that
//! determine which programs run require separate permission.

use serde_json::{Value, json};

use harness::verdict::Verdict::{Allow, Ask};
use harness::verdict::verdict;
use harness::{Agent, Home, Reply, tool};

const GIT_STATUS: &str = "[permissions]\nrules = [ { tool = \"bash\", pattern = \"git status *\", policy = \"allow\" } ]\n";

fn bash(input: Value) -> Value {
    json!({"tool_calls": [{"name": "bash", "input": input}]})
}

fn questions(agent: &Agent) -> Vec<Value> {
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission");
    asked.map(|frame| frame["params"].clone()).collect()
}

/// Runs one turn per bash call: the input, the answer to the permission request (`None` if there
/// must be no request), and the call's expected status.
async fn check(home: &Home, calls: &[(Value, Option<&'static str>, &str)]) {
    let steps: Vec<Value> = calls.iter().flat_map(|(input, ..)| [bash(input.clone()), json!({"text": "so"})]).collect();
    let (mut agent, session) = home.session(json!(steps), &[]).await;
    for (input, answer, status) in calls {
        let before = questions(&agent).len();
        agent.otherwise = Reply::Pick(answer.unwrap_or("reject_once"));
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(questions(&agent).len() - before, answer.iter().count(), "{input}: questions");
        assert_eq!(tool(&updates, 0)["status"], *status, "{input}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn allowed_command_with_changed_environment_requires_permission() {
    let home = Home::new();
    home.config(GIT_STATUS);
    let cases = [
        (json!({"command": "git status"}), Allow),
        (json!({"command": "git status --short", "env": {}}), Allow),
        (json!({"command": "git status", "env": {"GIT_EXTERNAL_DIFF": "./evil"}}), Ask),
        (json!({"command": "git status --short", "env": {"PATH": "./bin"}}), Ask),
    ];
    for (input, expected) in cases {
        assert_eq!(verdict(&home, "ask", "bash", &input).await, expected, "{input}");
    }
}

#[tokio::test]
async fn request_shows_the_environment_of_the_command() {
    let home = Home::new();
    let call = bash(json!({"command": "git status", "env": {"GIT_PAGER": "./evil.sh"}}));
    let (mut agent, session) = home.session(json!([call]), &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    let shown = questions(&agent)[0]["toolCall"]["content"].to_string();
    agent.finish().await;
    for word in ["git status", "GIT_PAGER", "./evil.sh"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[tokio::test]
async fn always_applies_only_to_the_shown_directory_and_environment() {
    let here = |cwd: &str| json!({"command": "echo a", "cwd": cwd});
    let set = |value: &str| json!({"command": "echo b", "env": {"X": value}});
    let calls = [
        (here("one"), Some("allow_always"), "completed"),
        (here("one"), None, "completed"),
        (here("two"), Some("reject_once"), "failed"),
        (json!({"command": "echo a"}), Some("reject_once"), "failed"),
        (set("1"), Some("allow_always"), "completed"),
        (set("2"), Some("reject_once"), "failed"),
        (json!({"command": "echo b", "env": {"X": "1", "PATH": "."}}), Some("reject_once"), "failed"),
        // `allow_always` excludes longer lines, redirections, and a changed shell directory.
        (json!({"command": "echo c"}), Some("allow_always"), "completed"),
        (json!({"command": "echo c"}), None, "completed"),
        (json!({"command": "echo c; echo c"}), Some("reject_once"), "failed"),
        (json!({"command": "echo c > one/a"}), Some("reject_once"), "failed"),
        (json!({"command": "cd one"}), Some("allow_once"), "completed"),
        (json!({"command": "echo c"}), Some("reject_once"), "failed"),
        (json!({"command": "echo d"}), Some("allow_always"), "completed"),
        (json!({"command": "cd .."}), Some("allow_once"), "completed"),
        (json!({"command": "echo d"}), Some("reject_once"), "failed"),
        (json!({"command": "echo c"}), None, "completed"),
    ];
    let home = Home::new();
    home.put("one/a", "");
    home.put("two/a", "");
    check(&home, &calls).await;
}

/// Allows the oldest unanswered permission request.
async fn allow(agent: &mut Agent) {
    let (id, params) = agent.asked.remove(0);
    let options = params["options"].as_array().unwrap();
    let option = &options.iter().find(|option| option["kind"] == "allow_once").unwrap()["optionId"];
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}});
    agent.raw(format!("{answer}\n").as_bytes()).await;
}

#[tokio::test]
async fn command_runs_in_the_directory_and_environment_of_its_request() {
    let home = Home::new();
    home.put("deep/file", "");
    let call = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let look = "pwd; echo ${GREETING-none}";
    let steps = json!([{"tool_calls": [call("cd deep; export GREETING=hello"), call(look)]}, {"tool_calls": [call(look)]}, {}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "go").await;
    // The later commands run in the directory and with the variables that the first one set, as
    // their requests show.
    for index in 0..3 {
        while agent.asked.is_empty() {
            agent.frame().await.unwrap();
        }
        let shown = agent.asked[0].1["toolCall"]["content"].to_string();
        assert_eq!(shown.contains("# in deep\\n"), index > 0, "{shown}");
        allow(&mut agent).await;
    }
    agent.answer(&id).await.unwrap();
    let updates = agent.updates(&session);
    let said = |index: usize| tool(&updates, index)["content"].to_string();
    assert!([said(1), said(2)].iter().all(|text| text.contains("/work/deep\\nhello\\n")), "{} {}", said(1), said(2));
    agent.finish().await;
}

#[tokio::test]
async fn allowed_command_outside_the_roots_requires_permission() {
    let home = Home::new();
    home.config("[permissions]\nrules = [ { tool = \"bash\", pattern = \"echo *\", policy = \"allow\" } ]\n");
    home.put("inside/a", "");
    let outside = home.put("../outside/a", "").parent().unwrap().to_path_buf();
    std::os::unix::fs::symlink(&outside, home.work().join("link")).unwrap();
    for (cwd, expected) in
        [(json!("inside"), Allow), (json!("/"), Ask), (json!(outside), Ask), (json!("link"), Ask), (json!(".."), Ask)]
    {
        let input = json!({"command": "echo hi", "cwd": cwd});
        assert_eq!(verdict(&home, "ask", "bash", &input).await, expected, "{input}");
    }
}

/// After `cd`, permissions apply as if each call named the shell's directory in `cwd`.
#[tokio::test]
async fn directory_changed_by_cd_is_equivalent_to_cwd() {
    let home = Home::new();
    home.config("[permissions]\nrules = [ { tool = \"bash\", pattern = \"echo *\", policy = \"allow\" } ]\n");
    home.put("one/a", "");
    let outside = home.put("../outside/a", "").parent().unwrap().to_path_buf();
    let go = |place: &str| json!({"command": format!("cd {place}")});
    let say = |word: &str| json!({"command": word});
    let calls = [
        (say("echo a"), None, "completed"),
        (go("one"), Some("allow_once"), "completed"),
        (say("echo a"), None, "completed"),
        // An `always` answer applies in the directory where the request was made.
        (say("true b"), Some("allow_always"), "completed"),
        (say("true b"), None, "completed"),
        (say("true c"), Some("reject_always"), "failed"),
        (say("true c"), None, "failed"),
        (json!({"command": "true b", "cwd": "one"}), None, "completed"),
        (go(outside.to_str().unwrap()), Some("allow_once"), "completed"),
        (say("echo a"), Some("reject_once"), "failed"),
        (say("true b"), Some("reject_once"), "failed"),
        (say("true c"), Some("allow_always"), "completed"),
        (say("true c"), None, "completed"),
        (json!({"command": "true b", "cwd": "one"}), None, "completed"),
        (json!({"command": "true b", "cwd": "."}), Some("reject_once"), "failed"),
        (json!({"command": "echo a", "cwd": "."}), None, "completed"),
    ];
    check(&home, &calls).await;
}

#[tokio::test]
async fn accept_edits_asks_for_files_that_control_execution() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put(".git/hooks/pre-commit", "#!/bin/sh\n");
    home.put(".nuncio/config.toml", "");
    home.put("sub/.nuncio/a", "");
    home.put("a.txt", "one\n");
    let hooked = json!({"file_path": ".git/hooks/pre-commit", "old_string": "#!/bin/sh", "new_string": "#!/bin/sh\n./evil"});
    std::os::unix::fs::symlink(".git/hooks", home.work().join("innocent")).unwrap();
    let cases = [
        ("write", json!({"file_path": "a.txt", "content": "two\n"}), Allow),
        ("write", json!({"file_path": ".nuncio/config.toml", "content": "model = \"ollama/x\"\n"}), Ask),
        ("write", json!({"file_path": ".git/hooks/pre-commit", "content": "./evil\n"}), Ask),
        ("write", json!({"file_path": ".git/config", "content": "[core]\n"}), Ask),
        ("write", json!({"file_path": "innocent/post-commit", "content": "./evil\n"}), Ask),
        ("edit", hooked, Ask),
        ("write", json!({"file_path": ".GIT/config", "content": "[core]\n"}), Ask),
        ("write", json!({"file_path": "sub/.Nuncio/a", "content": ""}), Ask),
    ];
    for (name, input, expected) in cases {
        assert_eq!(verdict(&home, "accept-edits", name, &input).await, expected, "{name} {input}");
    }
}
