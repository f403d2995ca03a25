//! Instruction files: the files that are included in the system prompt.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use harness::Home;
use harness::provider::Exchange;
use harness::provider::session;
use harness::wires::WIRES;

/// Maximum duration of a run; a longer run hangs.
const BOUND: Duration = Duration::from_secs(8);

/// Returns the first request of a prompt in `cwd` as text. `prepare` creates the files.
async fn request(cwd: &str, prepare: impl FnOnce(&Home)) -> String {
    let wire = &WIRES[0];
    let (home, provider, _) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put(&format!("{cwd}/a.txt"), "");
    prepare(&home);
    let ran = tokio::time::timeout(BOUND, home.run(&["run", "--cwd", cwd, "go"], "")).await;
    let ran = ran.unwrap_or_else(|_| panic!("nothing came for {BOUND:?}"));
    assert_eq!(ran.code, 0, "{ran:?}");
    provider.finish().await[0].body.to_string()
}

fn link(home: &Home, name: &str, to: impl AsRef<Path>) {
    symlink(to, home.work().join(name)).unwrap();
}

const SECRET: &str = "xyzzy-opens-the-cave";

#[tokio::test]
async fn link_to_file_outside_repository_is_not_read() {
    type Prepare = fn(&Home);
    let cases: &[(&str, &str, Prepare)] = &[
        ("a file beside it", SECRET, |home| link(home, "AGENTS.md", "../secret.txt")),
        ("a file by its absolute path", SECRET, |home| link(home, "CLAUDE.md", home.work().join("../secret.txt"))),
        ("the environment", "NUNCIO_HOME=", |home| link(home, "AGENTS.md", "/proc/self/environ")),
        ("by way of a directory", SECRET, |home| {
            link(home, ".nuncio", "../beside");
        }),
    ];
    let mut told_of = Vec::new();
    for (name, secret, prepare) in cases {
        let told = request(".", |home| {
            home.put("../secret.txt", SECRET);
            home.put("../beside/instructions.md", SECRET);
            prepare(home);
        })
        .await;
        told_of.extend(told.contains(secret).then_some(*name));
    }
    assert_eq!(told_of, Vec::<&str>::new());
}

#[tokio::test]
async fn pattern_for_files_outside_project_is_ignored() {
    let mut told_of = Vec::new();
    for pattern in ["ABSOLUTE", "../secret.txt", "sub/../../secret.txt"] {
        let told = request(".", |home| {
            let secret = home.put("../secret.txt", SECRET);
            home.put("sub/b.txt", "");
            let pattern = pattern.replace("ABSOLUTE", secret.to_str().unwrap());
            home.put(".nuncio/config.toml", &format!("[instructions]\npatterns = [\"{pattern}\"]\n"));
        })
        .await;
        told_of.extend(told.contains(SECRET).then_some(pattern));
    }
    assert_eq!(told_of, Vec::<&str>::new());
}

#[tokio::test]
async fn file_with_two_names_is_included_once() {
    for (file, other) in [("AGENTS.md", "CLAUDE.md"), ("CLAUDE.md", "AGENTS.md")] {
        let told = request(".", |home| {
            home.put(file, "Always whistle.\n");
            link(home, other, file);
        })
        .await;
        assert_eq!(told.matches("Always whistle.").count(), 1, "{other} -> {file}: {told}");
    }
}

#[tokio::test]
async fn pipe_named_like_instruction_file_is_skipped() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let told = request(".", |home| {
        mkfifoat(CWD, home.work().join("AGENTS.md"), Mode::RUSR | Mode::WUSR).unwrap();
        home.put("CLAUDE.md", "Always whistle.\n");
    })
    .await;
    assert!(told.contains("Always whistle."), "{told}");
}

#[tokio::test]
async fn instructions_are_ordered_from_repository_root_to_cwd() {
    let told = request("sub/deep", |home| {
        for (path, text) in [
            ("../AGENTS.md", "not ours"),
            ("AGENTS.md", "outermost"),
            ("sub/CLAUDE.md", "between"),
            ("sub/deep/AGENTS.md", "innermost"),
        ] {
            home.put(path, &format!("These words are {text}.\n"));
        }
    })
    .await;
    let place = |text: &str| told.find(&format!("These words are {text}."));
    let places: Vec<usize> = ["outermost", "between", "innermost"].map(|text| place(text).expect(text)).into();
    assert!(places.is_sorted(), "{told}");
    assert_eq!(place("not ours"), None, "{told}");
}

/// Changes the owner of `path` to another user; requires root.
fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

/// Replaces `.git` by a file, and gives the directory `theirs` to another user.
fn give_git_away(home: &Home, file: &str) {
    std::fs::remove_dir_all(home.work().join(".git")).unwrap();
    home.put(".git", file);
    home.put("theirs/HEAD", "ref: refs/heads/main\n");
    give_away(&home.work().join("theirs"));
}

/// A user other than root and the user of the tests.
const OTHER: u32 = 61_234;

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

#[tokio::test]
async fn instructions_of_other_users_are_ignored() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return;
    }
    type Prepare = fn(&Home);
    const SUB: &str = "sub/deep";
    let cases: &[(&str, bool, Prepare)] = &[
        ("another user's file in a directory of ours", true, |home| {
            give_away(&home.put("AGENTS.md", SECRET));
        }),
        ("our file in a world-writable directory", true, |home| {
            home.put("AGENTS.md", SECRET);
            open_to_all(&home.work());
        }),
        ("another user's file in a world-writable directory", false, |home| {
            give_away(&home.put("AGENTS.md", SECRET));
            open_to_all(&home.work());
        }),
        ("another user's directory in a world-writable directory", false, |home| {
            let file = home.put(".nuncio/instructions.md", SECRET);
            give_away(&file);
            give_away(file.parent().unwrap());
            open_to_all(&home.work());
        }),
        ("another user's link in a world-writable directory", false, |home| {
            home.put("sub/notes", SECRET);
            link(home, "AGENTS.md", "sub/notes");
            give_away(&home.work().join("AGENTS.md"));
            open_to_all(&home.work());
        }),
        ("our file in another user's repository", false, |home| {
            home.put("AGENTS.md", SECRET);
            give_away(&home.work());
        }),
        ("our file in another user's directory", false, |home| {
            home.put(&format!("{SUB}/AGENTS.md"), SECRET);
            give_away(&home.work().join(SUB));
        }),
        ("our file in another user's .nuncio", false, |home| {
            home.put(".nuncio/instructions.md", SECRET);
            give_away(&home.work().join(".nuncio"));
        }),
        ("our file above, by another user's .git", false, |home| {
            home.put("AGENTS.md", SECRET);
            give_away(&home.work().join(".git"));
            open_to_all(&home.work());
        }),
        ("our file above, by our .git file that names another user's repository", false, |home| {
            home.put("AGENTS.md", SECRET);
            give_git_away(home, "gitdir: theirs\n");
        }),
        ("our file above, by a common directory of another user", false, |home| {
            home.put("AGENTS.md", SECRET);
            home.put("ours/commondir", "../theirs\n");
            give_git_away(home, "gitdir: ours\n");
        }),
        ("our file here, although there is another user's .git", true, |home| {
            home.put(&format!("{SUB}/AGENTS.md"), SECRET);
            give_away(&home.work().join(".git"));
            open_to_all(&home.work());
        }),
    ];
    let mut wrong = Vec::new();
    for (name, taken, prepare) in cases {
        let told = request(SUB, prepare).await;
        wrong.extend((told.contains(SECRET) != *taken).then_some(*name));
    }
    assert_eq!(wrong, Vec::<&str>::new());
}

#[tokio::test]
async fn notice_names_ignored_instructions() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return;
    }
    let home = Home::new();
    give_away(&home.put("AGENTS.md", SECRET));
    open_to_all(&home.work());
    let model = home.script(serde_json::json!([{"text": "one"}, {"text": "two"}]));
    let mut agent = home.start(&["--model", &model]).await;
    let notices = serde_json::json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}});
    agent.call("initialize", notices).await;
    let session = agent.new_session(&home).await;
    let (_, first) = agent.turn(&session, "go").await;
    let notice = |update: &&serde_json::Value| update["sessionUpdate"] == "notice";
    let told: Vec<_> = first.iter().filter(notice).collect();
    assert!(told.len() == 1 && told[0].to_string().contains("AGENTS.md"), "{told:?}");
    let (_, second) = agent.turn(&session, "go").await;
    assert_eq!(second.iter().filter(notice).count(), 0, "once is enough");
    agent.finish().await;
}

#[tokio::test]
async fn directory_of_other_user_needs_trust() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return;
    }
    let home = Home::new();
    home.put("AGENTS.md", SECRET);
    home.put(".claude/skills/one/SKILL.md", &format!("---\nname: one\ndescription: {SECRET}-skill\n---\nText.\n"));
    home.put(".nuncio/config.toml", "[[permissions.rules]]\ntool = \"list\"\npolicy = \"deny\"\n");
    home.put(".git/HEAD", "ref: refs/heads/their-branch\n");
    give_away(&home.work());
    let told = async |words: &str| {
        let model = home.script(serde_json::json!([{"text": "ok", "expect": words}]));
        home.run(&["run", "--model", &model, "go"], "").await.code == 0
    };
    let git = async || home.run(&["tool", "git_status", "{}"], "").await.stdout.contains("belongs to another user (");
    let settings = async || home.run(&["tool", "list", "{}"], "").await.code == 4;
    let skill = format!("{SECRET}-skill");
    for words in [SECRET, &skill, "their-branch"] {
        assert!(!told(words).await, "{words}");
    }
    assert!(!settings().await && git().await);
    let ran = home.run(&["workspaces", "create", "new"], "").await;
    assert!(ran.stderr.contains("belongs to another user (uid 61234)"), "{ran:?}");
    let model = home.script(serde_json::json!([{"text": "ok"}]));
    let log = home.run(&["run", "--json", "--model", &model, "go"], "").await.stdout;
    assert!(log.contains("owner: uid 61234") && log.contains("nuncio trust"), "{log}");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    for words in [SECRET, &skill, "their-branch"] {
        assert!(told(words).await, "{words}");
    }
    assert!(settings().await && !git().await);
}
