//! The tools `grep`, `glob` and `list`.

use super::*;

fn sources() -> World {
    World::with_files(&[
        (".gitignore", "target/\n*.log\n"),
        (".hidden/a.rs", "foo hidden\n"),
        ("target/a.rs", "foo built\n"),
        ("x.log", "foo logged\n"),
        ("src/a.rs", "fn foo() {}\nfn bar() {}\n// Foo\n"),
        ("src/b.rs", "one\ntwo\nfoo(1);\nfour\nfive\nsix\nfoo(2);\n"),
        ("doc/c.md", "foo\nbar\n"),
        ("doc/binary", "foo\0bar\n"),
    ])
}

#[tokio::test]
async fn grep_returns_matching_lines() {
    let world = sources();
    let cases = [
        (json!({"pattern": "foo"}), "ok doc/c.md:1:foo\nsrc/a.rs:1:fn foo() {}\nsrc/b.rs:3:foo(1);\nsrc/b.rs:7:foo(2);\n"),
        (json!({"pattern": "foo", "path": "src/a.rs"}), "ok src/a.rs:1:fn foo() {}\n"),
        (json!({"pattern": "foo", "path": ".hidden"}), "ok .hidden/a.rs:1:foo hidden\n"),
        (json!({"pattern": "foo", "-i": true, "path": "src/a.rs"}), "ok src/a.rs:1:fn foo() {}\nsrc/a.rs:3:// Foo\n"),
        (json!({"pattern": "foo", "output_mode": "files_with_matches"}), "ok doc/c.md\nsrc/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "foo", "output_mode": "count"}), "ok doc/c.md:1\nsrc/a.rs:1\nsrc/b.rs:2\n"),
        (json!({"pattern": "foo", "glob": "*.md"}), "ok doc/c.md:1:foo\n"),
        (json!({"pattern": "foo", "glob": "src/*.rs", "output_mode": "count"}), "ok src/a.rs:1\nsrc/b.rs:2\n"),
        (json!({"pattern": "foo", "type": "rust", "output_mode": "count"}), "ok src/a.rs:1\nsrc/b.rs:2\n"),
        (
            json!({"pattern": "foo\\(", "-A": 1, "path": "src/b.rs"}),
            "ok src/b.rs:3:foo(1);\nsrc/b.rs-4-four\n--\nsrc/b.rs:7:foo(2);\n",
        ),
        (json!({"pattern": "four", "-B": 1, "path": "src/b.rs"}), "ok src/b.rs-3-foo(1);\nsrc/b.rs:4:four\n"),
        (json!({"pattern": "four", "-C": "1", "path": "src/b.rs"}), "ok src/b.rs-3-foo(1);\nsrc/b.rs:4:four\nsrc/b.rs-5-five\n"),
        (json!({"pattern": "one.two", "multiline": true}), "ok src/b.rs:1:one\nsrc/b.rs:2:two\n"),
        (json!({"pattern": "^two$"}), "ok src/b.rs:2:two\n"),
        (json!({"pattern": "one\\ntwo"}), "ok src/b.rs:1:one\nsrc/b.rs:2:two\n"),
        (
            json!({"pattern": "foo", "head_limit": 2}),
            "ok doc/c.md:1:foo\nsrc/a.rs:1:fn foo() {}\n[the first 2 results; use a narrower pattern, path or glob]",
        ),
        (json!({"pattern": "nowhere"}), "ok no matches found\n"),
        (json!({"pattern": "foo", "path": "nowhere"}), "error searching nowhere: No such file or directory (os error 2)"),
        (json!({"pattern": "foo", "type": "klingon"}), "error type: there is no file type klingon; use glob, such as *.klingon"),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("grep", input.clone()).await, told, "{input}");
    }
    let literal = "ok no matches found\n[the pattern is no regular expression: its text was searched]";
    assert_eq!(world.told("grep", json!({"pattern": "nowhere("})).await, literal);
    let details = world.call("grep", json!({"pattern": "foo"})).await.unwrap().details;
    assert_eq!(details, json!({"files": 3, "matches": 4, "truncated": false}));
}

#[tokio::test]
async fn truncated_matches_are_always_the_first_ones() {
    let world = World::new();
    for number in 0..300 {
        world.put(&format!("{:03}", number), "foo\nfoo\n");
    }
    let expected: String = (0..125).map(|number| format!("{number:03}:1:foo\n{number:03}:2:foo\n")).collect();
    for _ in 0..5 {
        let told = world.told("grep", json!({"pattern": "foo", "head_limit": 1000})).await;
        assert_eq!(told, format!("ok {expected}[the first 250 results; use a narrower pattern, path or glob]"));
    }
    world.put("000", format!("foo {}\n", "x".repeat(600)));
    let told = world.told("grep", json!({"pattern": "foo", "path": "000"})).await;
    assert_eq!(told, format!("ok 000:1:foo {} [104 more bytes]\n", "x".repeat(496)));
}

#[tokio::test]
async fn glob_returns_matching_files() {
    let world = sources();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for (age, path) in [("src/b.rs", 3), ("src/a.rs", 2), ("doc/c.md", 1)].map(|(path, age)| (age, path)) {
        let file = std::fs::File::options().write(true).open(world.path(path)).unwrap();
        file.set_modified(old - std::time::Duration::from_secs(age)).unwrap();
    }
    let absolute = world.path("src").display().to_string();
    let cases = [
        (json!({"pattern": "*.rs"}), "ok src/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "**/*.{rs,md}"}), "ok doc/c.md\nsrc/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "src/*"}), "ok src/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "?.rs", "path": "src"}), "ok src/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": format!("{absolute}/a*")}), "ok src/a.rs\n"),
        (json!({"pattern": format!("{absolute}/a.rs")}), "ok src/a.rs\n"),
        (json!({"pattern": ".hidden/**"}), "ok .hidden/a.rs\n"),
        (json!({"pattern": "*.py"}), "ok no files found\n"),
        (json!({"pattern": "*", "path": "nowhere"}), "error searching nowhere: No such file or directory (os error 2)"),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("glob", input.clone()).await, told, "{input}");
    }
    assert!(world.told("glob", json!({"pattern": "{a"})).await.starts_with("error pattern: "));
    for number in 0..300 {
        world.put(&format!("many/{number}"), "");
    }
    let output = world.call("glob", json!({"pattern": "many/*"})).await.unwrap();
    assert_eq!(output.details, json!({"count": 300, "truncated": true}));
    assert!(plain_text(&output.parts).ends_with("[the 200 newest of 300 files; use a narrower pattern or path]"));
}

#[tokio::test]
async fn list_returns_a_directory_tree() {
    let world = sources();
    let root = world.path("").display().to_string();
    let tree = "  doc/\n    binary\n    c.md\n  src/\n    a.rs\n    b.rs\n";
    assert_eq!(world.told("list", json!({})).await, format!("ok {root}\n{tree}").replace("//", "/"));
    assert_eq!(world.told("list", json!({"depth": "1"})).await, format!("ok {root}\n  doc/\n  src/\n"));
    assert_eq!(world.told("list", json!({"path": "src"})).await, format!("ok {root}src/\n  a.rs\n  b.rs\n"));
    assert_eq!(world.told("list", json!({"path": "src/a.rs"})).await, "error listing src/a.rs: Not a directory (os error 20)");
    for number in 0..600 {
        world.put(&format!("many/{number}"), "");
    }
    let output = world.call("list", json!({})).await.unwrap();
    assert_eq!((&output.details["entries"], &output.details["truncated"]), (&json!(500), &json!(true)));
}

#[tokio::test]
async fn cancelled_search_reports_cancellation() {
    let world = sources();
    world.context.cancel.cancel();
    for (name, input) in [
        ("grep", json!({"pattern": "foo"})),
        ("glob", json!({"pattern": "*"})),
        ("list", json!({})),
        ("read", json!({"file_path": "src/a.rs"})),
    ] {
        assert_eq!(world.told(name, input).await, "error cancelled", "{name}");
    }
}

#[tokio::test]
async fn common_pattern_variants_are_accepted() {
    let world = World::with_files(&[("src/a.rs", "x\n"), ("src/b.ts", "x\n"), ("c.lock", "x\n")]);
    let cases = [
        ("./src/*.rs", "src/a.rs"),
        ("*.rs,*.ts", "src/a.rs src/b.ts"),
        ("*.{rs,ts}", "src/a.rs src/b.ts"),
        ("!*.lock", "src/a.rs src/b.ts"),
        ("src/**, !*.ts", "src/a.rs"),
    ];
    for (glob, files) in cases {
        let told = world.told("grep", json!({"pattern": "x", "glob": glob, "output_mode": "files_with_matches"})).await;
        assert_eq!(told, format!("ok {}\n", files.replace(' ', "\n")), "{glob}");
    }
    let told = world.told("grep", json!({"pattern": "x", "glob": "../*"})).await;
    assert_eq!(told, "error glob: ../* is outside the searched directory; pass that directory as path");
    world.put("sub/x", "");
    let told = world.told("glob", json!({"pattern": "../src/*.rs", "path": "sub"})).await;
    assert_eq!(told, "ok src/a.rs\n");
}
