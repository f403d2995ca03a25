//! The caches and temporary files of confined programs, and programs that need a network.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use super::{CONFIG, hook, notices, results, run, trust};
use crate::workspaces::{git, repository};
use harness::Home;

/// A model that writes `a.x`.
fn write() -> (&'static str, serde_json::Value) {
    ("write", json!({"file_path": "a.x", "content": "x\n"}))
}

/// The directories `caches/ID/NAME` of the data directory.
fn own_directories(home: &Home, name: &str) -> Vec<PathBuf> {
    let caches = std::fs::read_dir(home.data().join("caches")).unwrap().flatten();
    caches.map(|cache| cache.path().join(name)).collect()
}

#[tokio::test]
async fn program_does_not_choose_where_the_next_one_writes() {
    needs_linux!("sandbox");
    let home = Home::new();
    let outside = home.put("../outside/kept", "").parent().unwrap().canonicalize().unwrap();
    let script = "own=${TMPDIR%/tmp/*}\nfor name in tmp cache; do rm -rf $own/$name; mv $own/$name $own/old; ln -s OUTSIDE $own/$name; done\n\
         echo x > OUTSIDE/escaped\necho x > $own/new && echo parent >> runs.txt\n\
         mkdir -p $npm_config_cache && echo x > $TMPDIR/file && echo own >> runs.txt\n";
    home.put("hook.sh", &script.replace("OUTSIDE", outside.to_str().unwrap()));
    home.put(CONFIG, &hook("tool.execute.after", "hook.sh", ""));
    trust(&home).await;
    for _ in 0..2 {
        run(&home, "auto", &[write()]).await;
    }
    assert_eq!((home.get("runs.txt").as_deref(), home.get("../outside/escaped")), (Some("own\nown\n"), None));
    // A link that is there is not followed.
    for name in ["tmp", "cache"] {
        for directory in own_directories(&home, name) {
            std::fs::remove_dir_all(&directory).unwrap();
            std::os::unix::fs::symlink(&outside, &directory).unwrap();
        }
    }
    run(&home, "auto", &[write()]).await;
    let left: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!((home.get("runs.txt").as_deref(), left), (Some("own\nown\n"), vec!["kept".into()]));
}

/// Each kind of program has caches of its own: what one without network writes must not run in one
/// with network.
#[tokio::test]
async fn programs_have_the_variables_of_package_managers_and_share_no_caches() {
    needs_linux!("sandbox");
    let home = repository();
    home.put(
        "program.sh",
        "printf '%s\\n' $npm_config_cache $GOCACHE $XDG_CACHE_HOME $TMPDIR $npm_config_offline $UV_OFFLINE > got-$1\n",
    );
    let program = |kind: &str| json!(["sh", "program.sh", kind]);
    let settings = format!(
        "model = \"x/m\"\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_command = {}\n[mcp.one]\ncommand = {}\n\
         [mcp.two]\ncommand = {}\n[lsp.own]\ncommand = {}\nfiles = [\"*.x\"]\n[[hooks]]\nevent = \"tool.execute.after\"\n\
         command = {}\n[verify]\ncommands = [\"sh program.sh check\"]\n[worktree]\nsetup = [\"sh program.sh setup\"]\n",
        program("token"),
        program("online"),
        program("two"),
        program("lsp"),
        program("hook"),
    );
    home.put(CONFIG, &settings);
    git(&home.work(), &["add", "."]);
    git(&home.work(), &["commit", "--quiet", "-m", "settings"]);
    home.config(&format!("[trust.\"{}\".mcp.one]\nnetwork = true\n", home.work().display()));
    trust(&home).await;
    run(&home, "auto", &[write()]).await;
    home.run(&["run", "go"], "").await;
    let worktree = PathBuf::from(home.run(&["workspaces", "create", "w"], "").await.stdout.trim_end());
    let kinds = ["token", "online", "two", "lsp", "hook", "check", "setup"];
    let mut seen = BTreeSet::new();
    for kind in kinds {
        let directory = if kind == "setup" { worktree.clone() } else { home.work() };
        let got = std::fs::read_to_string(directory.join(format!("got-{kind}"))).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let lines: Vec<&str> = got.lines().collect();
        let offline: &[&str] = if kind == "online" { &[] } else { &["true", "1"] };
        assert_eq!(&lines[4..], offline, "{kind}: {got}");
        assert!(lines[..4].iter().all(|line| line.contains("/caches/")), "{kind}: {got}");
        seen.extend(lines[..4].iter().map(|line| (*line).to_owned()));
    }
    assert_eq!(seen.len(), 4 * kinds.len(), "{seen:#?}");
}

/// `npx` waits for more than 45 s if it has neither a network nor this information.
#[tokio::test]
async fn confined_npx_fails_at_once_and_names_the_setting() {
    needs_linux!("sandbox");
    let home = repository();
    let npx = "[\"npx\", \"-y\", \"@acme/docs\"]";
    let settings = format!(
        "[mcp.docs]\ncommand = {npx}\n[[hooks]]\nevent = \"tool.execute.after\"\ncommand = {npx}\n\
         [verify]\ncommands = [\"npx -y @acme/docs\"]\nmax_rounds = 1\n[worktree]\nsetup = [\"sh -c 'npx -y @acme/docs'\"]\n"
    );
    home.put(CONFIG, &settings);
    trust(&home).await;
    let ran = run(&home, "auto", &[write()]).await;
    let (told, checked) = (notices(&ran), results(&ran).pop().unwrap());
    for setting in [".mcp.docs]", ".hooks]"] {
        assert!(told.contains(setting), "{setting}: {told}");
    }
    assert!(checked.contains("ENOTCACHED") && checked.contains(".checks]"), "{checked}");
    let ran = home.run(&["workspaces", "create", "w"], "").await;
    assert!(ran.stderr.contains("ENOTCACHED") && ran.stderr.contains(".setup]"), "{ran:?}");
}

#[tokio::test]
async fn confined_program_that_fails_or_hangs_names_the_setting() {
    needs_linux!("sandbox");
    let token = "model = \"x/m\"\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_command = [\"false\"]\n";
    let bearer = "[mcp.x]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_token_command = [\"false\"]\n";
    let waits = "[[hooks]]\nevent = \"tool.execute.after\"\ncommand = [\"tail\", \"-f\", \"/dev/null\"]\ntimeout_ms = 100\n";
    for (settings, why, name) in [
        (token, "exited with status 1", "tokens"),
        (bearer, "exited with status 1", "mcp.x"),
        (waits, "no answer in 100 ms", "hooks"),
    ] {
        let home = Home::new();
        home.put(CONFIG, settings);
        trust(&home).await;
        let told = match name {
            "tokens" => home.run(&["run", "go"], "").await.stderr,
            _ => notices(&run(&home, "auto", &[write()]).await).replace("\\\"", "\""),
        };
        let expected = format!("{why} (it runs confined: it writes only inside the project and has no network");
        assert!(told.contains(&expected) && told.contains(&format!("[trust.\"{}\".{name}]", home.work().display())), "{told}");
    }
}
