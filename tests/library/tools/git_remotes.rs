//! `git_branch` sets upstreams and remotes.

use super::git::{git, repository};
use super::*;

#[tokio::test]
async fn upstreams_and_remotes_are_set_and_addresses_that_run_programs_are_refused() {
    needs_linux!("sandbox");
    let world = repository();
    let remote = |target: &str| json!({"action": "set_remote", "name": "origin", "target": target});
    for target in ["https://example.org/a.git", "git@example.org:a.git", "ssh://git@example.org/a"] {
        assert_eq!(world.told("git_branch", remote(target)).await, format!("ok origin: set to {target}\n"));
        assert_eq!(git(&world.path(""), &["config", "remote.origin.url"]).trim(), target);
    }
    for target in ["ext::sh -c x", "-uevil", "file:///tmp", "/tmp/x", "https://-oProxyCommand=x", "a b@c:d", "x@-o:y", ""] {
        let refused = format!("error git_branch: target: {target:?} is not an https, ssh or git URL");
        assert_eq!(world.told("git_branch", remote(target)).await, refused);
    }
    git(&world.path(""), &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let upstream = json!({"action": "set_upstream", "name": "main", "target": "origin/main"});
    assert_eq!(world.told("git_branch", upstream).await, "ok main: set to origin/main\n");
    assert_eq!(git(&world.path(""), &["config", "branch.main.merge"]).trim(), "refs/heads/main");
}
