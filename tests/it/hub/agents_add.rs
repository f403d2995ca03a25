//! `nuncio agents add` and `nuncio agents list`: from nothing to an agent that can be used.

use harness::Home;

#[tokio::test]
async fn list_without_agents_shows_what_could_be_added() {
    let home = Home::new();
    let bin = home.put("bin/gemini", "#!/bin/sh\n");
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.env("PATH", &format!("{}:/usr/bin:/bin", bin.parent().unwrap().display()));
    let ran = home.run(&["agents", "list"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let line = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {ran:?}"));
    assert!(line("gemini").contains("nuncio agents add gemini"), "{ran:?}");
    assert!(line("codex").contains("npm install -g @openai/codex"), "{ran:?}");
    assert!(line("claude-code").contains("claude") && line("opencode").contains("opencode"), "{ran:?}");
    home.run(&["agents", "add", "gemini"], "").await;
    let ran = home.run(&["agents", "list"], "").await;
    assert!(ran.stdout.contains("gemini --acp") && !ran.stdout.contains("npm install"), "{ran:?}");
}

/// The settings before, and what they begin or end with afterwards.
const LAYOUTS: &[(&str, &str)] = &[
    ("", "[agents]\nallowed = [\"gemini\"]\n"),
    ("# mine\nmodel = \"openai/x\" # kept\n", "# mine\nmodel = \"openai/x\" # kept\n\n[agents]\nallowed = [\"gemini\"]\n"),
    (
        "[agents]\n# none yet\nallowed = []  # names\nidle_ttl_s = 5\n",
        "[agents]\n# none yet\nallowed = [\"gemini\"]  # names\nidle_ttl_s = 5\n",
    ),
    (
        "[agents]\nallowed = [\"a\"]\n\n[agents.a] # first\nkind = \"codex\"\n",
        "[agents]\nallowed = [\"a\", \"gemini\"]\n\n[agents.a] # first\nkind = \"codex\"\n",
    ),
    (
        "[agents]\nallowed = [\n  \"a\", # one ]\n  'b' # two\n]\n[agents.a]\nkind = \"codex\"\n[agents.b]\nkind = \"codex\"\n",
        "[agents]\nallowed = [\n  \"a\", # one ]\n  'b', \"gemini\" # two\n]\n[agents.a]\n",
    ),
    ("[agents]  # about agents\nidle_ttl_s = 5\n", "[agents]  # about agents\nidle_ttl_s = 5\nallowed = [\"gemini\"]\n"),
    ("[agents.a]\nkind = \"codex\"\n", "[agents]\nallowed = [\"gemini\"]\n[agents.a]\nkind = \"codex\"\n\n"),
    ("[agents]\nallowed = [\"gemini\"]\n", "[agents]\nallowed = [\"gemini\"]\n\n[agents.gemini]\n"),
];

#[tokio::test]
async fn added_agent_is_allowed_and_the_layout_of_the_file_is_kept() {
    for (before, expected) in LAYOUTS {
        let home = Home::new();
        home.exact_config(before);
        let added = home.run(&["agents", "add", "gemini"], "").await;
        let after = home.config_text();
        assert_eq!(added.code, 0, "{before}: {added:?}");
        assert!(added.stdout.contains("nuncio agents check gemini"), "{added:?}");
        assert!(after.starts_with(expected), "{before}\n->\n{after}");
        assert!(
            after
                .ends_with("[agents.gemini]\nkind = \"acp\"\ncommand = [\"gemini\", \"--acp\"]\nenv_pass = [\"GEMINI_API_KEY\"]\n"),
            "{after}"
        );
        assert_eq!(home.run(&["config", "check"], "").await.code, 0, "{after}");
        let listed = home.run(&["agents", "list", "--json"], "").await.lines();
        let agent = listed.iter().find(|agent| agent["name"] == "gemini").unwrap();
        assert!(!agent["problem"].to_string().contains("not allowed"), "{agent}");
    }
}

#[tokio::test]
async fn known_agents_can_be_added_under_any_name_and_others_with_their_command() {
    let home = Home::new();
    for arguments in [
        &["agents", "add", "codex"][..],
        &["agents", "add", "claude-code"],
        &["agents", "add", "opencode"],
        &["agents", "add", "work", "--kind", "codex"],
        &["agents", "add", "mine", "--env-pass", "MY_KEY", "--", "my-agent", "--acp"],
    ] {
        let added = home.run(arguments, "").await;
        assert_eq!(added.code, 0, "{arguments:?}: {added:?}");
    }
    let text = home.config_text();
    assert!(text.contains("allowed = [\"codex\", \"claude-code\", \"opencode\", \"work\", \"mine\"]\n"), "{text}");
    assert!(text.contains("[agents.work]\nkind = \"codex\"\n"), "{text}");
    assert!(
        text.ends_with("[agents.mine]\nkind = \"acp\"\ncommand = [\"my-agent\", \"--acp\"]\nenv_pass = [\"MY_KEY\"]\n"),
        "{text}"
    );
    assert_eq!(home.run(&["config", "check"], "").await.code, 0, "{text}");
}

#[tokio::test]
async fn wrong_additions_are_errors_and_change_nothing() {
    let home = Home::new();
    let settings = "[agents]\nallowed = [\"a\"]\n[agents.a]\nkind = \"codex\"\n";
    for (before, arguments, message) in [
        (settings, &["agents", "add", "a", "--kind", "codex"][..], "already have an agent a"),
        (settings, &["agents", "add", "unheard-of"], "claude-code, codex, gemini, opencode"),
        (settings, &["agents", "add", "nuncio", "--kind", "codex"], "nuncio"),
        (settings, &["agents", "add", "allowed", "--kind", "codex"], "invalid name"),
        (settings, &["agents", "add", "a.b", "--kind", "codex"], "invalid name"),
    ] {
        home.config(before);
        let ran = home.run(arguments, "").await;
        assert_eq!((ran.code, home.config_text().as_str()), (2, before), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {ran:?}");
    }
}
