//! Project settings: restrictions apply at once, extensions only in trusted projects. Also the
//! precedence of scopes.

use serde_json::{Value, json};

use harness::verdict::Verdict::{self, Allow, Ask, Deny};
use harness::verdict::verdict;
use harness::{Home, Reply, notices, tool};

const TRUE: &str = r#"{ tool = "bash", pattern = "true", policy = "#;

/// Checks the verdict for a command with these user and project settings, before and after
/// `nuncio trust`.
async fn check(user: &str, project: &str, mode: &str, before: Verdict, after: Verdict) {
    let home = Home::new();
    let call = json!({"command": "true"});
    home.config(user);
    home.put(".nuncio/config.toml", project);
    assert_eq!(verdict(&home, mode, "bash", &call).await, before, "{user} | {project}: untrusted");
    let trusted = home.run(&["trust", "."], "").await;
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert_eq!(verdict(&home, mode, "bash", &call).await, after, "{user} | {project}: trusted");
}

#[tokio::test]
async fn project_settings_restrict_at_once_and_extend_when_trusted() {
    let rules = |policy: &str| format!("[permissions]\nrules = [ {TRUE}\"{policy}\" }} ]\n");
    check("", &rules("allow"), "ask", Ask, Allow).await;
    check("", &rules("ask"), "auto", Ask, Ask).await;
    check("", &rules("deny"), "auto", Deny, Deny).await;
    check("", "[permissions]\ndefault = \"allow\"\n", "ask", Ask, Allow).await;
    check("", "[permissions]\ndefault = \"deny\"\n", "ask", Deny, Deny).await;
    check("[permissions]\ndefault = \"deny\"\n", "[permissions]\ndefault = \"ask\"\n", "ask", Deny, Ask).await;
    check("[permissions]\ndefault = \"deny\"\n", &rules("ask"), "ask", Deny, Ask).await;
    // The innermost scope with a matching rule decides, except that a deny rule always applies.
    check(&rules("deny"), &rules("allow"), "auto", Deny, Deny).await;
    check(&rules("ask"), &rules("allow"), "auto", Ask, Allow).await;
    check(&rules("allow"), &rules("ask"), "auto", Ask, Ask).await;
    check(&rules("allow"), &rules("deny"), "auto", Deny, Deny).await;
}

#[tokio::test]
async fn notice_lists_unused_project_settings() {
    let home = Home::new();
    home.put(
        ".nuncio/config.toml",
        "model = \"ollama/evil\"\nallowed_paths = [\"/\"]\n[permissions]\nrules = [ { policy = \"allow\" } ]\n",
    );
    let model = home.script(json!([{"tool_calls": [{"name": "bash", "input": {"command": "true"}}]}, {"text": "so be it"}]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}})).await;
    let session = agent.new_session(&home).await;
    agent.otherwise = Reply::Pick("reject_once");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "failed");
    let told: Vec<&Value> = updates.iter().filter(|update| update["sessionUpdate"] == "notice").collect();
    assert_eq!(notices(&updates).len(), 1, "{told:?}");
    let description = told[0]["description"].as_str().unwrap();
    for word in ["model", "allowed_paths", "rules", "nuncio trust"] {
        assert!(description.contains(word), "{word}: {description}");
    }
    agent.finish().await;
}

/// Returns whether a command is refused that the project's settings allow, and the output of
/// `config check`.
async fn confined(home: &Home) -> (bool, String) {
    let input = json!({"command": "touch ../escaped"}).to_string();
    let ran = home.run(&["tool", "bash", "--mode", "ask", &input], "").await;
    let escaped = home.work().join("../escaped");
    let confined = !escaped.exists();
    let _ = std::fs::remove_file(escaped);
    assert!(!ran.stdout.is_empty(), "{ran:?}");
    (confined, home.run(&["config", "check"], "").await.stdout)
}

const OPEN: &str = "[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n";

#[tokio::test]
async fn changed_settings_of_a_trusted_project_only_restrict() {
    let home = Home::new();
    home.put(".nuncio/config.toml", OPEN);
    assert!(confined(&home).await.0);
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    assert!(!confined(&home).await.0, "trusted settings count");
    for changed in [format!("# more\n{OPEN}"), format!("{OPEN}[lsp.x]\ncommand = [\"x\"]\nfiles = [\"*.x\"]\n")] {
        home.put(".nuncio/config.toml", &changed);
        let (confined, check) = confined(&home).await;
        assert!(confined && check.contains("not used: permissions.rules that allow") && check.contains("changed since"), "{check}");
    }
    home.put(".nuncio/config.toml", OPEN);
    assert!(!confined(&home).await.0, "what was trusted is trusted again");
    // Settings added to a directory that was trusted without settings are not trusted.
    let other = Home::new();
    assert_eq!(other.run(&["trust", "."], "").await.code, 0);
    other.put(".nuncio/config.toml", OPEN);
    assert!(confined(&other).await.0);
    assert_eq!(other.run(&["trust", "."], "").await.code, 0);
    assert!(!confined(&other).await.0);
}

#[tokio::test]
async fn notice_reports_changed_trusted_settings() {
    let home = Home::new();
    home.put(".nuncio/config.toml", OPEN);
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home.put(".nuncio/config.toml", &format!("# more\n{OPEN}"));
    let model = home.script(json!([{"text": "so be it"}]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}})).await;
    let session = agent.new_session(&home).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let told = updates.iter().find(|update| update["sessionUpdate"] == "notice").expect("a notice").to_string();
    for word in ["changed since", "permissions.rules", "nuncio trust"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn changed_script_or_prompt_of_trusted_settings_revokes_trust() {
    let settings = [
        "[providers.p]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_command = [\"sh\", \"tools/key\"]\n",
        "[lsp.x]\ncommand = [\"./tools/key\", \"--stdio\"]\nfiles = [\"*.x\"]\n",
        "[prompts]\n\"*\" = \"tools/key\"\n",
    ];
    for settings in settings {
        let home = Home::new();
        home.put("tools/key", "one");
        home.put(".nuncio/config.toml", &format!("{settings}{OPEN}"));
        assert_eq!(home.run(&["trust", "."], "").await.code, 0);
        assert!(!confined(&home).await.0, "{settings}");
        home.put("tools/key", "two");
        let (confined, check) = confined(&home).await;
        assert!(confined && check.contains("changed since"), "{settings}: {check}");
    }
}

#[tokio::test]
async fn trust_without_a_digest_must_be_renewed() {
    let home = Home::new();
    home.put(".nuncio/config.toml", OPEN);
    std::fs::write(home.data().join("trusted"), format!("{}\n", home.work().display())).unwrap();
    let (closed, check) = confined(&home).await;
    assert!(closed && check.contains("with an older version of nuncio"), "{check}");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    assert!(!confined(&home).await.0);
}

#[tokio::test]
async fn trust_of_a_directory_excludes_settings_in_subdirectories() {
    let home = Home::new();
    home.put("sub/.nuncio/config.toml", OPEN);
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let sub = home.work().join("sub").display().to_string();
    let check = home.run(&["config", "check", "--cwd", &sub], "").await;
    assert!(check.stdout.contains("not used: permissions.rules that allow"), "{check:?}");
}

#[tokio::test]
async fn trust_is_listed_and_removed() {
    let home = Home::new();
    home.put("sub/.nuncio/config.toml", OPEN);
    home.put("list/.nuncio/config.toml", OPEN);
    let dir = |name: &str| std::fs::canonicalize(home.work().join(name)).unwrap().display().to_string();
    let (work, sub, list) = (dir("."), dir("sub"), dir("list"));
    for name in [".", "sub", "./list"] {
        assert_eq!(home.run(&["trust", name], "").await.code, 0);
    }
    assert_eq!(home.run(&["trust", "list"], "").await.stdout, format!("{work}\n{list}\n{sub}\n"));
    home.put("list/.nuncio/config.toml", "");
    let changed = home.run(&["trust", "list"], "").await.stdout;
    assert!(changed.contains(&format!("{list}  (not in effect: its settings have changed)\n")), "{changed}");
    let removed = home.run(&["trust", "remove", "sub"], "").await;
    let expected = format!("{sub} is no longer trusted\n{work} is trusted, so hosted agents may still run below it\n");
    assert_eq!((removed.code, removed.stdout), (0, expected));
    let check = home.run(&["config", "check", "--cwd", &sub], "").await;
    assert!(check.stdout.contains("not used: permissions.rules that allow"), "{check:?}");
    let again = home.run(&["trust", "remove", "sub"], "").await;
    assert!(again.code == 2 && again.stderr.contains("not in the list of trusted directories"), "{again:?}");
    // A directory that no longer exists can be removed, too.
    std::fs::remove_dir_all(home.work().join("list")).unwrap();
    assert_eq!(home.run(&["trust", "remove", "list"], "").await.code, 0);
    assert_eq!(home.run(&["trust", "list"], "").await.stdout, format!("{work}\n"));
}

#[tokio::test]
async fn directory_name_with_a_line_break_cannot_be_trusted() {
    let home = Home::new();
    let name = format!("x\n{}", home.work().display());
    std::fs::create_dir_all(home.work().join(&name)).unwrap();
    home.put(".nuncio/config.toml", OPEN);
    assert_ne!(home.run(&["trust", &name], "").await.code, 0);
    assert!(confined(&home).await.0);
}

#[tokio::test]
async fn user_deny_rule_overrides_session_permission() {
    let home = Home::new();
    home.config("");
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let script = json!([call, {"text": "so be it"}]);
    let (mut agent, session) = home.session(script.clone(), &[]).await;
    agent.otherwise = Reply::Pick("allow_always");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "completed");
    agent.finish().await;
    for (rules, asked, status) in
        [("{ tool = \"bash\", policy = \"ask\" }", 0, "completed"), ("{ tool = \"bash\", policy = \"deny\" }", 0, "failed")]
    {
        home.config(&format!("[permissions]\nrules = [ {rules} ]\n"));
        let mut agent = home.start(&["--model", &home.script(script.clone())]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(tool(&updates, 0)["status"], status, "{rules}");
        let questions = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count();
        assert_eq!(questions, asked, "{rules}");
        agent.finish().await;
    }
}
