//! What lies outside the roots stays untouched, also when a link comes in between.

use std::os::unix::fs::symlink;
use std::path::Path;

use nuncio::workspace::{FileChange, commit, open};

use super::World;

fn put(real: &Path) -> FileChange<'_> {
    FileChange::Put { real, bytes: b"new", like: None }
}

#[test]
fn a_link_on_the_way_is_not_followed() {
    let world = World::with(&[("real/kept", "old")]);
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
