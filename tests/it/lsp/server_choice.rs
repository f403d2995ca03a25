//! Selection of the language server for a file, and the cases in which no server starts.

use serde_json::json;

use harness::{CommandResult, Home};

/// A home whose PATH has the test server as `rust-analyzer` and `pylsp`. The server reports its
/// root directory as a diagnostic.
fn home() -> Home {
    let home = Home::new();
    let script = concat!("#!/bin/sh\nexec python3 ", env!("CARGO_MANIFEST_DIR"), "/lsp/server.py root\n");
    for name in ["rust-analyzer", "pylsp"] {
        let path = home.put(&format!("../bin/{name}"), script);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    home.put("../bin/gopls", "not executable");
    let bin = home.work().join("../bin").canonicalize().unwrap();
    home.env("PATH", &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    home
}

async fn ask(home: &Home, path: &str) -> String {
    let ran = home.run(&["tool", "diagnostics", &json!({ "file_path": path }).to_string()], "").await;
    ran.lines()[0]["output"].as_str().unwrap().to_string()
}

async fn trust(home: &Home) -> CommandResult {
    let ran = home.run(&["trust", "."], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The diagnostic of a server whose root is `directory` in the work directory.
fn works_in(home: &Home, path: &str, directory: &str) -> String {
    format!("{path}:1:1: error: file://{} [root", home.work().join(directory).display().to_string().trim_end_matches('/'))
}

#[tokio::test]
async fn installed_server_starts_in_trusted_directories_only() {
    let home = home();
    home.put("a.py", "");
    let work = home.work().display().to_string();
    let refused = format!(
        "a.py: pylsp is not started here, as it may run code of the project; the user can allow it with `nuncio trust {work}`"
    );
    assert_eq!(ask(&home, "a.py").await, refused);
    trust(&home).await;
    let told = ask(&home, "a.py").await;
    assert!(told.starts_with(&works_in(&home, "a.py", "")), "{told}");
}

#[tokio::test]
async fn rust_analyzer_runs_in_the_outermost_package_of_the_root() {
    let home = home();
    trust(&home).await;
    for path in ["outer/inner/src/a.rs", "other/a.rs"] {
        home.put(path, "");
    }
    assert_eq!(ask(&home, "other/a.rs").await, "other/a.rs: rust-analyzer needs a Cargo.toml in the file's directory or above");
    home.put("outer/inner/Cargo.toml", "");
    let cases =
        [("outer/inner/Cargo.toml", "outer/inner"), ("outer/Cargo.toml", "outer"), ("../Cargo.toml", "outer"), ("Cargo.toml", "")];
    for (manifest, directory) in cases {
        home.put(manifest, "");
        let told = ask(&home, "outer/inner/src/a.rs").await;
        assert!(told.starts_with(&works_in(&home, "outer/inner/src/a.rs", directory)), "{manifest}: {told}");
    }
    std::fs::remove_file(home.work().join("Cargo.toml")).unwrap();
    let told = ask(&home, "other/a.rs").await;
    assert!(told.starts_with(&works_in(&home, "other/a.rs", "")), "{told}");
}

#[tokio::test]
async fn missing_server_is_reported() {
    let home = home();
    home.env("PATH", home.work().join("../bin").canonicalize().unwrap().to_str().unwrap());
    trust(&home).await;
    let outside = home.put("../outside.py", "");
    let cases = [
        ("a.go", "a.go: no language server for go is installed: gopls is not on PATH"),
        ("a.c", "a.c: no language server for c is installed: clangd is not on PATH"),
        ("a.tsx", "a.tsx: no language server for typescript is installed: typescript-language-server is not on PATH"),
        ("a.zig", "a.zig: no language server for *.zig is known; to add one, set command and files in [lsp.NAME]"),
        ("LICENSE", "LICENSE: no language server for files like this is known; to add one, set command and files in [lsp.NAME]"),
        (outside.to_str().unwrap(), "denied: the call requires permission"),
    ];
    for (path, told) in cases {
        assert!(ask(&home, path).await.starts_with(told), "{path}: {}", ask(&home, path).await);
    }
}

#[tokio::test]
async fn settings_select_and_disable_servers() {
    needs_linux!("sandbox");
    let home = home();
    home.put("src/a.py", "");
    home.put("src/a.z", "");
    let off = "the language server python is disabled in the settings";
    let own = "command = [\"pylsp\"]\n";
    let refused = "src/a.py: pylsp is not started here";
    let cases = [
        // The user's settings need no trust.
        (format!("[lsp.mine]\n{own}files = [\"*.py\"]\n"), "src/a.py", "src/a.py:1:1: error: file://"),
        (format!("[lsp.mine]\n{own}files = [\"src/**\"]\n"), "src/a.z", "src/a.z:1:1: error: file://"),
        (format!("[lsp.mine]\n{own}files = [\"*.z\"]\n"), "src/a.py", refused),
        ("[lsp.python]\ncommand = []\n".into(), "src/a.py", &format!("src/a.py: {off}")),
        ("[lsp.python]\ncommand = []\nfiles = [\"*.py\"]\n".into(), "src/a.py", &format!("src/a.py: {off}")),
        ("[lsp.rust]\ncommand = []\n".into(), "src/a.py", refused),
    ];
    for (settings, path, told) in cases {
        home.config(&settings);
        let said = ask(&home, path).await;
        assert!(said.starts_with(told), "{settings}: {said}");
    }
}

#[tokio::test]
async fn project_disables_servers_at_once_and_adds_servers_when_trusted() {
    needs_linux!("sandbox");
    let home = home();
    home.put("a.py", "");
    home.put("a.z", "");
    home.put(".nuncio/config.toml", "[lsp.z]\ncommand = [\"pylsp\"]\nfiles = [\"*.z\"]\n[lsp.python]\ncommand = []\n");
    let check = home.run(&["config", "check"], "").await;
    assert!(check.stdout.starts_with("not used: lsp of this project"), "{check:?}");
    assert!(ask(&home, "a.z").await.starts_with("a.z: no language server for *.z is known"));
    assert!(ask(&home, "a.py").await.ends_with("the language server python is disabled in the settings"));
    trust(&home).await;
    assert!(ask(&home, "a.z").await.starts_with("a.z:1:1: error: file://"));
    assert!(ask(&home, "a.py").await.ends_with("the language server python is disabled in the settings"));
}

#[tokio::test]
async fn invalid_settings_are_errors() {
    let home = Home::new();
    let cases = [
        ("[lsp.x]\ncommand = [\"x\"]\n", "lsp.x.files: set file patterns, e.g. files = [\"*.rs\"]"),
        ("[lsp.x]\nfiles = [\"*.x\"]\n", "lsp.x: missing field `command`"),
        ("[lsp.x]\ncommand = [\"x\"]\nfiles = [\"[\"]\n", "lsp.x.files: error parsing glob '['"),
        ("[lsp.x]\ncomand = [\"x\"]\n", "did you mean `command`?"),
        ("[lsp]\nx = 1\n", "lsp.x: invalid type: integer `1`"),
    ];
    for (settings, told) in cases {
        home.config(settings);
        let ran = home.run(&["config", "check"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(told), "{settings}: {ran:?}");
    }
}

#[tokio::test]
async fn server_is_sandboxed_according_to_the_mode() {
    needs_linux!("sandbox");
    let home = super::home(&["probe"]);
    home.put("a.x", "");
    home.put("../home/token", "owner-token\n");
    let input = json!({ "file_path": "a.x" }).to_string();
    let all = "open: ../probe-outside probe-inside ../home/token [";
    let inside = "open: probe-inside [";
    let cases = [
        (&["--mode", "auto"][..], inside, inside),
        (&["--mode", "auto", "--sandbox", "read-only"], "open: nothing [", "open: nothing ["),
        (&["--mode", "auto", "--sandbox", "off"], inside, inside),
        (&["--mode", "accept-edits"], inside, inside),
        (&["--mode", "ask"], inside, all),
    ];
    let cases = cases.into_iter().flat_map(|(flags, untrusted, trusted)| [(flags, untrusted, false), (flags, trusted, true)]);
    for (flags, open, trusted) in cases {
        home.run(if trusted { &["trust", "."] } else { &["trust", "remove", "."] }, "").await;
        let ran = home.run(&[&["tool", "diagnostics"], flags, &[&input]].concat(), "").await;
        let told = ran.lines()[0]["output"].as_str().unwrap().to_string();
        let told = told.replace("\n", " [");
        assert!(told.contains(open), "{flags:?}: {told}");
    }
}
