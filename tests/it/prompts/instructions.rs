//! Instruction files of the user, imports, and files of directories below the session's directory.

use serde_json::{Value, json};

use super::bodies;
use harness::Home;

/// Prompts once; the system prompt must contain `expected`. Returns standard error.
async fn system_prompt_contains(home: &Home, expected: &str) -> bool {
    let model = home.script(json!([{"text": "ok", "expect": expected}]));
    home.run(&["run", "--model", &model, "go"], "").await.code == 0
}

#[tokio::test]
async fn users_file_precedes_project_files() {
    let home = Home::new();
    std::fs::write(home.data().join("AGENTS.md"), "Words of the user.\n").unwrap();
    home.put("AGENTS.md", "Words of the project.\n");
    let expected = "Words of the user.\n</instructions>\n\n<instructions file=\"AGENTS.md\">\nWords of the project.";
    assert!(system_prompt_contains(&home, expected).await);
}

#[tokio::test]
async fn imports_are_followed_within_their_limits() {
    struct Case {
        name: &'static str,
        files: &'static [(&'static str, &'static str)],
        trusted: bool,
        expected: bool,
    }
    const SECRET: &str = "The words to find.";
    let case = |name, files, expected| Case { name, files, trusted: false, expected };
    let cases = [
        case("relative", &[("AGENTS.md", "See @docs/a.md."), ("docs/a.md", SECRET)], true),
        case("relative to the importing file", &[("AGENTS.md", "@docs/a.md"), ("docs/a.md", "@b.md"), ("docs/b.md", SECRET)], true),
        case("in a code block", &[("AGENTS.md", "```\n@docs/a.md\n```\n"), ("docs/a.md", SECRET)], false),
        case("in code", &[("AGENTS.md", "Write `@docs/a.md`."), ("docs/a.md", SECRET)], false),
        case("a cycle", &[("AGENTS.md", "@b.md"), ("b.md", "@AGENTS.md @c.md"), ("c.md", SECRET)], true),
        case("depth 5", &[("AGENTS.md", "@1"), ("1", "@2"), ("2", "@3"), ("3", "@4"), ("4", "@5"), ("5", SECRET)], true),
        case(
            "depth 6",
            &[("AGENTS.md", "@1"), ("1", "@2"), ("2", "@3"), ("3", "@4"), ("4", "@5"), ("5", "@6"), ("6", SECRET)],
            false,
        ),
        case("outside the repository", &[("AGENTS.md", "@../secret.md"), ("../secret.md", SECRET)], false),
        case("of the user, not trusted", &[("AGENTS.md", "@~/.claude/own.md"), ("../.claude/own.md", SECRET)], false),
        Case {
            trusted: true,
            ..case("of the user, trusted", &[("AGENTS.md", "@~/.claude/own.md"), ("../.claude/own.md", SECRET)], true)
        },
        Case { trusted: true, ..case("outside, trusted", &[("AGENTS.md", "@../secret.md"), ("../secret.md", SECRET)], false) },
        Case { trusted: true, ..case("not Markdown", &[("AGENTS.md", "@../home/token2"), ("../home/token2", SECRET)], false) },
        case("by the user's file", &[("../home/AGENTS.md", "@own.md"), ("../home/own.md", SECRET)], true),
    ];
    let mut wrong = Vec::new();
    for Case { name, files, trusted, expected } in cases {
        let home = Home::new();
        home.put(".git/HEAD", "ref: refs/heads/main\n");
        for (path, text) in files {
            home.put(path, &format!("{text}\n"));
        }
        if trusted {
            assert_eq!(home.run(&["trust", "."], "").await.code, 0);
        }
        wrong.extend((system_prompt_contains(&home, SECRET).await != expected).then_some(name));
    }
    assert_eq!(wrong, Vec::<&str>::new());
}

#[tokio::test]
async fn skipped_imports_are_named_with_the_reason() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put("AGENTS.md", "@missing.md @../secret.md @../secret.txt @docs @1 @~/.claude/own.md @taken.md @blank.md\n");
    home.put("blank.md", " \n");
    home.put("taken.md", "Use @types/node and @scope/package, and ask @someone.\n");
    for (file, text) in [("1", "@2"), ("2", "@3"), ("3", "@4"), ("4", "@5"), ("5", "@6"), ("6", "words")] {
        home.put(file, text);
    }
    for file in ["docs/a.md", "../secret.md", "../secret.txt", "../.claude/own.md"] {
        home.put(file, "words\n");
    }
    let (mut agent, session) = home.session(json!([{"text": "ok"}, {"text": "ok"}]), &[]).await;
    agent.turn(&session, "go").await;
    agent.turn(&session, "go on").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let skipped: Vec<&Value> = log.iter().filter(|event| event.to_string().contains("import are skipped")).collect();
    let [notice] = skipped[..] else { panic!("{skipped:#?}") };
    let description = notice["body"]["description"].as_str().unwrap();
    let lines: Vec<&str> = description.lines().map(|line| line.rsplit_once('/').unwrap().1).collect();
    assert_eq!(
        lines,
        [
            "missing.md: it does not exist",
            "secret.md: it is outside of the project, and no Markdown file of your configuration",
            "secret.txt: it is outside of the project, and no Markdown file of your configuration",
            "docs: it is no file",
            "6: imports are followed 5 levels deep",
            "own.md: it is a file of your configuration, and the project is not trusted: run `nuncio trust`",
            "blank.md: it is blank, or cannot be read",
        ]
    );
}

#[tokio::test]
async fn instructions_in_utf_16_are_decoded() {
    let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let text = "Wörter of the file.\n";
    for bytes in [
        wide(&format!("\u{feff}{text}"), u16::to_le_bytes),
        wide(&format!("\u{feff}{text}"), u16::to_be_bytes),
        wide(text, u16::to_le_bytes),
        wide(text, u16::to_be_bytes),
        format!("\u{feff}{text}").into_bytes(),
    ] {
        for name in ["AGENTS.md", "imported.md"] {
            let home = Home::new();
            home.put("AGENTS.md", "@imported.md\n");
            std::fs::write(home.work().join(name), &bytes).unwrap();
            assert!(system_prompt_contains(&home, "\">\nWörter of the file.").await, "{name} {:?}", &bytes[..4]);
        }
    }
}

#[tokio::test]
async fn nested_file_is_added_once_to_the_result_of_a_call() {
    let home = Home::new();
    home.put("sub/deep/AGENTS.md", "Words of deep.\n");
    home.put("sub/AGENTS.md", "Words of sub. @more.md\n");
    home.put("sub/more.md", "Imported words.\n");
    home.put("AGENTS.md", "Words of the root.\n");
    std::os::unix::fs::symlink("../../AGENTS.md", home.work().join("sub/deep/CLAUDE.md")).unwrap();
    home.put("sub/deep/a.txt", "a\n");
    home.put("sub/b.txt", "b\n");
    home.put("c.txt", "c\n");
    let read = |path: &str| json!({"name": "read", "input": {"file_path": path}});
    let steps = json!([
        {"tool_calls": [read("c.txt")]},
        {"tool_calls": [read("sub/b.txt"), read("sub/b.txt")]},
        {"tool_calls": [read("sub/deep/a.txt")]},
        {"tool_calls": [read("sub/deep/a.txt")]},
        {"text": "done"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let model = home.script(json!([{"tool_calls": [read("sub/b.txt")]}, {"text": "done"}]));
    let ran = home.run(&["run", "--model", &model, "--resume", &session, "again"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = home.log(&session).await;
    let added: Vec<Vec<&str>> = bodies(&log, "tool.completed")
        .into_iter()
        .map(|body| {
            let texts = body["output"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            texts.filter_map(|text| text.strip_prefix("<instructions file=\"")?.split('"').next()).collect()
        })
        .collect();
    let sub = vec!["sub/AGENTS.md", "sub/more.md"];
    let mut in_order = added.clone();
    // The two calls of one answer run concurrently.
    in_order[1..3].sort();
    assert_eq!(in_order, [vec![], vec![], sub, vec!["sub/deep/AGENTS.md"], vec![], vec![]], "{added:?}");
}
