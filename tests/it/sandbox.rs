//! Choice of the sandbox by settings, flags and modes, and errors on systems without sandbox.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;

use seccompiler::{SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use harness::{Home, tool};

mod git_control;
mod git_states;
mod notes;
mod private;

/// Reports its access: writes in the workspace, writes outside, the network.
const LOOK: &str = "echo x > inside || echo -n 'not '; echo inside; echo x > ../outside || echo -n 'not '; echo outside; \
     { (exec 3<> /dev/tcp/127.0.0.1/1) 2>&1 | grep -q refused; } || echo -n 'not '; echo network";

fn sight(inside: bool, outside: bool, network: bool) -> String {
    let said = [(inside, "inside"), (outside, "outside"), (network, "network")];
    said.map(|(open, what)| format!("{}{what}\n", if open { "" } else { "not " })).concat() + "exit code: 0"
}

async fn look(home: &Home, flags: &[&str]) -> String {
    let input = json!({"command": format!("exec 2>/dev/null; {LOOK}")}).to_string();
    let ran = home.run(&[&["tool", "bash"], flags, &[&input]].concat(), "").await;
    ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"))["output"].as_str().unwrap().to_string()
}

#[tokio::test]
async fn sandbox_depends_on_settings_flags_and_modes() {
    needs_linux!("sandbox");
    let allow = "[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n";
    let auto: &[&str] = &["--mode", "auto"];
    let (open, confined, closed) = (sight(true, true, true), sight(true, false, false), sight(false, false, false));
    let (no, network, writable) = ("", "[sandbox]\nnetwork = true\n", "[sandbox]\nwritable = [\"..\"]\n");
    let [off, write, read] = ["off", "workspace-write", "read-only"].map(|mode| format!("[sandbox]\nmode = \"{mode}\"\n"));
    let cases: [(&str, &str, &[&str], &str); 15] = [
        // The user's settings, the project's, flags.
        (no, no, auto, &confined),
        (no, no, &["--mode", "ask"], &open),
        (&off, no, auto, &open),
        (&write, no, &[], &confined),
        (&read, no, auto, &closed),
        (&off, no, &["--mode", "auto", "--sandbox", "workspace-write"], &confined),
        (&read, no, &["--mode", "auto", "--sandbox", "off"], &open),
        (network, no, auto, &sight(true, false, true)),
        (writable, no, auto, &sight(true, true, false)),
        // An untrusted project can restrict the sandbox, but not widen it.
        (no, &off, auto, &confined),
        (no, network, auto, &confined),
        (no, writable, auto, &confined),
        (no, &read, auto, &closed),
        (&read, &write, auto, &closed),
        (&off, &write, auto, &confined),
    ];
    for (user, project, flags, expected) in cases {
        let home = Home::new();
        home.config(&format!("{allow}{user}"));
        home.put(".nuncio/config.toml", project);
        assert_eq!(look(&home, flags).await, *expected, "{user:?} {project:?} {flags:?}");
    }
}

#[tokio::test]
async fn sandbox_follows_mode_of_session() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.config("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n");
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": LOOK}}]});
    let end = json!({"text": "seen"});
    let (mut agent, session) = home.session(json!([call, end, call, end, call, end]), &[]).await;
    for (mode, outside) in [("ask", true), ("auto", false), ("ask", true)] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let (_, updates) = agent.turn(&session, "go").await;
        let said = tool(&updates, 0)["content"].to_string();
        assert_eq!(said.contains("not outside"), !outside, "{mode}: {said}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn temporary_files_are_kept_for_session() {
    needs_linux!("sandbox");
    let home = Home::new();
    let more = home.put("../more/file", "").parent().unwrap().to_owned();
    let bash = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let read = json!({"name": "read", "input": {"file_path": "missing"}});
    let look = json!({"tool_calls": [bash("cat $TMPDIR/kept && mktemp -q > /dev/null && echo made")]});
    let steps = json!([
        {"tool_calls": [bash("echo hi > $TMPDIR/kept")]},
        {"tool_calls": [read]},
        look,
        {"text": "seen"},
        look,
        {"text": "seen"},
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let (_, first) = agent.turn(&session, "go").await;
    // A change of directories keeps the session.
    let place = json!({"sessionId": session, "cwd": home.work(), "additionalDirectories": [more], "mcpServers": []});
    agent.call("session/resume", place).await;
    let (_, second) = agent.turn(&session, "go").await;
    for call in [tool(&first, 2), tool(&second, 0)] {
        assert!(call["content"].to_string().contains("hi\\nmade\\n"), "{call}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn commands_have_no_terminal() {
    let home = Home::new();
    let line = "for way in '<' '>' '<>'; do (eval \": $way /dev/tty\") 2> /dev/null; echo $?; done";
    let input = json!({ "command": line }).to_string();
    // In the foreground of a terminal.
    let mut command = std::process::Command::new("python3");
    command.args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])", harness::program(), "tool", "bash"]);
    command.args(["--mode", "auto", "--sandbox", "off", &input]).stdin(std::process::Stdio::null());
    let output = command.current_dir(home.work()).envs(home.variables()).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(told["output"], "1\n1\n1\nexit code: 0");
}

/// Runs `nuncio tool bash` in mode auto, on a system where `call` fails with `errno`.
fn run_without(call: libc::c_long, errno: i32, flags: &[&str]) -> Value {
    let arguments = [&["bash", "--mode", "auto"], flags, &[r#"{"command": "echo ran"}"#]].concat();
    tool_without(call, errno, &Home::new(), &arguments)
}

fn tool_without(call: libc::c_long, errno: i32, home: &Home, arguments: &[&str]) -> Value {
    let output = output_without(call, errno, home, &[&["tool"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Runs nuncio on a system where `call` fails with `errno`.
fn output_without(call: libc::c_long, errno: i32, home: &Home, arguments: &[&str]) -> std::process::Output {
    let rules = BTreeMap::from([(call, Vec::new())]);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    let mut command = std::process::Command::new(harness::program());
    command.args(arguments).stdin(std::process::Stdio::null());
    command.current_dir(home.work()).envs(home.variables());
    // SAFETY: two system calls, and nothing is allocated unless they fail.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
    command.output().unwrap()
}

#[test]
fn without_landlock_confined_commands_do_not_run() {
    let told = run_without(libc::SYS_landlock_create_ruleset, libc::ENOSYS, &["--sandbox", "workspace-write"]);
    let missing =
        if harness::POSIX { "this system cannot confine commands" } else { "this kernel has no Landlock, or it is turned off" };
    let hint = "--sandbox off, or `mode = \"off\"` under [sandbox], runs commands without one";
    let why = format!("the command was not run: the sandbox cannot be applied: {missing} ({hint})");
    assert_eq!(told, json!({"ok": false, "output": why, "details": null}));
    let told = run_without(libc::SYS_landlock_create_ruleset, libc::ENOSYS, &["--sandbox", "off"]);
    assert_eq!(told["output"], "ran\nexit code: 0");
}

#[test]
fn without_landlock_confined_language_servers_do_not_start() {
    let home = Home::new();
    home.config("[lsp.own]\ncommand = [\"touch\", \"started\"]\nfiles = [\"*.x\"]\n");
    home.put("a.x", "");
    let arguments = ["diagnostics", "--mode", "auto", r#"{"file_path": "a.x"}"#];
    let told = tool_without(libc::SYS_landlock_create_ruleset, libc::ENOSYS, &home, &arguments);
    let why = "a.x: touch is not started: this system cannot confine it, because its kernel has no Landlock, or it is turned off";
    assert_eq!((told["output"].as_str(), home.get("started")), (Some(why), None));
}

/// A rule that allows the command decides as in the mode `accept-edits`.
#[test]
fn without_landlock_mode_auto_asks_before_commands() {
    for (rules, expected) in
        [("", "requires permission"), ("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n", "ran\n")]
    {
        let home = Home::new();
        home.config(&format!("# The mode decides about the sandbox.\n{rules}"));
        let arguments = ["bash", "--mode", "auto", r#"{"command": "echo ran"}"#];
        let told = tool_without(libc::SYS_landlock_create_ruleset, libc::ENOSYS, &home, &arguments);
        assert!(told["output"].as_str().unwrap().contains(expected), "{rules}: {told}");
    }
}

#[test]
fn without_landlock_git_tools_do_not_run() {
    let home = crate::workspaces::repository();
    let landlock = libc::SYS_landlock_create_ruleset;
    for trusted in [false, true] {
        for mode in ["plan", "ask", "auto"] {
            let told = tool_without(landlock, libc::ENOSYS, &home, &["git_status", "--mode", mode, "--sandbox", "off", "{}"]);
            let said = told["output"].as_str().unwrap();
            assert!(said.contains("no Landlock"), "{mode}, trusted: {trusted}: {said}");
        }
        output_without(landlock, libc::ENOSYS, &home, &["trust", "."]);
    }
}

#[test]
fn without_landlock_workspaces_are_refused() {
    let home = crate::workspaces::repository();
    let landlock = libc::SYS_landlock_create_ruleset;
    for name in ["untrusted", "trusted"] {
        let ran = output_without(landlock, libc::ENOSYS, &home, &["workspaces", "create", name]);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && errors.contains("no Landlock"), "{name}: {ran:?}");
        output_without(landlock, libc::ENOSYS, &home, &["trust", "."]);
    }
}

/// Also if a rule or the default would allow the commands.
#[test]
fn without_landlock_checks_do_not_run() {
    let allow = "[permissions]\nrules = [{ tool = \"verify\", pattern = \"touch *\", policy = \"allow\" }]\n";
    for (settings, mode) in [("", "accept-edits"), ("", "auto"), ("[permissions]\ndefault = \"allow\"\n", "ask"), (allow, "auto")] {
        let home = Home::new();
        home.config(&format!("[verify]\ncommands = [\"touch ran\"]\n{settings}"));
        let landlock = libc::SYS_landlock_create_ruleset;
        output_without(landlock, libc::ENOSYS, &home, &["trust", "."]);
        let write = json!({"name": "write", "input": {"file_path": "a.txt", "content": "x\n"}});
        let model = home.script(json!([{"tool_calls": [write]}, {"text": "done"}]));
        let ran = output_without(landlock, libc::ENOSYS, &home, &["run", "--json", "--mode", mode, "--model", &model, "go"]);
        let shown = String::from_utf8_lossy(&ran.stdout);
        let completed = shown.lines().find(|line| line.contains("\"verify.completed\"")).unwrap_or_else(|| panic!("{ran:?}"));
        assert!(completed.contains("no Landlock") && home.get("ran").is_none(), "{settings} {mode}: {completed}");
        assert_eq!(ran.status.code(), Some(1), "not checked: {ran:?}");
    }
}

#[test]
fn without_landlock_programs_of_a_project_do_not_start_and_its_hooks_fail() {
    let home = Home::new();
    home.put("program.sh", "touch ran\n");
    let hook = "[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"program.sh\"]\n";
    home.put(".nuncio/config.toml", &format!("{hook}[mcp.x]\ncommand = [\"sh\", \"program.sh\"]\n"));
    let landlock = libc::SYS_landlock_create_ruleset;
    output_without(landlock, libc::ENOSYS, &home, &["trust", "."]);
    let list = json!({"name": "list", "input": {}});
    let model = home.script(json!([{"tool_calls": [list]}, {"text": "done"}]));
    let ran = output_without(landlock, libc::ENOSYS, &home, &["run", "--json", "--mode", "ask", "--model", &model, "go"]);
    let shown = String::from_utf8_lossy(&ran.stdout);
    let completed = shown.lines().find(|line| line.contains("\"tool.completed\"")).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(completed.contains("cannot confine") && home.get("ran").is_none(), "{completed}");
    let server = shown.lines().find(|line| line.contains("MCP server x failed")).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(server.contains("cannot confine"), "{server}");
}

#[test]
fn missing_sandbox_features_are_reported() {
    needs_linux!("sandbox");
    let told = run_without(libc::SYS_seccomp, libc::EINVAL, &[]);
    let lacks = "[sandbox: not blocked on this system: sockets other than TCP]";
    assert_eq!(told["output"], format!("ran\nexit code: 0\n{lacks}"));
}
