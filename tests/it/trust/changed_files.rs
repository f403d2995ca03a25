//! What was trusted is compared before each start.

use serde_json::json;

use super::{CONFIG, hook, notices, results, run, trust};
use harness::Home;

/// A home with a trusted project whose hook `guard.sh` writes a line to `runs.txt`.
async fn guarded(more: &str) -> Home {
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    home.put("guard.sh", "echo guard >> runs.txt\n");
    home.put(CONFIG, &(hook("tool.execute.before", "guard.sh", "") + more));
    trust(&home).await;
    home
}

#[tokio::test]
async fn hook_that_changes_during_a_session_blocks() {
    needs_linux!("sandbox");
    let home = guarded("").await;
    let read = ("read", json!({"file_path": "a.txt"}));
    let write = ("bash", json!({"command": "echo 'echo other >> runs.txt' > guard.sh"}));
    let ran = run(&home, "auto", &[read.clone(), write, read]).await;
    assert_eq!(home.get("runs.txt").as_deref(), Some("guard\nguard\n"));
    let results = results(&ran);
    assert!(results[0].contains("alpha"), "{results:?}");
    assert!(results[2].contains("blocked by") && results[2].contains("nuncio trust --diff"), "{results:?}");
}

#[tokio::test]
async fn hook_that_changed_between_sessions_blocks_until_it_is_trusted_again() {
    needs_linux!("sandbox");
    for change in ["script", "settings", "no settings"] {
        let home = guarded("").await;
        match change {
            "script" => drop(home.put("guard.sh", "echo other >> runs.txt\n")),
            "settings" => drop(home.put(CONFIG, "[verify]\nauto = false\n")),
            _ => std::fs::remove_file(home.work().join(CONFIG)).unwrap(),
        }
        let read = ("read", json!({"file_path": "a.txt"}));
        let ran = run(&home, "auto", std::slice::from_ref(&read)).await;
        let blocked = results(&ran);
        assert!(blocked[0].contains("blocked by") && blocked[0].contains("nuncio trust --diff"), "{change}: {ran:?}");
        assert_eq!(home.get("runs.txt"), None, "{change}");
        trust(&home).await;
        let ran = run(&home, "auto", &[read]).await;
        assert!(results(&ran)[0].contains("alpha"), "{change}: {ran:?}");
    }
}

#[tokio::test]
async fn hook_without_an_effect_is_a_notice_if_it_changed() {
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    home.put("after.sh", "echo after >> runs.txt\n");
    home.put(CONFIG, &hook("tool.execute.after", "after.sh", ""));
    trust(&home).await;
    home.put("after.sh", "echo other >> runs.txt\n");
    let ran = run(&home, "auto", &[("read", json!({"file_path": "a.txt"}))]).await;
    assert!(results(&ran)[0].contains("alpha"), "{ran:?}");
    assert!(notices(&ran).contains("nuncio trust --diff"), "{ran:?}");
    assert_eq!(home.get("runs.txt"), None);
}

#[tokio::test]
async fn writes_to_files_that_trusted_settings_name_ask() {
    let setup = "[worktree]\nsetup = [\"sh setup.sh\"]\n[mcp.x]\ncommand = [\"python3\", \"server.py\"]\n";
    let home = Home::new();
    for name in ["guard.sh", "setup.sh", "server.py", "free.sh"] {
        home.put(name, "# nothing\n");
    }
    home.put(CONFIG, &(hook("tool.execute.before", "guard.sh", "match = \"fetch\"") + setup));
    trust(&home).await;
    let edit = |name: &str| ("edit", json!({"file_path": name, "old_string": "# nothing", "new_string": "echo other"}));
    let ran = run(&home, "accept-edits", &[edit("guard.sh"), edit("setup.sh"), edit("server.py"), edit("free.sh")]).await;
    for name in ["guard.sh", "setup.sh", "server.py"] {
        assert_eq!(home.get(name).as_deref(), Some("# nothing\n"), "{name}: {ran:?}");
    }
    assert_eq!(home.get("free.sh").as_deref(), Some("echo other\n"));
}

#[tokio::test]
async fn programs_of_a_project_do_not_start_after_a_change() {
    needs_linux!("sandbox");
    let cases = [
        ("setup", "[worktree]\nsetup = [\"sh program.sh\"]\n"),
        ("server", "[mcp.x]\ncommand = [\"sh\", \"program.sh\"]\n"),
        (
            "token",
            "model = \"x/m\"\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_command = [\"sh\", \"program.sh\"]\n",
        ),
        ("module", "[mcp.x]\ncommand = [\"python3\", \"package\"]\n"),
    ];
    for (name, settings) in cases {
        let home = crate::workspaces::repository();
        let put = |word: &str| {
            home.put("program.sh", &format!("echo x > {word}.txt\n"));
            home.put("package/__main__.py", &format!("open('{word}.txt', 'w')\n"));
        };
        put("trusted");
        home.put(CONFIG, settings);
        crate::workspaces::git(&home.work(), &["add", "."]);
        crate::workspaces::git(&home.work(), &["commit", "--quiet", "-m", "settings"]);
        trust(&home).await;
        let start = async |workspace: &str| {
            let model = home.script(json!([{"text": "done"}]));
            match name {
                "setup" => home.run(&["workspaces", "create", workspace], "").await,
                "token" => home.run(&["run", "go"], "").await,
                _ => home.run(&["run", "--model", &model, "go"], "").await,
            }
        };
        let written = |word: &str| {
            let file = format!("{word}.txt");
            walk(&home.work().join("..")).into_iter().filter(|path| path.ends_with(&file)).count()
        };
        let ran = start("before").await;
        assert_eq!(written("trusted"), 1, "{name} runs while it is the trusted one: {ran:?}");
        put("changed");
        let ran = start("after").await;
        assert!(ran.stderr.contains("nuncio trust --diff"), "{name}: {ran:?}");
        assert_eq!((written("trusted"), written("changed")), (1, 0), "{name}: {ran:?}");
    }
}

/// All files below a directory.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        true => walk(&entry.path()),
        false => vec![entry.path()],
    });
    below.collect()
}
