//! Files of slash commands are read again only after a change.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use serde_json::{Value, json};

use harness::Home;

/// Number of turns after which files are old enough to be known.
const TURNS_MAX: usize = 50;

/// Reports which of some directories and files were opened or read.
struct OpenWatch {
    inotify: OwnedFd,
    watched: Vec<(i32, String)>,
}

impl OpenWatch {
    fn watch(home: &Home, paths: &[&str]) -> OpenWatch {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let watch = |path: &&str| {
            let watched = inotify::add_watch(&inotify, home.work().join(path), WatchFlags::OPEN | WatchFlags::ACCESS).unwrap();
            (watched, path.to_string())
        };
        let watched = paths.iter().map(watch).collect();
        OpenWatch { inotify, watched }
    }

    /// Returns the paths that were opened since the last call.
    fn paths(&self) -> Vec<String> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut paths = Vec::new();
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            let (_, path) = self.watched.iter().find(|(watched, _)| *watched == event.wd()).unwrap();
            let name = event.file_name().map(|name| format!("/{}", name.to_string_lossy())).unwrap_or_default();
            paths.push(format!("{path}{name}"));
        }
        paths
    }
}

#[tokio::test]
async fn prompt_in_an_unchanged_project_opens_no_file_of_commands() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put(".nuncio/commands/git/fix.md", "Fix.");
    home.put(".claude/skills/paint/SKILL.md", "Paint.");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let directories =
        [".", ".nuncio", ".nuncio/commands", ".nuncio/commands/git", ".claude", ".claude/skills", ".claude/skills/paint"];
    let opened = OpenWatch::watch(&home, &directories);
    // Files that changed just before they were read are read again, until they are old enough.
    let mut read = Vec::new();
    for _ in 0..TURNS_MAX {
        agent.turn(&session, "go").await;
        read = opened.paths();
        if read.is_empty() {
            break;
        }
    }
    assert_eq!(read, [""; 0]);
    home.put(".nuncio/commands/new.md", "New.");
    agent.turn(&session, "go").await;
    assert!(opened.paths().contains(&".nuncio/commands/new.md".to_owned()));
    agent.finish().await;
}

/// The description of a command in the latest list.
fn description(updates: &[Value], name: &str) -> Option<String> {
    let list = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    let command = list["availableCommands"].as_array().unwrap().iter().find(|command| command["name"] == name)?;
    Some(command["description"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn each_change_of_command_files_is_noticed() {
    type Change = fn(&Path);
    fn write(path: impl AsRef<Path>, text: &str) {
        fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let changes: &[(Change, &str, Option<&str>)] = &[
        (|work| write(work.join(".nuncio/commands/fix.md"), "Fix"), "fix", Some("Fix")),
        // The new content has the same size, and the times of the file can be the same.
        (|work| write(work.join(".nuncio/commands/fix.md"), "Mix"), "fix", Some("Mix")),
        (|work| write(work.join(".nuncio/commands/git/push.md"), "Push"), "git:push", Some("Push")),
        (|work| fs::rename(work.join(".nuncio/commands/git"), work.join(".nuncio/commands/hg")).unwrap(), "git:push", None),
        (|work| fs::remove_file(work.join(".nuncio/commands/fix.md")).unwrap(), "fix", None),
        (|work| fs::create_dir_all(work.join(".claude/skills/paint")).unwrap(), "paint", None),
        (|work| write(work.join(".claude/skills/paint/SKILL.md"), "Paint"), "paint", Some("Paint")),
        (|work| write(work.join("other/SKILL.md"), "Other"), "other", None),
        (|work| std::os::unix::fs::symlink(work.join("other"), work.join(".claude/skills/other")).unwrap(), "other", Some("Other")),
        (|work| write(work.join("other/SKILL.md"), "Third"), "other", Some("Third")),
        (|work| write(work.join("../home/commands/own.md"), "Own"), "own", Some("Own")),
        (|work| write(work.join("../.claude/commands/mine.md"), "Mine"), "mine", Some("Mine")),
        (|work| fs::rename(work.join(".claude"), work.join(".codex")).unwrap(), "paint", None),
        // The parent directory becomes a repository, so that its commands are listed.
        (|work| write(work.join("../.nuncio/commands/above.md"), "Above"), "above", None),
        (|work| write(work.join("../.git/HEAD"), "ref: refs/heads/main\n"), "above", Some("Above")),
    ];
    let home = Home::new();
    let (mut agent, session) = home.session(json!(vec![json!({"text": "ok"}); changes.len()]), &[]).await;
    for (index, (change, name, expected)) in changes.iter().enumerate() {
        change(&home.work());
        agent.turn(&session, "go").await;
        assert_eq!(description(&agent.updates(&session), name).as_deref(), *expected, "change {index}: {name}");
    }
    agent.finish().await;
}
