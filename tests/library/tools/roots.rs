//! Files outside the roots stay unchanged, also when a path contains a link.

use std::os::unix::fs::symlink;
use std::path::Path;

use nuncio::internal::workspace::{FileChange, commit, open};
use serde_json::json;

use super::World;

fn put(real: &Path) -> FileChange<'_> {
    FileChange::Put { real, bytes: b"new", like: None }
}

#[test]
fn symlinked_directories_are_not_followed() {
    let world = World::with_files(&[("real/kept", "old")]);
    let outside = world.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "old").unwrap();
    symlink(&outside, world.path("out")).unwrap();
    symlink("real", world.path("in")).unwrap();
    symlink("/proc/self/root", world.path("magic")).unwrap();
    let through_proc = format!("magic{}/kept", outside.display());
    for path in ["out/kept", "out/new", "out/a/b/new", "in/kept", "in/a/new", &through_proc] {
        let path = world.path(path);
        for change in [put(&path), FileChange::Remove { real: &path }] {
            assert!(commit(&[change]).is_err(), "{}", path.display());
        }
        assert!(open(&path).is_err(), "{}", path.display());
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.join("kept")).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(world.path("real")).unwrap().count(), 1);

    commit(&[put(&world.path("a/b/c/new"))]).unwrap();
    assert_eq!(world.text("a/b/c/new"), "new");
}

#[tokio::test]
async fn unusual_names_are_written_or_rejected() {
    let world = World::with_files(&[("a.txt", "plain")]);
    let long = "x".repeat(300);
    for (path, written) in [
        ("a\nb", Some("a\nb")),
        ("-rf *", Some("-rf *")),
        ("...", Some("...")),
        ("dir//.//b/", Some("dir/b")),
        ("A.TXT", Some("A.TXT")),
        ("x\u{202e}txt", Some("x\u{202e}txt")),
        (&long, None),
        ("a\0b", None),
        ("a.txt/b", None),
        ("/proc/self/fd/0/x", None),
    ] {
        let told = world.told("write", json!({ "file_path": path, "content": "new" })).await;
        assert_eq!(told.starts_with("ok "), written.is_some(), "{path:?}: {told}");
        if let Some(written) = written {
            assert_eq!(world.text(written), "new", "{path:?}");
        }
    }
    assert_eq!(world.text("a.txt"), "plain");
    for path in [
        "/proc/self/cwd/x",
        "/proc/thread-self/root/etc/passwd",
        "/dev/fd/../root/etc/passwd",
        "//etc//passwd",
        "/proc/1/root/etc/passwd",
    ] {
        assert!(!world.context.workspace.resolve(path).inside, "{path}");
    }
    // A path through /proc to a file inside is resolved to the real path and is inside.
    let magic = world.context.workspace.resolve(&format!("/proc/self/root{}", world.path("a.txt").display()));
    assert_eq!((magic.real, magic.inside), (world.path("a.txt"), true));
}
