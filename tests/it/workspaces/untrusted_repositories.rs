//! Programs that a repository names do not run, or run confined: transports, filters and monitors,
//! setup commands of another commit, and hooks of a repository to which another directory refers.

use std::path::{Path, PathBuf};

use super::{git, hook, repository};
use harness::Home;

/// Makes the file `a` of the last commit a missing object that git would fetch.
fn forget_object(work: &Path) {
    let id = git(work, &["rev-parse", "HEAD:a"]);
    std::fs::remove_file(work.join(".git/objects").join(&id[..2]).join(id[2..].trim_end())).unwrap();
    git(work, &["config", "core.repositoryFormatVersion", "1"]);
    git(work, &["config", "extensions.partialClone", "origin"]);
    git(work, &["config", "remote.origin.promisor", "true"]);
}

#[tokio::test]
async fn transports_of_untrusted_repository_do_not_run() {
    for (url, name) in [("ext::TOUCH", ""), ("ssh://host/x", "core.sshCommand"), (".", "remote.origin.uploadpack")] {
        let home = repository();
        let work = home.work();
        let script = home.put("../touch.sh", &format!("#!/bin/sh\ntouch {}/.git/pwned\n", work.display()));
        let program = format!("sh {}", script.display());
        forget_object(&work);
        git(&work, &["config", "protocol.allow", "always"]);
        git(&work, &["config", "remote.origin.url", &url.replace("TOUCH", &program)]);
        if !name.is_empty() {
            git(&work, &["config", name, &program]);
        }
        let ran = home.run(&["workspaces", "create", "new"], "").await;
        assert_eq!(home.get(".git/pwned"), None, "{url} {name}: {ran:?}");
        assert_ne!(ran.code, 0, "{url} {name}: the object is missing: {ran:?}");
    }
}

/// A trusted repository with a hook, and a directory outside of it.
async fn trusted() -> (Home, PathBuf) {
    let home = repository();
    hook(&home, "post-checkout", "echo hook > hooked");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let other = home.put("../other/a", "other\n").parent().unwrap().to_owned();
    (home, other)
}

#[tokio::test]
async fn directory_that_refers_to_a_trusted_repository_is_not_trusted() {
    needs_linux!("sandbox");
    type Refer = fn(&Path, &Path);
    let cases: [(&str, Refer); 3] = [
        ("a link", |from, git_dir| std::os::unix::fs::symlink(git_dir, from.join(".git")).unwrap()),
        ("gitdir", |from, git_dir| {
            std::fs::write(from.join(".git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
        }),
        ("commondir", |from, git_dir| {
            std::fs::create_dir(from.join(".git")).unwrap();
            std::fs::write(from.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            std::fs::write(from.join(".git/commondir"), format!("{}\n", git_dir.display())).unwrap();
        }),
    ];
    for (name, refer) in cases {
        for nested in [false, true] {
            let (home, other) = trusted().await;
            let other = if nested { home.put("sub/a", "").parent().unwrap().to_owned() } else { other };
            refer(&other, &home.work().join(".git"));
            let ran = home.run(&["workspaces", "create", "new", "--cwd", other.to_str().unwrap()], "").await;
            let path = PathBuf::from(ran.stdout.trim_end());
            assert!(!path.join("hooked").exists() || ran.code != 0, "{name}, nested: {nested}: {ran:?}");
        }
    }
    let (home, _) = trusted().await;
    let ran = home.run(&["workspaces", "create", "new"], "").await;
    assert!(PathBuf::from(ran.stdout.trim_end()).join("hooked").exists(), "the trusted directory itself: {ran:?}");
}

#[tokio::test]
async fn repository_nested_in_a_trusted_one_is_not_trusted() {
    needs_linux!("sandbox");
    let (home, _) = trusted().await;
    let nested = home.put("sub/a", "nested\n").parent().unwrap().to_owned();
    git(&nested, &["init", "--quiet", "-b", "main"]);
    git(&nested, &["add", "."]);
    git(&nested, &["commit", "--quiet", "-m", "first"]);
    hook(&home, "../../sub/.git/hooks/post-checkout", "echo hook > hooked");
    let ran = home.run(&["workspaces", "create", "new", "--cwd", nested.to_str().unwrap()], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!PathBuf::from(ran.stdout.trim_end()).join("hooked").exists(), "{ran:?}");
}

/// A command of the model may have written the configuration of a trusted repository.
#[tokio::test]
async fn filters_and_monitors_of_a_trusted_repository_are_confined() {
    needs_linux!("sandbox");
    let home = repository();
    let escape = format!("echo x >> {}/escaped", home.work().parent().unwrap().display());
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    git(&home.work(), &["config", "core.fsmonitor", &format!("{escape}; false")]);
    for part in ["smudge", "clean"] {
        git(&home.work(), &["config", &format!("filter.evil.{part}"), &format!("{escape}; sed s/one/{part}/")]);
    }
    home.put(".git/info/attributes", "a filter=evil\n");
    let ran = home.run(&["workspaces", "create", "new"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let path = PathBuf::from(ran.stdout.trim_end());
    assert_eq!(std::fs::read_to_string(path.join("a")).unwrap(), "smudge\n", "the filter ran");
    std::fs::write(path.join("a"), "one\ntwo\n").unwrap();
    for command in [&["workspaces", "list"][..], &["workspaces", "apply", "new"], &["workspaces", "delete", "new", "--force"]] {
        home.run(command, "").await;
    }
    assert_eq!(home.get("../escaped"), None);
}

#[tokio::test]
async fn setup_command_of_another_commit_does_not_run() {
    needs_linux!("sandbox");
    type Change = fn(&Path);
    let cases: [(&str, Change, &str); 4] = [
        ("nothing", |_| (), ""),
        ("content", |script| std::fs::write(script, "echo other > ran\n").unwrap(), "setup.sh differs"),
        (
            "a link",
            |script| {
                std::fs::remove_file(script).unwrap();
                std::os::unix::fs::symlink("/bin/true", script).unwrap();
            },
            "setup.sh differs",
        ),
        ("another", |script| std::fs::write(script.with_file_name("more.sh"), "echo more > ran\n").unwrap(), "more.sh differs"),
    ];
    for (name, change, expected) in cases {
        let home = repository();
        let script = home.put("setup.sh", "echo trusted > ran\n");
        home.put(".nuncio/config.toml", "[worktree]\nsetup = [\"sh setup.sh; test ! -e more.sh || sh more.sh\"]\n");
        git(&home.work(), &["add", "."]);
        git(&home.work(), &["commit", "--quiet", "-m", "settings"]);
        git(&home.work(), &["checkout", "--quiet", "-b", "other"]);
        change(&script);
        git(&home.work(), &["add", "."]);
        git(&home.work(), &["commit", "--quiet", "--allow-empty", "-m", "other"]);
        git(&home.work(), &["checkout", "--quiet", "main"]);
        assert_eq!(home.run(&["trust", "."], "").await.code, 0);
        for (workspace, flags) in [("base", ["--base", "other"]), ("branch", ["--branch", "other"])] {
            let ran = home.run(&[&["workspaces", "create", workspace][..], &flags].concat(), "").await;
            assert!(ran.code == 0 && ran.stderr.contains(expected), "{name}: {ran:?}");
            let text = std::fs::read_to_string(PathBuf::from(ran.stdout.trim_end()).join("ran")).ok();
            assert_eq!(text.as_deref(), (name == "nothing").then_some("trusted\n"), "{name}: {ran:?}");
        }
    }
}
