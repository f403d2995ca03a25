//! What the programs of a trusted project may use outside of it: what the user's settings grant.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{CONFIG, hook, notices, results, run, trust};
use harness::Home;

/// A trusted project whose hook writes the names of what it can do to `got.txt`: a file in each of
/// these directories, and a socket.
async fn project(user: &str, project: &str) -> Home {
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    for directory in ["above", "other", "linked"] {
        std::fs::create_dir(home.work().join("..").join(directory)).unwrap();
    }
    symlink("../linked", home.work().join("target")).unwrap();
    home.put(
        "program.sh",
        "for name in above other linked; do (echo x > ../$name/x) 2>/dev/null && echo $name >> got.txt; done\n\
         python3 -c 'import socket; socket.socket()' 2>/dev/null && echo network >> got.txt\necho ran >> got.txt\n",
    );
    let above = home.work().join("..").canonicalize().unwrap();
    home.config(&user.replace("WORK", &home.work().display().to_string()).replace("ABOVE", &above.display().to_string()));
    home.put(CONFIG, &(project.to_owned() + &hook("tool.execute.before", "program.sh", "")));
    trust(&home).await;
    home
}

async fn got(home: &Home) -> String {
    let ran = run(home, "auto", &[("read", json!({"file_path": "a.txt"}))]).await;
    home.get("got.txt").unwrap_or_else(|| panic!("{ran:?}")).replace('\n', " ")
}

#[tokio::test]
async fn settings_of_the_user_grant_network_and_directories() {
    needs_linux!("sandbox");
    let cases = [
        ("", "", "ran "),
        ("[trust.\"WORK\".hooks]\nnetwork = true\nwritable = [\"ABOVE/above\"]\n", "", "above network ran "),
        // The home directory of the test contains the work directory.
        ("[trust.\"~/work\".hooks]\nnetwork = true\nwritable = [\"~/above\", \"../other\"]\n", "", "above other network ran "),
        // Grants of several directories add up.
        (
            "[trust.\"ABOVE\".hooks]\nwritable = [\"ABOVE/above\"]\n[trust.\"WORK\".hooks]\nnetwork = true\n[trust.\"WORK\".mcp.x]\nnetwork = true\n",
            "",
            "above network ran ",
        ),
        ("[trust.\"ABOVE\".hooks]\nnetwork = true\n[trust.\"WORK\".mcp.x]\nnetwork = true\n", "", "network ran "),
        // Roots of the client and the user are writable, those of the project are not.
        ("allowed_paths = [\"ABOVE/above\"]\n", "", "above ran "),
        ("", "allowed_paths = [\"../above\"]\n", "ran "),
        // A symlink of the project does not widen a grant.
        ("[trust.\"WORK\".hooks]\nwritable = [\"target\"]\n", "", "ran "),
        ("[trust.\"WORK\".hooks]\nwritable = [\"WORK/target\"]\n", "", "ran "),
        ("[trust.\"WORK\".hooks]\nwritable = [\"ABOVE/linked\"]\n", "", "linked ran "),
    ];
    for (user, settings, expected) in cases {
        let home = project(user, settings).await;
        assert_eq!(got(&home).await, expected, "{user} | {settings}");
    }
}

#[tokio::test]
async fn message_names_a_grant_that_is_not_used() {
    needs_linux!("sandbox");
    let home = project("[trust.\"WORK\".hooks]\nwritable = [\"target\"]\n", "").await;
    home.put("program.sh", "exit 1\n");
    trust(&home).await;
    let ran = run(&home, "auto", &[("read", json!({"file_path": "a.txt"}))]).await;
    assert!(results(&ran)[0].contains("target is not writable: a symlink of the project leads to it"), "{ran:?}");
}

#[tokio::test]
async fn symlink_of_the_project_does_not_widen_the_sandbox() {
    needs_linux!("sandbox");
    for (writable, written) in [("target", false), ("ABOVE/linked", true)] {
        let home = project(&format!("[sandbox]\nwritable = [\"{writable}\"]\n"), "").await;
        let ran = run(&home, "auto", &[("bash", json!({"command": "echo x > ../linked/y"}))]).await;
        assert_eq!(home.get("../linked/y").is_some(), written, "{writable}: {ran:?}");
        assert_eq!(notices(&ran).contains("a symlink of the project leads to it"), !written, "{ran:?}");
    }
}

#[tokio::test]
async fn directory_that_grants_nothing_is_reported() {
    let home = Home::new();
    home.config("[trust.\"~/missing\".hooks]\nnetwork = true\n");
    let ran = home.run(&["config", "check"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("trust.\"~/missing\": there is no such directory"), "{ran:?}");
    home.config("[trust.\"missing\".hooks]\nnetwork = true\n");
    let ran = home.run(&["config", "check"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("begin the directory with / or ~/"), "{ran:?}");
    home.config("[trust.\"~/work\".hooks]\nnetwork = true\n");
    assert_eq!(home.run(&["config", "check"], "").await.code, 0);
}

/// A hook of a project cannot read nuncio's own directories by naming a file there.
#[tokio::test]
async fn hook_of_a_project_reads_no_file_of_nuncio() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    home.put("program.sh", "cat \"$1\" >> got.txt; echo ran >> got.txt\n");
    let secret = home.data().canonicalize().unwrap().join("secret");
    std::fs::write(&secret, "secret\n").unwrap();
    let command = json!(["sh", "program.sh", secret]);
    home.put(CONFIG, &format!("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = {command}\n"));
    trust(&home).await;
    assert_eq!(got(&home).await, "ran ");
}
