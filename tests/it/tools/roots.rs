//! What lies outside the roots stays untouched, also when a link comes in between.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use nuncio::workspace::{open, open_parent, write_atomic};

use super::World;

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
        assert!(write_atomic(&path, b"new").is_err(), "{}", path.display());
        assert!(open_parent(&path, true).is_err(), "{}", path.display());
        assert!(open(&path).is_err(), "{}", path.display());
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.join("kept")).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(world.path("real")).unwrap().count(), 1);

    write_atomic(&world.path("a/b/c/new"), b"new").unwrap();
    assert_eq!(world.text("a/b/c/new"), "new");
    assert_eq!(open_parent(&world.path("no/file"), false).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!world.path("no").exists());
}
