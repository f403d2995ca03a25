//! `nuncio config init`, `edit`, `set` and `unset`.

use std::os::unix::fs::PermissionsExt;

use harness::Home;

/// The settings before, the arguments after `config`, and the settings afterwards.
const CHANGES: &[(&str, &[&str], &str)] = &[
    ("", &["set", "model", "openai/x"], "model = \"openai/x\"\n"),
    ("# mine\n", &["set", "budget.max_cost", "2.5"], "# mine\n[budget]\nmax_cost = 2.5\n"),
    (
        "# mine\nmodel = \"a/b\"   # a\n\n[budget] # b\nmax_cost = 1.0 # dollars\nmax_requests = 3\n",
        &["set", "budget.max_cost", "2.5"],
        "# mine\nmodel = \"a/b\"   # a\n\n[budget] # b\nmax_cost = 2.5 # dollars\nmax_requests = 3\n",
    ),
    ("[budget]\nmax_requests = 3\n", &["set", "model", "a/b"], "model = \"a/b\"\n[budget]\nmax_requests = 3\n"),
    ("", &["set", "allowed_paths", "[\"/a\", \"/b\"]"], "allowed_paths = [\"/a\", \"/b\"]\n"),
    ("", &["set", "models.\"work/big\".context_window", "9000"], "[models.\"work/big\"]\ncontext_window = 9000\n"),
    ("budget = { max_cost = 1.0 }\n", &["set", "budget.max_requests", "2"], "budget = { max_cost = 1.0, max_requests = 2 }\n"),
    // A string that is also a number.
    ("", &["set", "mcp.a.command", "[\"x\"]"], "[mcp.a]\ncommand = [\"x\"]\n"),
    ("[prompts]\n", &["set", "prompts.\"*\"", "7"], "[prompts]\n\"*\" = \"7\"\n"),
    ("# a\nmodel = \"a/b\"\n# c\n[budget]\nmax_cost = 1.0\n", &["unset", "budget.max_cost"], "# a\nmodel = \"a/b\"\n"),
    (
        "[budget]\n# x\nmax_cost = 1.0\nmax_requests = 2 # two\n",
        &["unset", "budget.max_cost"],
        "[budget]\nmax_requests = 2 # two\n",
    ),
    // The file was invalid.
    ("modell = \"x/y\"\nmodel = \"a/b\"\n", &["unset", "modell"], "model = \"a/b\"\n"),
];

#[tokio::test]
async fn values_change_and_comments_stay() {
    for (before, arguments, after) in CHANGES {
        let home = Home::new();
        home.exact_config(before);
        let ran = home.run(&[&["config"], *arguments].concat(), "").await;
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        assert_eq!(home.config_text(), *after, "{before} {arguments:?}");
        assert_eq!(home.run(&["config", "check"], "").await.code, 0, "{after}");
    }
}

#[tokio::test]
async fn invalid_changes_are_errors_and_change_nothing() {
    let before = "model = \"a/b\"\n[budget]\nmax_cost = 1.0\n";
    for (before, arguments, message) in [
        (before, &["set", "modell", "a/b"][..], "did you mean `model`?"),
        (before, &["set", "budget.max_cost", "much"], "budget.max_cost"),
        (before, &["set", "budget", "7"], "budget is a table"),
        (before, &["set", "model.name", "7"], "the setting model has a value"),
        (before, &["set", "models.work/big.context_window", "7"], "quote names"),
        (before, &["unset", "budget.max_requests"], "budget.max_requests is not set"),
        (before, &["unset", "retry.wait_s"], "retry.wait_s is not set"),
        (before, &["init"], "exists"),
        ("model = \n", &["set", "model", "a/b"], "nuncio config edit"),
    ] {
        let home = Home::new();
        home.config(before);
        let ran = home.run(&[&["config"], arguments].concat(), "").await;
        assert_eq!((ran.code, home.config_text().as_str()), (2, before), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test]
async fn created_file_has_settings_that_are_valid_without_their_comment_signs() {
    let home = Home::new();
    let _ = std::fs::remove_file(home.data().join("config.toml"));
    let created = home.run(&["config", "init"], "").await;
    assert_eq!(created.code, 0, "{created:?}");
    let path = home.run(&["config", "path"], "").await.stdout;
    assert_eq!(created.stdout, format!("created {path}"));
    let text = home.config_text();
    assert_eq!(home.run(&["config", "check"], "").await.code, 0);
    let is_setting = |line: &str| line.starts_with('[') || line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    let settings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| is_setting(line)).collect();
    assert!(settings.len() > 6, "{settings:?}");
    home.config(&settings.join("\n"));
    let checked = home.run(&["config", "check"], "").await;
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[tokio::test]
async fn edited_text_replaces_the_file_only_if_it_is_valid() {
    let home = Home::new();
    home.config("model = \"a/b\" # mine\n");
    let settings = home.data().join("config.toml").display().to_string();
    for (script, code, message, after) in [
        ("sed -i s:a/b:c/d: \"$1\"", 0, "changed ", "model = \"c/d\" # mine\n"),
        ("true", 0, "the settings are unchanged", "model = \"c/d\" # mine\n"),
        ("exit 1", 2, "failed; the settings are unchanged", "model = \"c/d\" # mine\n"),
        ("sed -i s:model:modell: \"$1\"", 2, "the edited text is ", "model = \"c/d\" # mine\n"),
        ("sed -i s:c/d:e/f: \"$1\"; echo > SETTINGS", 2, "was changed by another program", "\n"),
    ] {
        let editor = home.put("../bin/editor", &format!("#!/bin/sh\n{}\n", script.replace("SETTINGS", &settings)));
        std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
        home.env("EDITOR", editor.to_str().unwrap());
        let ran = home.run(&["config", "edit"], "").await;
        assert_eq!((ran.code, home.config_text().as_str()), (code, after), "{script}: {ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(message), "{script}: {ran:?}");
    }
}
