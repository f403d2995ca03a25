//! `nuncio run` with several agents compares their results.

use serde_json::json;

use crate::workspaces::{git, repository};

#[tokio::test]
async fn several_agents_run_the_prompt_in_workspaces_of_their_own() {
    needs_linux!("sandbox");
    let home = repository();
    let bash = |command: &str| json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
    home.config(&super::native::inner(&home, json!([bash("echo inner > made"), {"text": "made by inner"}])));
    super::trust(&home).await;
    let model = home.script(json!([bash("echo two >> a; git commit -qam more"), {"text": "changed a"}]));
    let run = ["run", "--agent", "nuncio", "--agent", "inner", "--model", &model, "--mode", "auto", "--json", "work"];
    let ran = home.run(&run, "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut results = ran.lines();
    results.sort_by_key(|result| result["agent"].as_str().unwrap().to_owned());
    let shown: Vec<(&str, &str, &str)> = results
        .iter()
        .map(|result| {
            (result["agent"].as_str().unwrap(), result["stopReason"].as_str().unwrap(), result["answer"].as_str().unwrap())
        })
        .collect();
    assert_eq!(shown, [("inner", "end_turn", "made by inner"), ("nuncio", "end_turn", "changed a")]);
    assert_eq!(results[0]["changes"], "?? made");
    assert!(results[1]["changes"].as_str().unwrap().starts_with(" a | 1 +"), "{}", results[1]["changes"]);
    assert_eq!((&results[0]["workspace"], &results[1]["workspace"]), (&json!("inner-work"), &json!("nuncio-work")));
    // The repository itself is unchanged.
    assert_eq!((home.get("a").as_deref(), home.get("made")), (Some("one\n"), None));
    assert_eq!(git(&home.work(), &["status", "--porcelain"]), "");
}

/// Runs a comparison of nuncio's own agent, which changes `a`, and of one that changes nothing.
async fn compared(home: &harness::Home, flags: &[&str]) -> harness::CommandResult {
    home.config(&super::native::inner(home, json!([{"text": "nothing to do"}])));
    super::trust(home).await;
    let command = json!({"tool_calls": [{"name": "bash", "input": {"command": "echo two >> a"}}]});
    let model = home.script(json!([command, {"text": "changed a"}]));
    let run = ["run", "--agent", "nuncio", "--agent", "inner", "--model", &model, "--mode", "auto"];
    let ran = home.run(&[&run, flags, &["Fix the parser: it fails!\nSecond line"]].concat(), "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[tokio::test]
async fn comparison_ends_with_the_command_that_takes_the_work_over() {
    needs_linux!("sandbox");
    let home = repository();
    let ran = compared(&home, &[]).await;
    let command = "nuncio workspaces apply nuncio-fix-the-parser-it-fails";
    assert!(
        ran.stdout.ends_with(&format!("To take the changes of one agent into this directory:\n  {command}\n")),
        "{}",
        ran.stdout
    );
    // The workspace without changes is gone, with its branch.
    assert!(ran.stdout.contains("its workspace was deleted"), "{}", ran.stdout);
    let branches = crate::workspaces::branches(&home);
    assert_eq!(branches, ["main", "nuncio/nuncio-fix-the-parser-it-fails"]);
    assert_eq!(crate::workspaces::linked(&home).len(), 1);
    let applied = home.run(&command.split(' ').skip(1).collect::<Vec<_>>(), "").await;
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(home.get("a").as_deref(), Some("one\ntwo\n"));
    assert_eq!(git(&home.work(), &["log", "--format=%s|%an"]), "Fix the parser: it fails!|Ann\nfirst|Ann\n");
    // A second comparison of the same task has other names.
    let ran = compared(&home, &[]).await;
    assert!(ran.stdout.contains("nuncio workspaces apply nuncio-fix-the-parser-it-fails-2\n"), "{}", ran.stdout);
}

#[tokio::test]
async fn comparison_names_uncommitted_changes_that_are_not_in() {
    needs_linux!("sandbox");
    let home = repository();
    home.put("new", "new\n");
    home.put("a", "zero\none\n");
    let ran = compared(&home, &[]).await;
    assert!(ran.stderr.contains("start from HEAD, without 2 uncommitted changes: a, new"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--with-changes"), "{}", ran.stderr);

    let home = repository();
    home.put("new", "new\n");
    home.put("a", "zero\none\n");
    git(&home.work(), &["add", "new"]);
    let before = git(&home.work(), &["status", "--porcelain"]);
    let ran = compared(&home, &["--with-changes"]).await;
    assert!(!ran.stderr.contains("uncommitted"), "{}", ran.stderr);
    assert_eq!(git(&home.work(), &["status", "--porcelain"]), before, "the index and the files are unchanged");
    let (_, name) = ran.stdout.trim_end().rsplit_once(' ').unwrap();
    let workspace = home.run(&["workspaces", "list", "--json"], "").await.lines().remove(0);
    let path = std::path::PathBuf::from(workspace["path"].as_str().unwrap());
    let seen = ["a", "new"].map(|file| std::fs::read_to_string(path.join(file)).unwrap());
    assert_eq!(seen, ["zero\none\ntwo\n", "new\n"]);
    // The changes of the user are in the workspace and in the directory: only the difference is applied.
    let applied = home.run(&["workspaces", "apply", name], "").await;
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(home.get("a").as_deref(), Some("zero\none\ntwo\n"));
    assert_eq!(git(&home.work(), &["log", "--format=%s"]), "first\n", "nothing is committed");
    assert_eq!(git(&home.work(), &["status", "--porcelain"]), before);
}

/// Failing checks are a failure of the comparison, too, and of a run with one agent.
#[tokio::test]
async fn failing_checks_are_reported() {
    needs_linux!("sandbox");
    for (written, code, outcome, rounds) in [("bad", 1, "failed", 2), ("good", 0, "passed", 1)] {
        let home = repository();
        let write = json!({"tool_calls": [{"name": "write", "input": {"file_path": "state.txt", "content": written}}]});
        let steps = json!([write, {"text": "done"}, {"text": "done"}, {"text": "done"}]);
        let check = "grep -q good state.txt";
        let verify = format!("[verify]\ncommands = [{check:?}]\nmax_rounds = 2\n");
        home.config(&(super::native::inner(&home, json!([{"text": "nothing to do"}])) + &verify));
        super::trust(&home).await;
        let model = home.script(steps);
        let checks = json!([{"name": check, "outcome": outcome, "rounds": rounds}]);
        let run = ["run", "--agent", "nuncio", "--agent", "inner", "--model", &model, "--mode", "auto"];
        let ran = home.run(&[&run[..], &["--json", "work"]].concat(), "").await;
        assert_eq!(ran.code, code, "{written}: {ran:?}");
        let result = ran.lines().into_iter().find(|result| result["agent"] == "nuncio").unwrap();
        assert_eq!(result["checks"], checks, "{written}: {result}");
        let ran = home.run(&[&run[..], &["more"]].concat(), "").await;
        let count = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
        assert!(ran.stdout.contains(&format!("check {check}: {outcome} ({count})\n")), "{written}: {ran:?}");
        let alone = ["run", "--model", &model, "--mode", "auto", "--output-format", "json", "work"];
        let ran = home.run(&alone, "").await;
        assert_eq!((ran.code, &ran.lines()[0]["checks"]), (code, &checks), "{written}: {ran:?}");
    }
}

#[tokio::test]
async fn failure_of_one_agent_is_reported() {
    needs_linux!("sandbox");
    let home = repository();
    home.config(&super::setting("other", &["broken"]));
    super::trust(&home).await;
    let model = home.script(json!([{"text": "fine"}]));
    let ran = home.run(&["run", "--agent", "other", "--agent", "nuncio", "--model", &model, "work"], "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("== other: failed: agent other: its process ended with exit code 1: config"), "{}", ran.stdout);
    assert!(ran.stdout.contains("== nuncio: end turn") && ran.stdout.contains("fine"), "{}", ran.stdout);
}

#[tokio::test]
async fn exit_code_is_that_of_a_run_with_one_agent() {
    needs_linux!("sandbox");
    let home = repository();
    home.config(&super::setting("other", &[]));
    super::trust(&home).await;
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": "touch made"}}]});
    for (steps, prompt, mode, code) in [
        (json!([{"text": "fine"}]), "refuse", "auto", 1),
        (json!([call, {"text": "denied"}]), "say", "ask", 4),
        (json!([{"text": "fine"}]), "say", "ask", 0),
    ] {
        let model = home.script(steps);
        let several = ["run", "--agent", "other", "--agent", "nuncio", "--model", &model, "--mode", mode, prompt];
        let ran = home.run(&several, "").await;
        assert_eq!(ran.code, code, "{prompt}: {ran:?}");
        let one = if code == 4 { "nuncio" } else { "other" };
        let ran = home.run(&["run", "--agent", one, "--model", &model, "--mode", mode, prompt], "").await;
        assert_eq!(ran.code, code, "{prompt}: {ran:?}");
    }
}

#[tokio::test]
async fn options_of_one_session_are_refused() {
    let home = harness::Home::new();
    let options =
        ["--max-cost=1", "--max-tokens=1", "--max-requests=1", "--plain", "--continue", "--resume=sess_01kaqhg1e2f3g4h5j6k7m8n9p0"];
    for option in options {
        let ran = home.run(&["run", "--agent", "nuncio", "--agent", "other", option, "work"], "").await;
        let name = option.split('=').next().unwrap();
        assert_eq!((ran.code, ran.stderr.contains(&format!("{name}: not available"))), (2, true), "{option}: {ran:?}");
    }
}

#[tokio::test]
async fn only_run_takes_several_agents() {
    let home = harness::Home::new();
    let ran = home.run(&["serve", "--agent", "a", "--agent", "b"], "").await;
    assert_eq!((ran.code, ran.stderr.contains("only run and eval take several agents")), (2, true), "{ran:?}");
}

#[tokio::test]
async fn comparison_over_http() {
    needs_linux!("sandbox");
    let home = repository();
    home.config(&super::native::inner(&home, json!([{"text": "made by inner"}])));
    super::trust(&home).await;
    let changes =
        json!({"tool_calls": [{"name": "bash", "input": {"command": "echo two >> a; git commit -qam more; echo new > made"}}]});
    let server = home.serve_script(json!([changes, {"text": "changed a"}]), &[]).await;
    let parts = json!([{"type": "text", "text": "work"}]);
    for (body, error) in [
        (json!({"agents": [], "parts": parts}), "agents: must be 1 to 8 names"),
        (json!({"agents": ["nuncio", "nobody"], "parts": parts}), "agent: nobody is unknown"),
    ] {
        let refused = server.post("/v1/comparisons", &body).expect(400).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains(error), "{refused}");
    }
    let body = json!({"agents": ["nuncio", "inner"], "parts": parts, "mode": "auto"});
    let started = server.post("/v1/comparisons", &body).expect(201).await;
    let mut results = Vec::new();
    for entry in started["agents"].as_array().unwrap() {
        assert!(entry["turnId"].is_string(), "{entry}");
        let id = entry["sessionId"].as_str().unwrap();
        server.follow(id).events().await.until("turn.completed").await;
        let result = server.get(&format!("/v1/sessions/{id}/result?diff=true")).expect(200).await;
        assert_eq!(result["workspaceId"], entry["workspaceId"]);
        results.push(result);
    }
    let shown: Vec<_> = results.iter().map(|result| (&result["agent"], &result["answer"], &result["lastTurn"]["status"])).collect();
    let expected = [("nuncio", "changed a", "completed"), ("inner", "made by inner", "completed")];
    assert_eq!(json!(shown), json!(expected));
    let changes = results[0]["changes"].as_str().unwrap();
    assert!(changes.starts_with(" a | 1 +") && changes.ends_with("\n?? made"), "{changes}");
    let diff = results[0]["diff"].as_str().unwrap();
    assert!(diff.contains("+two\n") && diff.contains("+++ b/made\n@@ -0,0 +1 @@\n+new\n"), "{diff}");
    assert_eq!(results[1]["changes"], "");
    // Applying the work also deletes the workspace in which nothing was changed.
    let listed = server.get("/v1/workspaces").expect(200).await;
    let metadata = &listed["workspaces"][0]["metadata"];
    assert_eq!(metadata["title"], "work", "{listed}");
    let id = started["agents"][0]["workspaceId"].as_str().unwrap();
    let applied = server.post(&format!("/v1/workspaces/{id}/apply"), &json!({"mode": "patch"})).expect(200).await;
    assert_eq!((&applied["files"]["paths"], &applied["deleted"]), (&json!(["a", "made"]), &json!(["inner-work"])), "{applied}");
    assert_eq!((home.get("a").as_deref(), home.get("made").as_deref()), (Some("one\ntwo\n"), Some("new\n")));
    // A session outside of workspaces has an answer, but no changes.
    let id = server.post("/v1/sessions", &json!({"mode": "auto"})).expect(201).await["sessionId"].as_str().unwrap().to_owned();
    server.prompt(&id, "work and commit").expect(200).await;
    let result = server.get(&format!("/v1/sessions/{id}/result")).expect(200).await;
    assert_eq!((&result["answer"], result.get("changes")), (&json!("changed a"), None), "{result}");
    server.stop().await;
}
