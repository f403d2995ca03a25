//! Slash commands and skills from files.

use serde_json::{Value, json};

use super::bodies;
use harness::{Home, tool};

#[tokio::test]
async fn command_file_is_expanded() {
    const FILE: &str = ".nuncio/commands/fix.md";
    let cases: &[(&str, &str, &str, &str)] = &[
        (FILE, "Fix it.\n", "/fix", "Fix it."),
        (FILE, "Fix it.\n", "/fix the test", "Fix it.\n\nthe test"),
        (FILE, "---\ndescription: Fixes\n---\nFix $ARGUMENTS now.\n", "/fix a b", "Fix a b now."),
        (FILE, "Fix $1 in $2.\n", "/fix \"a b\" c d", "Fix a b in c."),
        (FILE, "Fix $1 and $3.\n", "/fix $2 x", "Fix $2 and ."),
        // An escaped dollar.
        (FILE, "Run awk '{print \\$1}' on $1.\n", "/fix a", "Run awk '{print $1}' on a."),
        (FILE, "Costs \\$5.\n", "/fix a", "Costs $5.\n\na"),
        (FILE, "Costs \\$5 of \\$ARGUMENTS.\n", "/fix", "Costs $5 of $ARGUMENTS."),
        (FILE, "\\$HOME is $1.\n", "/fix x", "$HOME is x."),
        // Apostrophes and inches are no quotes.
        (FILE, "1: $1, 2: $2, 3: $3.\n", "/fix don't stop it's", "1: don't, 2: stop, 3: it's."),
        (FILE, "1: $1, 2: $2.\n", "/fix 5\" 'tis", "1: 5\", 2: 'tis."),
        (FILE, "1: $1, 2: $2.\n", "/fix 'a b", "1: 'a, 2: b."),
        (FILE, "1: $1, 2: $2.\n", "/fix 'it's here' b", "1: it's here, 2: b."),
        (FILE, "1: $1, 2: $2.\n", "/fix \"\" b", "1: , 2: b."),
        (FILE, "1: $1, 2: $2.\n", "/fix to='a b' c", "1: to=a b, 2: c."),
        (".claude/commands/fix.md", "Of Claude.", "/fix", "Of Claude."),
        (".claude/commands/git/fix.md", "Nested.", "/git:fix", "Nested."),
        ("../home/commands/fix.md", "Of the user.", "/fix", "Of the user."),
        ("../.claude/commands/fix.md", "Of the user's Claude.", "/fix", "Of the user's Claude."),
        (".claude/commands/review.md", "Own review.", "/review", "Own review."),
        (".nuncio/skills/fix/SKILL.md", "---\ndescription: Fixes\n---\nSteps.", "/fix", "SKILL.md:\n\nSteps."),
    ];
    for (file, content, prompt, expected) in cases {
        let home = Home::new();
        home.put(".git/HEAD", "ref: refs/heads/main\n");
        home.put(file, content);
        let (mut agent, session) = home.session(json!([{"text": "ok"}]), &[]).await;
        agent.turn(&session, prompt).await;
        agent.finish().await;
        let log = home.log(&session).await;
        let user = bodies(&log, "message.completed")[0];
        let expansion = user["expansion"].as_str().unwrap_or_default();
        assert!(expansion.ends_with(expected), "{file} {prompt}: {user}");
        assert_eq!(user["parts"][0]["text"], *prompt);
    }
}

#[tokio::test]
async fn changed_command_file_does_not_change_the_conversation() {
    let home = Home::new();
    home.put(".nuncio/commands/fix.md", "The first text.");
    let steps = json!([{"text": "ok", "expect": "The first text."}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "/fix").await;
    agent.finish().await;
    home.put(".nuncio/commands/fix.md", "The second text.");
    let model = home.script(json!([{"text": "ok", "expect": "The first text."}]));
    let ran = home.run(&["run", "--model", &model, "--resume", &session, "and now"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn commands(updates: &[Value]) -> Vec<&Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == "available_commands_update").collect()
}

#[tokio::test]
async fn commands_are_announced_and_again_when_they_change() {
    let home = Home::new();
    home.put(".nuncio/commands/fix.md", "---\ndescription: \"Fixes: all\"\nargument-hint: [what]\n---\nFix it.");
    home.put(".agents/skills/paint/SKILL.md", "---\nname: paint\ndescription: >\n  Paints\n  walls\n---\nPaint.");
    let (mut agent, session) = home.session(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]), &[]).await;
    agent.turn(&session, "one").await;
    let updates = agent.updates(&session);
    let announced = commands(&updates);
    assert_eq!(announced.len(), 1, "{announced:?}");
    let command = |name: &str| {
        let list = announced[0]["availableCommands"].as_array().unwrap();
        list.iter().find(|command| command["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(command("fix"), json!({"name": "fix", "description": "Fixes: all", "input": {"hint": "what"}}));
    assert_eq!(command("paint")["description"], "Paints walls");
    for name in ["compact", "context", "init", "review"] {
        assert!(command(name).is_object(), "{name}");
    }
    home.put(".nuncio/commands/new.md", "New.");
    agent.turn(&session, "two").await;
    let updates = agent.updates(&session);
    let announced = commands(&updates);
    assert_eq!(announced.len(), 2, "{announced:?}");
    assert!(announced[1].to_string().contains("\"new\""));
    agent.turn(&session, "three").await;
    assert_eq!(commands(&agent.updates(&session)).len(), 2);
    agent.finish().await;
}

#[tokio::test]
async fn skills_are_listed_in_system_prompt_and_read_without_question() {
    let home = Home::new();
    let skill = |name: &str| format!("---\nname: {name}\ndescription: Does {name}.\n---\nSteps of {name}.\n");
    for dir in [".nuncio", ".claude", ".agents", "../home", "../.claude", "../.agents"] {
        let name = dir.replace(['.', '/'], "").replace("home", "user");
        let name = if dir.starts_with("..") { format!("own-{name}") } else { name };
        home.put(&format!("{dir}/skills/{name}/SKILL.md"), &skill(&name));
    }
    home.put(".claude/skills/silent/SKILL.md", "---\ndescription: Silent.\ndisable-model-invocation: true\n---\nx");
    let path = home.data().join("skills/own-user/SKILL.md");
    let expected = "- nuncio: Does nuncio. (.nuncio/skills/nuncio/SKILL.md)";
    let steps = json!([
        {"expect": expected, "tool_calls": [{"name": "read", "input": {"file_path": path}}]},
        {"text": "done", "expect": "Steps of own-user."},
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "plan"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "completed", "{updates:?}");
    agent.finish().await;
    for (expected, there) in [("- own-claude:", true), ("- own-agents:", true), ("- silent:", false)] {
        let model = home.script(json!([{"text": "ok", "expect": expected}]));
        assert_eq!(home.run(&["run", "--model", &model, "go"], "").await.code == 0, there, "{expected}");
    }
}

/// A field of a command or a skill, and whether the file is used, and whether the model may use the
/// skill by itself.
const FIELDS: &[(&str, bool, bool)] = &[
    ("allowed-tools: Bash(git:*)", true, true),
    ("allowed-tools: [Read]", true, true),
    ("model: opus", true, true),
    ("license: MIT", true, true),
    ("hooks:", true, true),
    ("disable-model-invocation: false", true, true),
    ("disable-model-invocation: true", true, false),
    ("disable-model-invocation: True # by hand", true, false),
    ("disable-model-invocation: yes", true, false),
    ("disable_model_invocation: \"true\"", true, false),
    ("disallowed-tools: Bash", false, false),
    ("disallowedTools: [Bash]", false, false),
    ("tools: Read", false, false),
    ("hooks:\n  PreToolUse:\n    - matcher: Bash", false, false),
    ("context: fork", false, false),
    ("agent: Explore", false, false),
    ("mode: ask", false, false),
    ("permission-mode: plan", false, false),
    ("permission:\n  bash: deny", false, false),
    ("subtask: true", false, false),
    ("isolation: worktree", false, false),
    ("sandbox: read-only", false, false),
    ("argument-hint: [a] [b]", true, true),
    ("when: Use when: a", true, true),
    ("disallowed-tools: Bash: x", false, false),
    ("disallowed-tools:Bash", false, false),
    ("when: a: b\n  tools: Read", false, false),
    ("disable-model-invocation: *", false, false),
    ("no field", false, false),
    ("a: 1\na: 2", false, false),
];

#[tokio::test]
async fn commands_and_skills_with_restrictions_are_skipped_and_allowed_tools_grant_nothing() {
    let home = Home::new();
    for (number, (field, ..)) in FIELDS.iter().enumerate() {
        let text = format!("---\ndescription: Case.\n{field}\n---\nDo it.\n");
        home.put(&format!(".claude/commands/c{number}.md"), &text);
        home.put(&format!(".claude/skills/s{number}/SKILL.md"), &text);
    }
    let system = home.data().join("hook.sh");
    std::fs::write(&system, "cat > \"$NUNCIO_WORKSPACE/system\"\n").unwrap();
    home.config("[[hooks]]\nevent = \"prompt.system.transform\"\ncommand = [\"sh\", \"hook.sh\"]\n");
    let steps = json!([{"tool_calls": [{"name": "bash", "input": {"command": "git status"}}]}, {"text": "ok"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "ask"]).await;
    agent.otherwise = harness::Reply::Pick("reject_once");
    agent.turn(&session, "/c0").await;
    assert_eq!(agent.questions(), 1, "the command of a file with allowed-tools is asked about");
    let updates = agent.updates(&session);
    let announced: Vec<&str> = commands(&updates)[0]["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    let system = home.get("system").unwrap();
    agent.finish().await;
    let log = home.log(&session).await;
    let notices = harness::log::bodies(&log, "notice");
    let notice =
        notices.iter().find_map(|notice| notice["description"].as_str().filter(|text| text.contains("is skipped"))).unwrap();
    for (number, (field, used, listed)) in FIELDS.iter().enumerate() {
        for (name, file) in
            [(format!("c{number}"), format!("commands/c{number}.md")), (format!("s{number}"), format!("skills/s{number}/SKILL.md"))]
        {
            assert_eq!(announced.contains(&name.as_str()), *used, "{name}: {field:?}");
            assert_eq!(notice.contains(&format!("{file} is skipped")), !used, "{name}: {field:?}: {notice}");
        }
        assert_eq!(system.contains(&format!("- s{number}: ")), *listed, "{field:?}");
    }
}
