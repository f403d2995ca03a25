//! Programs of the user's settings that run in a project, or run a file of it.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::{hook, notices, results, run, trust};
use harness::Home;

/// A script that writes what it can do to `got.txt` in the work directory.
fn probe(home: &Home) -> String {
    let work = home.work();
    format!(
        "#!/bin/sh\ncd '{}'; (echo x > ../outside) 2>/dev/null && echo outside >> got.txt; echo ran >> got.txt\n",
        work.display()
    )
}

/// Runs a turn with one call, in which hooks, servers and token commands start.
async fn start(home: &Home, more: &[&str]) -> harness::CommandResult {
    let model = home.script(json!([{"tool_calls": [{"name": "glob", "input": {"pattern": "*.nothing"}}]}, {"text": "end"}]));
    let flags = [&["run", "--json", "--mode", "auto", "--model", &model], more, &["go"]].concat();
    home.run(&flags, "").await
}

/// Each way to name a file of the project in the user's settings. `WORK` is the work directory.
const NAMED: [(&str, &str); 8] = [
    ("hook", "[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"WORK/program.sh\"]\n"),
    ("program of a hook", "[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"WORK/program.sh\"]\n"),
    ("link beside the settings", "[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"link.sh\"]\n"),
    ("server", "[mcp.x]\ncommand = [\"sh\", \"WORK/program.sh\"]\n"),
    ("variable", "[mcp.x]\ncommand = [\"sh\", \"$WORKSPACE/program.sh\"]\n"),
    ("shell", "[mcp.x]\ncommand = [\"sh\", \"-c\", \"sh $WORKSPACE/program.sh\"]\n"),
    ("option", "[mcp.x]\ncommand = [\"sh\", \"-c\", \"sh ${0#*=}\", \"--script=WORK/program.sh\"]\n"),
    ("PATH", "[mcp.x]\ncommand = [\"probe-on-path\"]\n"),
];

fn named(settings: &str) -> Home {
    let home = Home::new();
    let path = std::env::var("PATH").unwrap();
    home.env("PATH", &format!("{}:{path}", home.work().join("bin").display()));
    let data = home.data();
    home.config(&settings.replace("WORK/", &format!("{}/", home.work().display())));
    for file in ["program.sh", "bin/probe-on-path"] {
        let path = home.put(file, &probe(&home));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    symlink(home.work().join("program.sh"), data.join("link.sh")).unwrap();
    home
}

#[tokio::test]
async fn program_of_the_user_that_runs_a_file_of_the_project_needs_trust_and_is_confined() {
    needs_linux!("sandbox");
    for (name, settings) in NAMED {
        let home = named(settings);
        let ran = start(&home, &[]).await;
        assert_eq!(home.get("got.txt"), None, "{name}: {ran:?}");
        let told = notices(&ran) + &results(&ran).concat();
        assert!(told.contains("is not trusted"), "{name}: {ran:?}");
        trust(&home).await;
        let ran = start(&home, &[]).await;
        let got = home.get("got.txt").unwrap_or_else(|| panic!("{name}: {ran:?}"));
        assert!(got.lines().all(|line| line == "ran"), "{name}: {got}");
    }
}

#[tokio::test]
async fn token_command_of_the_user_in_the_project_needs_trust_and_is_confined() {
    needs_linux!("sandbox");
    let key = "model = \"x/m\"\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_command = ";
    let home = named(&format!("{key}[\"sh\", \"WORK/program.sh\"]\n"));
    let ran = home.run(&["run", "go"], "").await;
    assert!(home.get("got.txt").is_none() && ran.stderr.contains("is not trusted"), "{ran:?}");
    trust(&home).await;
    home.run(&["run", "go"], "").await;
    let got = home.get("got.txt").unwrap();
    assert!(got.lines().all(|line| line == "ran"), "{got}");
}

#[tokio::test]
async fn writes_to_files_of_the_users_programs_ask() {
    needs_linux!("sandbox");
    for (name, settings) in &NAMED[..5] {
        let home = named(settings);
        trust(&home).await;
        let before = home.get("program.sh");
        let write = |name: &str| ("write", json!({"file_path": name, "content": "true\n"}));
        // The hook of this test only runs a shell that does nothing to the calls.
        let ran = run(&home, "accept-edits", &[write("program.sh"), write("free.sh")]).await;
        assert_eq!(home.get("program.sh"), before, "{name}: {ran:?}");
        assert!(home.get("free.sh").is_some(), "{name}: {ran:?}");
    }
}

#[tokio::test]
async fn writes_to_the_directory_of_the_settings_ask() {
    let home = Home::new();
    home.config("");
    std::fs::write(home.data().join("guard.sh"), "true\n").unwrap();
    let (data, above) = (home.data().canonicalize().unwrap(), home.work().join("..").canonicalize().unwrap());
    let write = |path: String| json!({"tool_calls": [{"name": "write", "input": {"file_path": path, "content": "false\n"}}]});
    let paths = [data.join("guard.sh"), data.join("skills/new/SKILL.md"), above.join("free.txt")];
    let mut steps: Vec<_> = paths.iter().map(|path| write(path.display().to_string())).collect();
    steps.push(json!({"text": "end"}));
    let model = home.script(json!(steps));
    let above = above.display().to_string();
    let ran = home.run(&["run", "--json", "--mode", "accept-edits", "--cwd", &above, "--model", &model, "go"], "").await;
    assert_eq!(std::fs::read_to_string(&paths[0]).unwrap(), "true\n", "{ran:?}");
    assert!(!paths[1].exists() && paths[2].exists(), "{ran:?}");
}

#[tokio::test]
async fn directory_of_a_program_that_leads_out_of_the_project_is_refused() {
    needs_linux!("sandbox");
    let server = |cwd: &str| format!("[mcp.x]\ncommand = [\"sh\", \"run.sh\"]\ncwd = \"{cwd}\"\n");
    let hook = |cwd: &str| hook("tool.execute.before", "WORK/../script.sh", &format!("cwd = \"{cwd}\""));
    for (cwd, runs) in [("$WORKSPACE/server", false), ("server", false), ("$WORKSPACE/inner", true), ("inner", true)] {
        for settings in [server(cwd), hook(cwd)] {
            let home = Home::new();
            let line = format!("echo ran >> '{}/app/got.txt'\n", home.work().display());
            home.config(&settings.replace("WORK/", &format!("{}/", home.work().display())));
            home.put("../script.sh", &line);
            home.put("evil/run.sh", &line);
            home.put("app/inner/run.sh", &line);
            symlink("../evil", home.work().join("app/server")).unwrap();
            let app = home.work().join("app").display().to_string();
            home.run(&["trust", &app], "").await;
            let ran = start(&home, &["--cwd", &app]).await;
            assert_eq!(home.get("app/got.txt").is_some(), runs, "{settings}: {ran:?}");
            let told = notices(&ran) + &results(&ran).concat();
            assert_eq!(told.contains("is outside of the project"), !runs, "{settings}: {ran:?}");
        }
    }
}

/// Launchers search packages in the directories above the one in which they start.
#[tokio::test]
async fn program_whose_own_directory_is_in_the_project_needs_trust_and_is_confined() {
    needs_linux!("sandbox");
    let probe = "cd \"$NUNCIO_WORKSPACE\"; echo ran >> got.txt; (echo x > home/written) 2>/dev/null && echo data >> got.txt";
    let cases = [
        format!("[mcp.x]\ncommand = [\"sh\", \"-c\", '''{probe}''']\n"),
        format!("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"-c\", '''{probe}''']\n"),
    ];
    for settings in cases {
        let home = Home::new();
        home.config(&settings);
        let above = home.work().join("..").canonicalize().unwrap().display().to_string();
        let ran = start(&home, &["--cwd", &above]).await;
        assert_eq!(home.get("../got.txt"), None, "{settings}: {ran:?}");
        assert_eq!(home.run(&["trust", &above], "").await.code, 0);
        let ran = start(&home, &["--cwd", &above]).await;
        let got = home.get("../got.txt").unwrap_or_else(|| panic!("{settings}: {ran:?}"));
        assert!(got.lines().all(|line| line == "ran"), "{settings}: {got}");
    }
}

#[tokio::test]
async fn directory_of_a_server_stops_the_search_for_packages() {
    let home = Home::new();
    home.config("[mcp.x]\ncommand = [\"sh\", \"-c\", \"exit 1\"]\n");
    start(&home, &[]).await;
    let work = home.data().join("mcp-work/x");
    assert_eq!(std::fs::read_to_string(work.join("package.json")).unwrap(), "{}\n");
    assert!(work.join("node_modules").is_dir());
}

#[tokio::test]
async fn name_of_the_project_is_no_code() {
    let home = Home::new();
    let out = home.work().join("told");
    let line = format!("echo $WORKSPACE > '{}'; exit 1", out.display());
    let command = json!(["sh", "-ec", line, "sh", "$WORKSPACE"]);
    home.config(&format!("[mcp.x]\ncommand = {command}\n"));
    let hostile = home.work().join("x;touch injected");
    std::fs::create_dir(&hostile).unwrap();
    let hostile = hostile.display().to_string();
    let ran = start(&home, &["--cwd", &hostile]).await;
    assert_eq!(home.get("told"), Some(format!("{hostile}\n")), "{ran:?}");
    assert!(!home.data().join("mcp-work/x/injected").exists());
}

#[tokio::test]
async fn longer_variable_names_are_not_replaced() {
    let home = Home::new();
    let out = home.work().join("told");
    let line = format!("printf '%s\\n' \"$1\" \"$TOKEN\" > '{}'; exit 1", out.display());
    let command = json!(["sh", "-c", line, "sh", "$WORKSPACE_TOKEN"]);
    home.config(&format!("[mcp.x]\ncommand = {command}\nenv = {{ TOKEN = \"$WORKSPACE_TOKEN\" }}\n"));
    home.env("WORKSPACE_TOKEN", "secret");
    let ran = start(&home, &[]).await;
    assert_eq!(home.get("told").as_deref(), Some("$WORKSPACE_TOKEN\nsecret\n"), "{ran:?}");
}

/// A value that may be a command line keeps the variable if the name of the directory is not plain.
#[tokio::test]
async fn name_of_the_project_is_no_code_of_any_program() {
    // Arguments and a variable of the program, and whether each is kept.
    let arguments = [
        (&["-c", "$WORKSPACE/x"][..], true),
        (&["-c", "$WORKSPACE"], true),
        (&["-lc", "$WORKSPACE/x"], true),
        (&["-e", "$WORKSPACE/x"], true),
        (&["-S", "$WORKSPACE/x"], true),
        (&["/c", "$WORKSPACE/x"], true),
        (&["/C", "$WORKSPACE/x"], true),
        (&["-Command", "$WORKSPACE/x"], true),
        (&["--command", "$WORKSPACE/x"], true),
        (&["--command=$WORKSPACE/x"], true),
        (&["--eval=$WORKSPACE/x"], true),
        (&["--run", "$WORKSPACE/x"], true),
        (&["-ex", "$WORKSPACE/x"], true),
        (&["cd $WORKSPACE && ls"], true),
        (&["x;$WORKSPACE"], true),
        (&["import('$WORKSPACE')"], true),
        (&["ssh", "host", "$WORKSPACE/x"], true),
        (&["$WORKSPACE"], false),
        (&["--root", "$WORKSPACE/docs"], false),
        (&["--root=$WORKSPACE"], false),
        (&["-p", "$WORKSPACE"], false),
        (&["a:$WORKSPACE:b"], false),
    ];
    let variables = [
        ("DOCS", "$WORKSPACE/docs", false),
        ("DOCS", "$WORKSPACE", false),
        ("GIT_SSH_COMMAND", "$WORKSPACE/x", true),
        ("EDITOR", "$WORKSPACE", true),
        ("HOOK", "sh $WORKSPACE/x", true),
    ];
    let variables = variables.map(|(name, value, kept)| (vec![], Some((name, value)), kept));
    let arguments = arguments.iter().map(|(arguments, kept)| (arguments.to_vec(), None, *kept));
    for (arguments, variable, kept) in arguments.chain(variables) {
        for name in ["plain-1.x", "x;touch injected", "x $(touch injected)", "x'y"] {
            let home = Home::new();
            let (name_of, value) = variable.unwrap_or(("UNUSED", ""));
            let out = home.data().join("told");
            let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" \"${name_of}\" \"$WORKSPACE\" > '{}'\n", out.display());
            let program = home.put("../record", &script).canonicalize().unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let command: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(arguments.iter().copied()).collect();
            home.config(&format!("[mcp.x]\ncommand = {}\nenv = {{ {name_of} = {} }}\n", json!(command), json!(value)));
            let directory = home.work().join(name);
            std::fs::create_dir(&directory).unwrap();
            let directory = directory.display().to_string();
            let ran = start(&home, &["--cwd", &directory]).await;
            let told = std::fs::read_to_string(&out).unwrap_or_else(|error| panic!("{arguments:?} {error}: {ran:?}"));
            let text = if variable.is_some() { value } else { arguments.last().unwrap() };
            let is_kept = kept && name != "plain-1.x";
            let expected = if is_kept { text.to_owned() } else { text.replace("$WORKSPACE", &directory) };
            assert!(told.lines().any(|line| line == expected), "{name} {arguments:?} {variable:?}: {told}");
            assert!(!is_kept || told.lines().last() == Some(&directory), "{name} {arguments:?} {variable:?}: {told:?}");
        }
    }
}
