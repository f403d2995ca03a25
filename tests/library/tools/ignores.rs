//! Ignore files and their precedence.

use super::*;

/// The paths of the files that `glob` finds below `path`, sorted.
async fn seen(world: &World, path: &str) -> Vec<String> {
    let output = world.call("glob", json!({"pattern": "**", "path": path})).await.unwrap();
    let mut paths: Vec<String> =
        plain_text(&output.parts).lines().map(String::from).filter(|line| line != "no files found").collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn nearer_and_more_specific_ignore_files_take_precedence() {
    // The files with their content, the searched directory, the expected files.
    type Case = (&'static [(&'static str, &'static str)], &'static str, &'static str);
    let cases: &[Case] = &[
        (&[(".gitignore", "*.log\n"), ("a.log", ""), ("b", "")], ".", "b"),
        (&[(".gitignore", "*.log\n"), ("sub/.gitignore", "!a.log\n"), ("sub/a.log", ""), ("a.log", "")], ".", "sub/a.log"),
        (&[(".gitignore", "/a\n"), ("a", ""), ("sub/a", "")], ".", "sub/a"),
        (&[(".gitignore", "sub/x\n"), ("sub/x", ""), ("deep/sub/x", "")], ".", "deep/sub/x"),
        (&[(".gitignore", "target/\n"), ("target/a", ""), ("sub/target", "")], ".", "sub/target"),
        (&[(".gitignore", "*\n!keep\n"), ("keep", ""), ("a", "")], ".", "keep"),
        (&[(".gitignore", "# c\n\n  \na\\#b\n\\!c\n"), ("a#b", ""), ("!c", ""), ("d", "")], ".", "d"),
        (&[(".gitignore", "\u{feff}a\r\nb\n"), ("a", ""), ("b", ""), ("c", "")], ".", "c"),
        // .ignore overrides .gitignore, and .gitignore overrides .git/info/exclude.
        (&[(".gitignore", "a\n"), (".ignore", "!a\nb\n"), ("a", ""), ("b", "")], ".", "a"),
        (&[(".ignore", "!a\n"), ("sub/.gitignore", "a\n"), ("sub/a", "")], ".", "sub/a"),
        (&[(".git/info/exclude", "a\nb\n"), (".gitignore", "!a\n"), ("a", ""), ("b", "")], ".", "a"),
        (&[("sub/.git/info/exclude", "/a\n"), ("sub/a", ""), ("a", "")], ".", "a"),
        // A linked worktree uses the rules of the main repository.
        (
            &[
                (".git", "gitdir: ../main/.git/worktrees/w\n"),
                ("../main/.git/worktrees/w/commondir", "../..\n"),
                ("../main/.git/info/exclude", "a\n"),
                ("a", ""),
                ("b", ""),
            ],
            ".",
            "b",
        ),
        // Ignore files in directories above the searched one.
        (&[(".gitignore", "/sub/a\n*.log\n"), ("sub/a", ""), ("sub/b.log", ""), ("sub/c", "")], "sub", "sub/c"),
        (&[("../.ignore", "a\n"), ("a", ""), ("sub/a", ""), ("b", "")], ".", "b"),
        (&[("../.gitignore", "work/a\n"), ("a", ""), ("b", "")], "sub/..", "b"),
        // Hidden files are omitted unless a rule names them.
        (&[(".hidden", ""), (".shown/a", ""), (".gitignore", "!.shown\n")], ".", ".shown/a"),
        (&[(".gitignore", "sub\n"), ("sub/a", "")], "sub", "sub/a"),
        (&[(".gitignore", "[\na\n"), ("a", ""), ("b", "")], ".", "b"),
    ];
    for (files, path, expected) in cases {
        let world = World::with_files(files);
        assert_eq!(seen(&world, path).await.join(" "), *expected, "{files:?}");
    }
}

#[tokio::test]
async fn search_tools_omit_the_same_ignored_files() {
    let world = World::with_files(&[
        (".gitignore", "*.gen.rs\n"),
        ("a.rs", "fn foo() {}\n"),
        ("a.gen.rs", "fn foo() {}\n"),
        ("sub/.ignore", "b.rs\n"),
        ("sub/b.rs", "fn foo() {}\n"),
    ]);
    for (name, input) in
        [("grep", json!({"pattern": "foo"})), ("glob", json!({"pattern": "*.rs"})), ("list", json!({})), ("repo_map", json!({}))]
    {
        let told = world.told(name, input).await;
        assert!(told.contains("a.rs") && !told.contains("a.gen.rs") && !told.contains("b.rs"), "{name}: {told}");
    }
}

#[tokio::test]
async fn global_git_ignore_file_applies() {
    let place = |home: &harness::Home, path: &str| home.work().join("..").join(path).canonicalize().unwrap().display().to_string();
    type Prepare = fn(&harness::Home, &dyn Fn(&harness::Home, &str) -> String);
    let cases: &[(&str, Prepare)] = &[
        ("the default place", |home, _| drop(home.put("../.config/git/ignore", "*.own\n"))),
        ("of .gitconfig", |home, place| {
            home.put("../excludes", "*.own\n");
            home.put("../.gitconfig", &format!("[user]\n\tname = x\n[core]\n\texcludesFile = \"{}\"\n", place(home, "excludes")));
        }),
        ("by ~", |home, _| {
            home.put("../excludes", "*.own\n");
            home.put("../.config/git/config", "[core]\nexcludesfile = ~/excludes\n");
        }),
    ];
    for (name, prepare) in cases {
        let home = harness::Home::new();
        home.put("a.own", "");
        home.put("b", "");
        prepare(&home, &place);
        let ran = home.run(&["tool", "glob", r#"{"pattern": "*"}"#], "").await;
        assert_eq!(ran.lines()[0]["output"], "b\n", "{name}");
    }
}

#[tokio::test]
async fn file_name_with_line_feed_is_shown_on_one_line() {
    let world =
        World::with_files(&[("a\nb.rs", "fn foo() {}\n"), ("d\ne/c.rs", "fn foo() {}\n"), ("esc\u{1b}[2K.rs", "fn foo() {}\n")]);
    std::os::unix::fs::symlink("to\nwhere", world.path("link")).unwrap();
    let named = [r#""a\nb.rs""#, r#""d\ne/c.rs""#, r#""esc\u{1b}[2K.rs""#];
    for (name, input, lines) in [
        ("grep", json!({"pattern": "foo", "output_mode": "files_with_matches"}), 3),
        ("grep", json!({"pattern": "foo"}), 3),
        ("glob", json!({"pattern": "*.rs"}), 3),
        ("repo_map", json!({}), 6),
    ] {
        let told = world.told(name, input).await;
        assert_eq!(told.lines().count(), lines, "{name}: {told}");
        assert!(named.iter().all(|named| told.contains(named)), "{name}: {told}");
    }
    let told = world.told("list", json!({})).await;
    assert_eq!(told.lines().count(), 6, "{told}");
    assert!(told.contains(r#""a\nb.rs""#) && told.contains(r#""d\ne"/"#) && told.contains(r#"link -> "to\nwhere""#), "{told}");
    let told = world.told("read", json!({"file_path": "no\nfile"})).await;
    assert_eq!(told.lines().count(), 1, "{told}");
}

/// Each nested directory may add rules, so their number is bounded for the whole chain.
#[tokio::test]
async fn ignore_rules_of_nested_directories_are_bounded_together() {
    let world = World::with_files(&[("a.txt", ""), ("d/b.txt", "")]);
    let most = nuncio::internal::limits::IGNORE_RULES_MAX;
    world.put(".gitignore", "x\n".repeat(most - 1));
    world.put("d/.gitignore", "# no rule\n\ny\nb.txt\n");
    let listed = world.told("glob", json!({"pattern": "**/*.txt"})).await;
    assert!(listed.contains("d/b.txt"), "the rule past the bound is skipped: {listed}");
    world.put(".gitignore", "x\n".repeat(most - 2));
    let listed = world.told("glob", json!({"pattern": "**/*.txt"})).await;
    assert!(!listed.contains("d/b.txt") && listed.contains("a.txt"), "{listed}");
}
