//! `verify.require_clean`: a turn does not start on a working tree with uncommitted changes.

use std::process::Command;

use serde_json::json;

use harness::Home;

fn git(home: &Home, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").args(identity).args(arguments).current_dir(home.work()).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
}

#[tokio::test]
async fn turn_needs_a_clean_working_tree() {
    needs_linux!("sandbox");
    type Prepare = fn(&Home);
    let cases: &[(&str, Prepare, Option<&str>)] = &[
        ("no repository", |_| (), None),
        ("clean", |home| (git(home, &["init", "-q"]), git(home, &["add", "."]), git(home, &["commit", "-qm", "x"])).0, None),
        ("untracked", |home| git(home, &["init", "-q"]), Some("a.txt")),
        (
            "changed",
            |home| {
                git(home, &["init", "-q"]);
                git(home, &["add", "."]);
                git(home, &["commit", "-qm", "x"]);
                home.put("sub/b.txt", "new\n");
            },
            Some("sub/b.txt"),
        ),
    ];
    for (name, prepare, dirty) in cases {
        let home = Home::new();
        home.put("a.txt", "a\n");
        home.put("sub/b.txt", "b\n");
        home.config("[verify]\nrequire_clean = true\n");
        prepare(&home);
        let model = home.script(json!([{"text": "begun"}]));
        let ran = home.run(&["run", "--model", &model, "go"], "").await;
        match dirty {
            None => assert_eq!((ran.code, ran.stdout.as_str()), (0, "begun\n"), "{name}: {ran:?}"),
            Some(file) => {
                assert_ne!(ran.code, 0, "{name}: {ran:?}");
                for text in ["uncommitted changes", file, "verify.require_clean = false"] {
                    assert!(ran.stderr.contains(text), "{name}: {text}: {ran:?}");
                }
                assert_eq!(ran.stdout, "", "{name}");
            }
        }
    }
}
