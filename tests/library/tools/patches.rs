//! Patches of several files, in both formats.

use std::collections::BTreeMap;

use super::*;

/// Every file below the session's directory, and every directory with a final slash.
pub(super) fn tree(world: &World) -> BTreeMap<String, Vec<u8>> {
    fn gather(directory: &Path, name: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{name}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                gather(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    gather(&world.context.workspace.cwd, "", &mut found);
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let (entry, target) = (entry.unwrap().path(), to);
        let target = target.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            std::fs::copy(&entry, &target).unwrap();
        }
    }
}

/// Scenarios that overwrite an existing file, which nuncio refuses.
const DEPARTURES: [&str; 2] = ["010_move_overwrites_existing_destination", "011_add_overwrites_existing_file"];

#[tokio::test]
async fn public_scenarios_produce_expected_files() {
    let Some(fixtures) = std::env::var_os("NUNCIO_FIXTURES") else {
        eprintln!("NUNCIO_FIXTURES is not set: the scenarios were not tried");
        return;
    };
    let mut count = 0;
    for entry in std::fs::read_dir(Path::new(&fixtures).join("apply-patch")).unwrap() {
        let scenario = entry.unwrap().path();
        if !scenario.is_dir() {
            continue;
        }
        count += 1;
        let (world, wanted) = (World::new(), World::new());
        copy(&scenario.join("input"), &world.path(""));
        copy(&scenario.join("expected"), &wanted.path(""));
        let before = tree(&world);
        let patch = std::fs::read_to_string(scenario.join("patch.txt")).unwrap();
        let told = world.told("apply_patch", json!({ "patch": patch })).await;
        if DEPARTURES.iter().any(|name| scenario.ends_with(name)) {
            assert!(told.contains("exist") && tree(&world) == before, "{}: {told}", scenario.display());
            continue;
        }
        let files = |world: &World| tree(world).into_iter().filter(|(name, _)| !name.ends_with('/')).collect::<BTreeMap<_, _>>();
        assert_eq!(files(&world), files(&wanted), "{}: {told}", scenario.display());
        assert_eq!(told.starts_with("ok"), tree(&world) != before, "{}: {told}", scenario.display());
    }
    assert!(count > 20, "{count}");
}

/// Each case: a name, the content of file `f`, the hunks, and the new content or the error.
#[tokio::test]
async fn hunks_are_located_or_rejected() {
    let twice = "fn a() {\n    x();\n}\n\nfn b() {\n    x();\n}\n";
    let cases: &[(&str, &str, &str, Result<&str, &str>)] = &[
        ("the first may lack its @@", "a\nb\n", " a\n-b\n+c", Ok("a\nc\n")),
        ("other blanks", "\ta  =  1\n\tb\n", "@@\n a = 1\n-b\n+c\n+d", Ok("\ta  =  1\n\tc\n\td\n")),
        (
            "nearly the same block",
            "begin\n  some longer text hare\n  x\nend\n",
            "@@\n begin\n   some longer text here\n-  x\n+  y\n end",
            Ok("begin\n  some longer text hare\n  y\nend\n"),
        ),
        (
            "a line of context says which",
            twice,
            "@@ fn b() {\n-    x();\n+    y();",
            Ok("fn a() {\n    x();\n}\n\nfn b() {\n    y();\n}\n"),
        ),
        (
            "a context with other blanks",
            twice,
            "@@  fn  b()  {\n-    x();\n+    y();",
            Ok("fn a() {\n    x();\n}\n\nfn b() {\n    y();\n}\n"),
        ),
        (
            "the context counts before what is deeper",
            "a\nb\n  c\nc2\nb\n  c\n",
            "@@ a\n@@ b\n-  c\n+  d",
            Ok("a\nb\n  d\nc2\nb\n  c\n"),
        ),
        (
            "contexts inside each other",
            "class A\n  def f\n    x\nclass B\n  def f\n    x\n",
            "@@ class B\n@@   def f\n-    x\n+    y",
            Ok("class A\n  def f\n    x\nclass B\n  def f\n    y\n"),
        ),
        ("the context itself changes", "a\nb\n", "@@ b\n-b\n+c", Ok("a\nc\n")),
        ("a line after the context", "a\nb\nc\n", "@@ a\n+x", Ok("a\nx\nb\nc\n")),
        ("lines at the end", "a", "@@\n+x", Ok("a\nx")),
        ("order says which", "x\ny\nx\n", "@@\n-x\n+1\n@@\n-x\n+2", Ok("1\ny\n2\n")),
        ("order and a fixed one between", "x\ny\nx\n", "@@\n-y\n+1\n@@\n-x\n+2", Ok("x\n1\n2\n")),
        ("the end says which", "x\ny\nx\n", "@@\n-x\n+1\n*** End of File", Ok("x\ny\n1\n")),
        ("numbers say which", "x\ny\nx\n", "@@ -3,1 +3,1 @@\n-x\n+1", Ok("x\ny\n1\n")),
        ("a bare line is a blank one", "a\n\nb\n", "@@\n a\n\n-b\n+c", Ok("a\n\nc\n")),
        ("bare lines at the end are none", "a\nb\n", "@@\n-a\n+c\n\n\n", Ok("c\nb\n")),
        ("CRLF", "a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", Ok("a\r\nc\r\nd\r\n")),
        ("a patch in CRLF", "a\nb\n", "@@\r\n a\r\n-b\r\n+c\r", Ok("a\nc\n")),
        ("one \\r of many", "a\r\nb\r\nc\r\n", "@@\n a\r\n-b\n+B\n+B2\n c", Ok("a\r\nB\r\nB2\r\nc\r\n")),
        ("a new \\r", "a\nb\nc\n", "@@\n a\n-b\n+B\r\n+B2\n c", Ok("a\nB\r\nB2\nc\n")),
        ("another ending", "a\r\nb\r\n", "@@\n a\r\n-b\r\n+b", Ok("a\r\nb\n")),
        ("a mark", "\u{feff}a\nb\n", "@@\n-a\n+c", Ok("\u{feff}c\nb\n")),
        ("no final newline", "a\nb", "@@\n-b\n+c", Ok("a\nc")),
        (
            "several places",
            twice,
            "@@\n-    x();\n+    y();",
            Err("the hunk matches 2 places, at lines 2, 6; add lines around it, or an `@@ line` with a line that precedes it"),
        ),
        (
            "several places of one of two",
            twice,
            "@@\n fn a() {\n@@\n-    x();\n+    y();",
            Err("hunk 2 matches 2 places, at lines 2, 6"),
        ),
        ("several places by context", "if a\n  x\n  x\n", "@@ if a\n-  x\n+  y", Err("the hunk matches 2 places, at lines 2, 3")),
        (
            "no place",
            "a\nb\n",
            "@@\n a\n-c\n+d",
            Err(
                "the hunk was not found; the nearest place is line 2, which is `b` where the patch has `c`; read the file and write the patch again",
            ),
        ),
        (
            "a block whose lines are shifted",
            "f {\nx();\ncall_0();\ncall_1();\ncall_2();\ncall_3();\ncall_4();\n}\n",
            "@@\n f {\n call_0();\n call_1();\n call_2();\n-call_3();\n+other();\n call_4();\n call_5();\n }",
            Err("the hunk was not found; the nearest place is line 2, which is `x();` where the patch has `f {`"),
        ),
        (
            "new lines in a block whose lines are shifted",
            "f {\ncall_1();\ncall_2();\ncall_3();\ncall_4();\ncall_5();\n}\n",
            "@@\n f {\n call_0();\n call_1();\n call_2();\n+other();\n call_3();\n call_4();\n }",
            Err("the hunk was not found"),
        ),
        ("no context", "a\n", "@@ fn x\n-a\n+b", Err("the hunk has an @@ line that is not in the file: `fn x`")),
        (
            "before its context",
            "a\nb\n",
            "@@ b\n-a\n+c",
            Err("the hunk was not found after its @@ line; use another @@ line, or omit it"),
        ),
        (
            "out of order",
            "a\nb\n",
            "@@\n-b\n+1\n@@\n-a\n+2",
            Err("hunk 2 matches only at line 1, which is before or inside the previous hunk"),
        ),
        ("nothing changes", "a\n", "@@\n-a\n+a", Err("the hunks change nothing")),
        ("only context", "a\n", "@@\n a", Err("the hunks change nothing")),
        ("no lines", "a\n", "@@\n@@ a", Err("line 4 of the patch: the hunk has no lines")),
        ("no sign", "a\n", "@@\n-a\nb", Err("line 5 of the patch: a line of a hunk must start with a space, - or +, found `b`")),
    ];
    for (name, before, hunks, after) in cases {
        let world = World::with_files(&[("f", before)]);
        let ending = if hunks.ends_with('\r') { "\r\n" } else { "\n" };
        let patch = format!("*** Begin Patch{ending}*** Update File: f{ending}{hunks}\n*** End Patch");
        let told = world.told("apply_patch", json!({ "patch": patch })).await;
        match after {
            Ok(after) => assert_eq!((told.split(' ').next(), world.text("f").as_str()), (Some("ok"), *after), "{name}: {told}"),
            Err(piece) => {
                assert!(
                    told.starts_with("error ") && told.contains(piece) && told.ends_with("; nothing was changed"),
                    "{name}: {told}"
                );
                assert_eq!(world.text("f"), *before, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn unified_diff_with_every_kind_of_change_is_applied() {
    let world =
        World::with_files(&[("a.txt", "1\n2\n3\n"), ("old name", "x\ny\n"), ("gone", "bye\n"), ("é", "e\n"), ("end", "a\nb")]);
    let patch = concat!(
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] all kinds\n---\n a.txt | 2 +-\n\n",
        "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\t2026-01-01\n+++ b/a.txt\t2026-01-02\n@@ -1,3 +1,3 @@ fn\n 1\n-2\n+zwei\n 3\n",
        "diff --git a/old name b/new/name\nsimilarity index 50%\nrename from old name\nrename to new/name\n--- a/old name\n+++ b/new/name\n@@ -2 +2 @@\n-y\n+z\n",
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
        "diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n",
        "diff --git \"a/\\303\\251\" \"b/\\303\\251\"\n--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n@@ -1 +1,2 @@\n e\n+f\n",
        "--- /dev/null\n+++ b/made\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
        "--- end\n+++ end\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n-- \n2.39.5\n\n",
    );
    let output = world.call("apply_patch", json!({ "patch": patch })).await.unwrap();
    let text = "applied the patch:\nupdate a.txt at line 2\nmove old name to new/name\ndelete gone\nadd empty\nupdate é at line 2\nadd made\nupdate end at line 2\n";
    assert_eq!(plain_text(&output.parts), text);
    let files = [
        ("a.txt", "1\nzwei\n3\n"),
        ("empty", ""),
        ("end", "a\nb\n"),
        ("made", "one\ntwo"),
        ("new/", ""),
        ("new/name", "x\nz\n"),
        ("é", "e\nf\n"),
    ];
    assert_eq!(tree(&world), files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into());
    let moved = &output.details["files"][1];
    let diff = "diff --git a/old name b/new/name\nrename from old name\nrename to new/name\n--- a/old name\n+++ b/new/name\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n";
    let details = json!({"filePath": world.path("new/name"), "kind": "move", "linesChanged": 1, "diff": diff, "from": world.path("old name")});
    assert_eq!(*moved, details);
    assert_eq!(output.content.len(), 7);
    let shown = ToolContent::Diff { path: world.path("new/name"), old_text: Some("x\ny\n".into()), new_text: "x\nz\n".into() };
    assert_eq!(output.content[1], shown);
}

#[tokio::test]
async fn miscounted_lines_and_wrappers_are_accepted() {
    let cases = [
        ("--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n@@ -40,1 +40,1 @@\n-d\n+D\n", "a\nB\nc\nD\n"),
        ("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n", "a\nB\nc\nd\n"),
        ("--- f\n+++ f\n@@ ... @@\n-b\n+B\n", "a\nB\nc\nd\n"),
        ("```diff\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n```\n", "a\nB\nc\nd\n"),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\nEOF\n", "a\nB\nc\nd\n"),
        (
            "*** Begin Patch\n*** Update File: f\n@@ -2,1 +2,1 @@\n-b\n+B\n*** End Patch\n*** Begin Patch\n*** Update File: f\n-c\n+C\n*** End Patch",
            "a\nB\nC\nd\n",
        ),
        ("*** Begin Patch\n*** Delete File: f\n*** Add File: f\n+new\n*** End Patch", "new\n"),
        ("*** Begin Patch\n*** Add File: g\n+new\n*** Delete File: g\n*** Update File: f\n-b\n*** End Patch", "a\nc\nd\n"),
    ];
    for (patch, after) in cases {
        let world = World::with_files(&[("f", "a\nb\nc\nd\n")]);
        let told = world.told("apply_patch", json!({ "input": patch })).await;
        assert_eq!((told.split(' ').next(), world.text("f").as_str()), (Some("ok"), after), "{patch}\n{told}");
        assert_eq!(tree(&world).len(), 1, "{patch}");
    }
}

/// Hunks for a file with the lines a to e. Lines that cannot be parsed are reported.
#[tokio::test]
async fn diff_is_parsed_completely_or_rejected() {
    let unsigned = "a line of a hunk must start with a space, - or +, found";
    let cut =
        "line 3 of the patch: the hunk has fewer lines than its header counts: the patch may be truncated; send the whole patch";
    let cases: &[(&str, Result<&str, String>)] = &[
        ("@@ -1,5 +1,5 @@\n a\n-b\n+B\nc\n-d\n+D\n e\n", Err(format!("line 7 of the patch: {unsigned} `c`"))),
        ("@@ -1,5 +1,5 @@\n a\n-b\n+B\nc\n d\n e\n", Err(format!("line 7 of the patch: {unsigned} `c`"))),
        ("@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n-d\n+D\n e\n", Err(format!("line 7 of the patch: {unsigned} `c`"))),
        ("@@\n a\n-b\n+B\nc\n-d\n+D\n", Err(format!("line 7 of the patch: {unsigned} `c`"))),
        ("@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n-d", Err(cut.into())),
        ("@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n-d\n", Err(cut.into())),
        ("@@ -1,5 +1,5 @@\n a\n-b\n+B\n```\n- that is all\n", Ok("a\nB\nc\nd\ne\n")),
        ("@@ -1,2 +1,2 @@\n a\n-b\n+B\nEOF\n", Ok("a\nB\nc\nd\ne\n")),
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n+B\n-- \n2.39.5\n\nFrom 12\nSubject: d\n\n- why\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n+D\n-- \n",
            Ok("a\nB\nc\nD\ne\n"),
        ),
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n+B\ncommit 12\nAuthor: me\n\n    why\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n+D\n",
            Ok("a\nB\nc\nD\ne\n"),
        ),
        ("@@ -2 +2 @@\n-b\n+B\nIndex: f\n=====\n--- a/f\n+++ b/f\n@@ -4 +4 @@\n-d\n+D\n", Ok("a\nB\nc\nD\ne\n")),
    ];
    let before = "a\nb\nc\nd\ne\n";
    for (hunks, after) in cases {
        let world = World::with_files(&[("f", before)]);
        let told = world.told("apply_patch", json!({ "patch": format!("--- a/f\n+++ b/f\n{hunks}") })).await;
        match after {
            Ok(after) => assert_eq!((told.split(' ').next(), world.text("f").as_str()), (Some("ok"), *after), "{hunks}\n{told}"),
            Err(why) => {
                assert!(told.starts_with(&format!("error {why}")), "{hunks}\n{told}");
                assert_eq!(world.text("f"), before, "{hunks}");
            }
        }
    }
}

#[tokio::test]
async fn invalid_patch_changes_nothing() {
    let cases = [
        ("", "nothing to apply: there is neither `*** Begin Patch` nor the `--- ` and `+++ ` lines of a unified diff"),
        (
            "*** Begin Patch\n*** Add File: a\n+1\n",
            "the patch does not end with `*** End Patch`: it may be truncated; send the whole patch",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n1\n*** End Patch",
            "line 3 of the patch: each line of a new file must start with +, found `1`",
        ),
        ("*** Begin Patch\n*** Add File:\n+1\n*** End Patch", "line 2 of the patch: the path is missing"),
        ("*** Begin Patch\n*** Move to: x\n*** End Patch", "line 2 of the patch: `*** Move to: x` is not inside a file section"),
        (
            "*** Begin Patch\n*** Add File: a\n+1\n*** End Patch\nand more",
            "line 5 of the patch: `and more` follows `*** End Patch`",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: none\n*** End Patch",
            "none: the file does not exist, so it cannot be deleted",
        ),
        ("*** Begin Patch\n*** Add File: a\n+1\n*** Update File: none\n@@\n-1\n*** End Patch", "none: the file does not exist"),
        ("*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: d\n*** End Patch", "d: reading d: it is a directory"),
        ("*** Begin Patch\n*** Update File: f\n*** Move to: d\n*** End Patch", "f: reading d: it is a directory"),
        (
            "*** Begin Patch\n*** Update File: f\n*** Move to: g\n*** Update File: f\n-1\n*** End Patch",
            "f: the patch moves this file and changes it again; put all of its changes into one section",
        ),
        ("*** Begin Patch\n*** Add File: f/x\n+1\n*** End Patch", "f/x: reading f/x: Not a directory (os error 20)"),
        ("--- a/f\n", "line 1 of the patch: `--- PATH` is not followed by `+++ PATH`"),
        ("--- a/f\n+++ b/f\n", "line 1 of the patch: f has no hunk: nothing would change"),
        (
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
            "line 2 of the patch: cannot set the mode 100644; use bash (chmod) for it",
        ),
        (
            "diff --git a/f b/f\nnew file mode 120000\n",
            "line 2 of the patch: cannot create a file of mode 120000, only 100644; use bash for it",
        ),
        (
            "diff --git a/f b/f\nBinary files a/f and b/f differ\n",
            "line 2 of the patch: cannot patch a binary file; use bash for it",
        ),
        (
            "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
            "f: the file has lines that the patch does not remove, so it is not deleted",
        ),
        ("--- /dev/null\n+++ b/n\n@@ -1 +1 @@\n 1\n", "line 1 of the patch: each line of a new file must start with +"),
    ];
    let world = World::with_files(&[("f", "1\n2\n"), ("d/x", "x")]);
    let before = tree(&world);
    for (patch, why) in cases {
        let told = world.told("apply_patch", json!({ "patch": patch })).await;
        assert_eq!(told, format!("error {why}; nothing was changed"), "{patch}");
        assert_eq!(tree(&world), before, "{patch}");
    }
    assert_eq!(world.told("apply_patch", json!({})).await, "error apply_patch: missing field `patch`; it takes patch: string");
}

#[tokio::test]
async fn patch_declares_all_paths_and_previews_its_changes() {
    let world = World::with_files(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    let patch =
        "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Delete File: b\n*** Update File: c\n*** Move to: ../d\n*** End Patch";
    let prepared = world.tools.prepare("apply_patch", json!({ "patch": patch }), &world.context).map_err(|error| error.0).unwrap();
    assert_eq!(prepared.access.paths, ["a", "b", "c", "../d"]);
    assert_eq!(prepared.resolved.iter().map(|placed| placed.inside).collect::<Vec<_>>(), [true, true, true, false]);
    let diff = |path: &str, old: &str, new: &str| ToolContent::Diff {
        path: world.context.workspace.resolve(path).path,
        old_text: Some(old.into()),
        new_text: new.into(),
    };
    let shown = [diff("a", "1\n", "2\n"), diff("b", "1\n", ""), diff("../d", "1\n", "1\n")];
    assert_eq!(prepared.preview(&world.context).await.unwrap(), shown);
    assert_eq!(world.text("a"), "1\n");
    let output = prepared.run(&world.context).await.unwrap();
    assert_eq!(output.content, shown);
    let kinds: Vec<&Value> = output.details["files"].as_array().unwrap().iter().map(|file| &file["kind"]).collect();
    assert_eq!(kinds, ["update", "delete", "move"]);
}
