//! The tools `read`, `write` and `edit`.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[tokio::test]
async fn read_shows_text_and_rejects_other_files() {
    let world =
        World::with_files(&[("empty", ""), ("crlf", "a\r\nb"), ("sub/x.txt", ""), ("marked", "\u{feff}a\n"), ("blank", "\n\n")]);
    world.put("latin", b"caf\xe9\n");
    world.put("binary", b"\x7fELF\0\0");
    world.put("wide", b"\xff\xfea\0\n\0\xe9\0\n\0");
    world.put("big-endian", b"\xfe\xff\0a\0\n\0b");
    let cases = [
        ("empty", "ok [the file is empty]"),
        ("crlf", "ok      1\ta\n     2\tb\n"),
        ("blank", "ok      1\t\n     2\t\n"),
        ("marked", "ok      1\ta\n"),
        ("wide", "ok      1\ta\n     2\té\n"),
        ("big-endian", "ok      1\ta\n     2\tb\n"),
        ("latin", "ok      1\tcaf\u{fffd}\n[not valid UTF-8: invalid bytes are shown as \u{fffd}]"),
        ("binary", "error binary is a binary file; use bash to look into it (file, xxd, strings)"),
        ("sub", "error sub is a directory; use list to see what is in it"),
        ("none", "error none does not exist"),
        ("sub/X.md", "error sub/X.md does not exist (did you mean x.txt?)"),
        ("/dev/zero", "error reading /dev/zero: it is not a regular file"),
    ];
    for (path, told) in cases {
        assert_eq!(world.told("read", json!({ "file_path": path })).await, told, "{path}");
    }
    // A small file is returned whole.
    let past = world.told("read", json!({"file_path": "crlf", "offset": 3})).await;
    assert_eq!(past, "ok      1\ta\n     2\tb\n");
}

#[tokio::test]
async fn read_is_bounded() {
    let world = World::new();
    world.put("many", (1..=6000).map(|number| format!("{number}\n")).collect::<String>());
    let output = world.call("read", json!({"file_path": "many", "limit": 9000})).await.unwrap();
    let expected = json!({"filePath": world.path("many"), "totalLines": 6000, "linesRead": 5000, "offset": 1, "truncated": true});
    assert_eq!(output.details, expected);
    assert!(plain_text(&output.parts).ends_with("  5000\t5000\n[truncated: lines 1 to 5000 of 6000; read on with offset 5001]"));

    world.put("wide", format!("{}é\nend\n", "x".repeat(8191)));
    let told = world.told("read", json!({"file_path": "wide"})).await;
    assert_eq!(
        told,
        format!(
            "ok      1\t{} [2 more bytes in this line; read on with offset 1 and skip_bytes 8191]\n     2\tend\n",
            "x".repeat(8191)
        )
    );

    world.put("heavy", format!("{}\n", "x".repeat(8000)).repeat(200));
    let output = world.call("read", json!({"file_path": "heavy"})).await.unwrap();
    assert_eq!((&output.details["linesRead"], &output.details["truncated"]), (&json!(8), &json!(true)));
}

#[tokio::test]
async fn read_finds_lines_at_any_offset() {
    let world = World::new();
    // Lines of different lengths, in more bytes than one buffer holds.
    let lines: Vec<String> = (1..=30_000).map(|number| format!("{number} {}", "x".repeat(number * 7 % 61))).collect();
    for (path, end, mark) in [("fed", "\n", ""), ("unfed", "", ""), ("marked", "", "\u{feff}")] {
        world.put(path, format!("{mark}{}{end}", lines.join("\n")));
        for offset in [1, 2, 6_000, 12_345, 29_999, 30_000] {
            let output = world.call("read", json!({"file_path": path, "offset": offset, "limit": 1})).await.unwrap();
            let shown = format!("{offset:>6}\t{}\n", lines[offset - 1]);
            assert!(plain_text(&output.parts).starts_with(&shown), "{path} {offset}: {output:?}");
            assert_eq!(output.details["totalLines"], 30_000, "{path} {offset}");
        }
        let told = world.told("read", json!({"file_path": path, "offset": 30_001})).await;
        assert_eq!(told, format!("error {path} has 30000 lines: there is no line 30001"));
    }
    world.put(
        "wide",
        "a\nb\nc".encode_utf16().flat_map(u16::to_be_bytes).fold(vec![0xfe, 0xff], |mut all, byte| {
            all.push(byte);
            all
        }),
    );
    let told = world.told("read", json!({"file_path": "wide", "offset": 2, "limit": 1})).await;
    assert_eq!(told, "ok      1\ta\n     2\tb\n     3\tc\n");
}

#[tokio::test]
async fn read_returns_images() {
    let world = World::new();
    world.put("a.png", b"\x89PNG\r\n\x1a\nrest");
    let output = world.call("read", json!({"file_path": "a.png"})).await.unwrap();
    assert_eq!(output.parts[1], Part::Image { mime_type: "image/png".into(), data: "iVBORw0KGgpyZXN0".into() });
    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize((5 << 20) + 1, 0);
    world.put("b.png", large);
    assert!(world.told("read", json!({"file_path": "b.png"})).await.starts_with("error b.png is an image of more than 5 MiB"));
}

#[tokio::test]
async fn write_creates_and_replaces_files() {
    let world = World::new();
    let output = world.call("write", json!({"file_path": "new/dir/a.txt", "content": "one\n"})).await.unwrap();
    let path = world.path("new/dir/a.txt");
    let diff = "--- /dev/null\n+++ b/new/dir/a.txt\n@@ -0,0 +1 @@\n+one\n";
    assert_eq!(output.details, json!({"filePath": path, "size": 4, "isNew": true, "diff": diff}));
    assert_eq!(output.content, [ToolContent::Diff { path: path.clone(), old_text: None, new_text: "one\n".into() }]);
    assert_eq!(plain_text(&output.parts), "created new/dir/a.txt (4 bytes)");

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let output = world.call("write", json!({"file_path": path, "content": "two\n"})).await.unwrap();
    assert_eq!(output.details["isNew"], false);
    assert_eq!(world.text("new/dir/a.txt"), "two\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!(std::fs::read_dir(world.path("new/dir")).unwrap().count(), 1);

    let error = world.told("write", json!({"file_path": "new", "content": ""})).await;
    assert_eq!(error, "error reading new: it is a directory");
    let error = world.told("write", json!({"file_path": "new/dir/a.txt/b", "content": ""})).await;
    assert_eq!(error, "error reading new/dir/a.txt/b: Not a directory (os error 20)");
}

#[tokio::test]
async fn paths_resolve_through_symlinks() {
    let world = World::with_files(&[("real.txt", "old"), ("sub/x", "")]);
    symlink("real.txt", world.path("link")).unwrap();
    world.call("write", json!({"file_path": "link", "content": "new"})).await.unwrap();
    assert_eq!(world.text("real.txt"), "new");
    assert!(std::fs::symlink_metadata(world.path("link")).unwrap().is_symlink());

    symlink(world.directory.path(), world.path("out")).unwrap();
    symlink("sub", world.path("in")).unwrap();
    symlink("loop", world.path("loop")).unwrap();
    let root = world.context.workspace.cwd.clone();
    let outside = root.parent().unwrap().to_owned();
    let cases: [(&str, PathBuf, bool); 14] = [
        ("a", root.join("a"), true),
        (".", root.clone(), true),
        ("", root.clone(), true),
        ("none/at/all", root.join("none/at/all"), true),
        ("sub/../x", root.join("x"), true),
        ("../x", outside.join("x"), false),
        ("in/new", root.join("sub/new"), true),
        ("in/../y", root.join("y"), true),
        ("out/x", outside.join("x"), false),
        ("out/../x", outside.parent().unwrap().join("x"), false),
        ("sub/../../work/z", root.join("z"), true),
        ("/proc/self/root/etc/passwd", PathBuf::from("/etc/passwd"), false),
        ("~/x", root.join("~/x"), true),
        ("/", PathBuf::from("/"), false),
    ];
    for (path, real, inside) in cases {
        let placed = world.context.workspace.resolve(path);
        assert_eq!((placed.real, placed.inside), (real, inside), "{path}");
    }
    assert!(!world.context.workspace.resolve("loop/x").inside);
    assert!(world.context.workspace.resolve("../artifacts/a").artifact);
    let at_home = Workspace::clone(&world.context.workspace).home(Some(Path::new("/home/someone").into()));
    assert_eq!(at_home.resolve("~/x").path, Path::new("/home/someone/x"));
    assert_eq!(at_home.show(Path::new("/home/someone/x")), "~/x");
}

#[tokio::test]
async fn call_fails_when_its_path_resolves_elsewhere_after_the_check() {
    let world = World::with_files(&[("in/f", "old")]);
    symlink("in", world.path("link")).unwrap();
    let input = json!({"file_path": "link/f", "content": "new"});
    let prepared = world.tools.prepare("write", input, &world.context).map_err(|error| error.0).unwrap();
    assert!(prepared.resolved[0].inside);
    std::fs::remove_file(world.path("link")).unwrap();
    symlink(world.directory.path(), world.path("link")).unwrap();
    let error = prepared.run(&world.context).await.unwrap_err();
    assert!(error.0.starts_with("link/f resolved to "), "{error}");
    assert!(!world.directory.path().join("f").exists());
}

#[tokio::test]
async fn edit_replaces_text_and_explains_failures() {
    let cases = [
        ("a\nb\nc\n", json!({"old_string": "b", "new_string": "B"}), "a\nB\nc\n", "ok edited f at line 2"),
        (
            "a a a",
            json!({"old_string": "a", "new_string": "b", "replace_all": "true"}),
            "b b b",
            "ok edited f at 3 places, the first at line 1",
        ),
        ("a\r\nb\r\nc", json!({"old_string": "a\nb", "new_string": "x\ny\nz"}), "x\r\ny\r\nz\r\nc", "ok edited f at line 1"),
        ("a\r\nb\r\n", json!({"old_string": "a\r\n", "new_string": ""}), "b\r\n", "ok edited f at line 1"),
        ("a\nb\n", json!({"old_string": "a\r\nb", "new_string": "x\r\ny"}), "x\ny\n", "ok edited f at line 1"),
        ("a\nb\r\nc\n", json!({"old_string": "b\nc", "new_string": "B\nC"}), "a\nB\r\nC\n", "ok edited f at line 2"),
        ("a\r\nb\nc\r\n", json!({"old_string": "c", "new_string": "d"}), "a\r\nb\nd\r\n", "ok edited f at line 3"),
        ("\u{feff}a\n", json!({"old_string": "a", "new_string": "b"}), "\u{feff}b\n", "ok edited f at line 1"),
        ("", json!({"old_string": "", "new_string": "new"}), "new", "ok edited f at line 1"),
        (
            "a",
            json!({"old_string": "", "new_string": "new"}),
            "a",
            "error old_string is empty, but f has content; give the text to replace",
        ),
        (
            "a",
            json!({"old_string": "a", "new_string": "a"}),
            "a",
            "error old_string and new_string are identical: there is nothing to change",
        ),
        (
            "x\na\nb a\n",
            json!({"old_string": "a", "new_string": "c"}),
            "x\na\nb a\n",
            "error old_string was found 2 times in f, at lines 2, 3; add lines around it until it is unique, or set replace_all\nLines 1 to 3:\nx\na\nb a",
        ),
        (
            "fn one() {\n    let value = 1;\n",
            json!({"old_string": "let valeu = 1;", "new_string": ""}),
            "fn one() {\n    let value = 1;\n",
            "error old_string was not found in f; the nearest place is line 2, which is `let value = 1;` where old_string has `let valeu = 1;`; copy the text exactly\nLines 1 to 2:\nfn one() {\n    let value = 1;",
        ),
        (
            "a",
            json!({"old_string": "zzz", "new_string": ""}),
            "a",
            "error old_string was not found in f; read the file and copy the text exactly",
        ),
    ];
    for (before, mut input, after, told) in cases {
        let world = World::with_files(&[("f", before)]);
        input["file_path"] = json!("f");
        assert_eq!(world.told("edit", input.clone()).await, told, "{input}");
        assert_eq!(world.text("f"), after, "{input}");
    }
    let world = World::new();
    world.put("latin", b"caf\xe9 one\n");
    world.call("edit", json!({"file_path": "latin", "old_string": "one", "new_string": "two"})).await.unwrap();
    assert_eq!(world.bytes("latin"), b"caf\xe9 two\n");
    let told = world.told("edit", json!({"file_path": "none", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(told, "error none does not exist");
    assert_eq!(
        world.told("edit", json!({"file_path": "made/f", "old_string": "", "new_string": "x"})).await,
        "ok edited made/f at line 1"
    );
}

#[tokio::test]
async fn edit_previews_and_reports_its_changes() {
    let world = World::with_files(&[("f", "a\nb\nc\n")]);
    let input = json!({"file_path": "f", "old_string": "b\n", "new_string": "x\ny\n"});
    let shown = [ToolContent::Diff { path: world.path("f"), old_text: Some("a\nb\nc\n".into()), new_text: "a\nx\ny\nc\n".into() }];
    let prepared = world.tools.prepare("edit", input, &world.context).map_err(|error| error.0).unwrap();
    assert_eq!(prepared.access.paths, ["f"]);
    assert_eq!(prepared.preview(&world.context).await.unwrap(), shown);
    assert_eq!(world.text("f"), "a\nb\nc\n");
    let output = prepared.run(&world.context).await.unwrap();
    let diff = "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n";
    let details = json!({"filePath": world.path("f"), "strategy": "exact", "matchCount": 1, "linesChanged": 2, "diff": diff});
    assert_eq!(output.details, details);
    assert_eq!(output.content, shown);
    assert_eq!(output.locations[0].line, Some(2));
}

#[tokio::test]
async fn file_changed_since_read_is_stale() {
    let world = World::with_files(&[("f", "a\n")]);
    let edit = json!({"file_path": "f", "old_string": "b", "new_string": "c"});
    world.call("read", json!({"file_path": "f"})).await.unwrap();
    world.put("f", "b and more\n");
    let stale = "error stale: f changed since it was read; read it again";
    assert_eq!(world.told("edit", edit.clone()).await, stale);
    assert_eq!(world.told("write", json!({"file_path": "f", "content": "x"})).await, stale);
    assert_eq!(world.text("f"), "b and more\n");
    world.call("read", json!({"file_path": "f"})).await.unwrap();
    assert_eq!(world.told("edit", edit).await, "ok edited f at line 1");
    assert_eq!(world.told("edit", json!({"file_path": "f", "old_string": "c", "new_string": "d"})).await, "ok edited f at line 1");
}

#[tokio::test]
async fn concurrent_edits_of_one_file_are_serialized() {
    let world = World::with_files(&[("f", &(0..20).map(|number| format!("line {number};\n")).collect::<String>())]);
    let edits = (0..20).map(|number| {
        world.call(
            "edit",
            json!({"file_path": "f", "old_string": format!("line {number};"), "new_string": format!("done {number};")}),
        )
    });
    for edited in futures_util::future::join_all(edits).await {
        edited.unwrap();
    }
    assert_eq!(world.text("f"), (0..20).map(|number| format!("done {number};\n")).collect::<String>());
}
