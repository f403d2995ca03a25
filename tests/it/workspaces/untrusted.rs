//! Programs that a repository names do not run: transports of an untrusted repository, and hooks
//! of a trusted one to which another directory refers.

use std::path::{Path, PathBuf};

use super::{git, hook, repository};
use crate::harness::Home;

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
