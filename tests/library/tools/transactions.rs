//! Changes of several files: either all of them are made or none.

use std::os::unix::fs::{PermissionsExt, symlink};

use nuncio::internal::workspace::{FileChange, commit};

use super::patches::tree;
use super::*;
use harness::{Home, bounded};

/// A patch that updates, adds, moves and deletes twenty files, followed by the section `last`.
fn twenty_and(last: &str) -> (World, String) {
    let world = World::new();
    let mut patch = String::from("*** Begin Patch\n");
    for number in 0..20 {
        world.put(&format!("f{number}"), "old\n");
        patch.push_str(&match number % 4 {
            0 => format!("*** Update File: f{number}\n@@\n-old\n+new\n"),
            1 => format!("*** Add File: made/deep{number}/f\n+new\n"),
            2 => format!("*** Update File: f{number}\n*** Move to: moved{number}/f\n"),
            _ => format!("*** Delete File: f{number}\n"),
        });
    }
    (world, format!("{patch}{last}*** End Patch\n"))
}

#[tokio::test]
async fn no_file_changes_when_last_hunk_is_not_found() {
    let (world, patch) = twenty_and("*** Update File: f1\n@@\n-none\n+new\n");
    let before = tree(&world);
    let told = world.told("apply_patch", json!({ "patch": patch })).await;
    assert!(told.starts_with("error f1: the hunk was not found"), "{told}");
    assert_eq!(tree(&world), before);
}

/// The last name is too long for the file system, which fails only after the other files are
/// written.
#[tokio::test]
async fn no_file_changes_when_last_file_cannot_be_written() {
    let long = "x".repeat(300);
    let (world, patch) = twenty_and(&format!("*** Add File: other/{long}/f\n+new\n"));
    std::fs::set_permissions(world.path("f0"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = tree(&world);
    let told = world.told("apply_patch", json!({ "patch": patch })).await;
    // glibc and musl have different texts.
    let reason = rustix::io::Errno::NAMETOOLONG.to_string();
    assert!(told.starts_with("error ") && told.contains(reason.split(" (os").next().unwrap()), "{told}");
    assert_eq!(tree(&world), before);
    assert_eq!(std::fs::metadata(world.path("f0")).unwrap().permissions().mode() & 0o777, 0o640);
}

/// A limit on the file size simulates a full disk: only the last file exceeds it.
#[tokio::test]
async fn no_file_changes_when_disk_is_full() {
    let (world, patch) = twenty_and(&format!("*** Add File: huge\n{}", "+a long line of a long file\n".repeat(400_000)));
    let before = tree(&world);
    let (home, input) = (Home::new(), json!({ "patch": patch }).to_string());
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", r#"trap '' XFSZ; ulimit -f 8192; exec "$0" tool apply_patch --mode auto -"#, harness::program()]);
    shell.current_dir(world.path("")).env("HOME", home.data()).envs(home.variables());
    shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = bounded("apply_patch", child.wait_with_output()).await.unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["output"], "writing huge: File too large (os error 27); nothing was changed");
    assert_eq!(tree(&world), before);
}

/// The commit fails at a rename, because the path became a directory after the change was prepared.
/// A second change of the same commit, below that path, creates the directory.
#[test]
fn failed_commit_restores_replaced_files() {
    let world = World::with_files(&[("a", "old a"), ("b", "old b"), ("c", "old c")]);
    std::fs::set_permissions(world.path("a"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let before = tree(&world);
    let (a, b, c, made, clash, inner) =
        (world.path("a"), world.path("b"), world.path("c"), world.path("made/new"), world.path("clash"), world.path("clash/inner"));
    // `clash` is both a file and the parent directory of `inner`.
    let changes = [
        FileChange::Put { real: &a, bytes: b"new a", like: None },
        FileChange::Remove { real: &b },
        FileChange::Put { real: &made, bytes: b"made", like: Some(&a) },
        FileChange::Put { real: &c, bytes: b"new c", like: None },
        FileChange::Put { real: &clash, bytes: b"file", like: None },
        FileChange::Put { real: &inner, bytes: b"inner", like: None },
    ];
    let failed = commit(&changes).unwrap_err();
    assert_eq!((failed.real.as_path(), failed.error.kind()), (clash.as_path(), std::io::ErrorKind::AlreadyExists));
    assert!(failed.left.is_empty(), "{failed:?}");
    assert_eq!(tree(&world), before);
    assert_eq!(std::fs::metadata(&a).unwrap().permissions().mode() & 0o7777, 0o751);

    commit(&changes[..4]).unwrap();
    let after = [("a", "new a"), ("c", "new c"), ("made/", ""), ("made/new", "made")];
    assert_eq!(tree(&world), after.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into());
    for file in [&a, &made] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o7777, 0o751);
    }
}

#[tokio::test]
async fn commit_does_not_follow_symlinked_directories() {
    let world = World::with_files(&[("real", "1\n"), ("d/x", "")]);
    symlink("real", world.path("link")).unwrap();
    let patch = "*** Begin Patch\n*** Update File: link\n@@\n-1\n+2\n*** End Patch";
    world.call("apply_patch", json!({ "patch": patch })).await.unwrap();
    assert_eq!(world.text("real"), "2\n");
    symlink(world.path("d"), world.path("in")).unwrap();
    let new = world.path("in/deep/new");
    let change = nuncio::internal::workspace::FileChange::Put { real: &new, bytes: b"", like: None };
    assert!(nuncio::internal::workspace::commit(&[change]).is_err());
    assert!(!world.path("d/deep").exists());
}

#[tokio::test]
async fn patch_of_file_changed_since_read_is_stale() {
    let world = World::with_files(&[("a", "1\n"), ("b", "1\n")]);
    world.call("read", json!({"file_path": "b"})).await.unwrap();
    world.put("b", "1 and more\n");
    let stale = "stale: b changed since it was read; read it again";
    for (section, expected) in [
        ("*** Delete File: b\n", stale),
        ("*** Update File: b\n-1 and more\n+2\n", stale),
        ("*** Add File: b\n+2\n", "b: the file exists"),
        ("*** Update File: a\n*** Move to: b\n", "b exists, so no file is moved there"),
    ] {
        let patch = format!("*** Begin Patch\n*** Add File: c\n+1\n{section}*** End Patch");
        let told = world.told("apply_patch", json!({ "patch": patch })).await;
        assert!(told.contains(expected), "{told}");
        assert_eq!(tree(&world).len(), 2);
    }
    world.call("read", json!({"file_path": "b"})).await.unwrap();
    let patch = "*** Begin Patch\n*** Update File: b\n-1 and more\n+2\n*** End Patch";
    world.call("apply_patch", json!({ "patch": patch })).await.unwrap();
    world.call("apply_patch", json!({ "patch": patch.replace("1 and more", "2").replace("+2", "+3") })).await.unwrap();
    assert_eq!(world.text("b"), "3\n");
}

#[tokio::test]
async fn concurrent_patches_of_same_files_are_serialized() {
    let world = World::with_files(&[("a", "0\n"), ("b", "0\n")]);
    let patches = (0..10).map(|number| {
        let (first, second) = if number % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let section = |file: &str| format!("*** Update File: {file}\n@@\n+{number}\n");
        let patch = format!("*** Begin Patch\n{}{}*** End Patch", section(first), section(second));
        world.call("apply_patch", json!({ "patch": patch }))
    });
    for patched in futures_util::future::join_all(patches).await {
        patched.unwrap();
    }
    assert_eq!(world.text("a").lines().count(), 11);
    assert_eq!(world.text("a"), world.text("b"));
}

/// Both changes are prepared while the file does not exist. The first one then creates the file,
/// like another process that creates it concurrently.
#[test]
fn concurrently_created_file_is_not_replaced() {
    let world = World::new();
    let (real, other) = (world.path("new"), world.path("other"));
    let put = |real, bytes| FileChange::Put { real, bytes, like: None };
    let failed = commit(&[put(&other, b"x"), put(&real, b"theirs"), put(&real, b"ours")]).unwrap_err();
    assert_eq!((failed.real.as_path(), failed.error.kind()), (real.as_path(), std::io::ErrorKind::AlreadyExists));
    assert!(failed.left.is_empty());
    assert!(tree(&world).is_empty());
    commit(&[put(&real, b"ours")]).unwrap();
    assert_eq!(std::fs::read(&real).unwrap(), b"ours");
}

/// Files that a killed process left are removed by the next change in the directory, unless another
/// process changes files there.
#[tokio::test]
async fn left_temporary_files_are_removed() {
    let world = World::new();
    let id = "0123456789abcdef0123456789abcdef";
    let left = [format!(".nuncio-{id}"), format!(".nuncio-{id}-former")];
    let others = [".nuncio".to_owned(), ".nuncio-notes".into(), format!(".nuncio-{id}x"), format!("x.nuncio-{id}")];
    let put = || left.iter().chain(&others).for_each(|name| world.put(name, "x"));
    let there = |name: &String| world.path(name).exists();
    let path = world.path("new");
    let change = |bytes: &[u8]| commit(&[FileChange::Put { real: &path, bytes, like: None }]).unwrap();
    put();
    change(b"1");
    assert!(!left.iter().any(there) && others.iter().all(there));
    put();
    let other = std::fs::File::open(world.path("")).unwrap();
    other.lock_shared().unwrap();
    change(b"2");
    assert!(left.iter().chain(&others).all(there), "another process works there");
    // A process that another test is starting may still hold a copy of the descriptor.
    other.unlock().unwrap();
    change(b"3");
    assert!(!left.iter().any(there) && others.iter().all(there));
    assert_eq!(std::fs::read(&path).unwrap(), b"3");
}
