//! The `bash` tool in the foreground.

use super::*;

#[tokio::test]
async fn command_returns_output_and_exit_code() {
    let world = World::with_files(&[("sub/file", "x")]);
    let cases = [
        ("echo out; echo err >&2; echo out", "ok out\nerr\nout\nexit code: 0"),
        ("exit 3", "ok exit code: 3"),
        ("printf 'no end'", "ok no end\nexit code: 0"),
        ("printf 'a\\377b\\n'", "ok a\u{fffd}b\nexit code: 0"),
        ("kill -9 $$", "ok exit code: 137\n[working directory and exported variables were not kept]"),
        ("cat", "ok exit code: 0"),
        ("echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $TERM", "ok cat cat 0 dumb\nexit code: 0"),
        ("if", "ok bash: eval: line 2: syntax error: unexpected end of file from `if' command on line 1\nexit code: 2"),
    ];
    for (command, told) in cases {
        let told_now = world.told("bash", json!({ "command": command })).await;
        match command {
            "if" => assert!(told_now.contains("syntax error") && told_now.ends_with("exit code: 2"), "{told_now}"),
            _ => assert_eq!(told_now, told, "{command}"),
        }
    }
}

#[tokio::test]
async fn working_directory_is_kept_between_commands() {
    let world = World::with_files(&[("sub/deep/file", "x")]);
    let cases = [
        (json!({"command": "cd sub; A=1"}), "ok exit code: 0".to_owned()),
        (json!({"command": "ls; echo [$A]"}), "ok deep\n[]\nexit code: 0".into()),
        (json!({"command": "cat file", "cwd": "sub/deep"}), "ok x\nexit code: 0".into()),
        (json!({"command": "echo $A", "env": {"A": 5}}), "ok 5\nexit code: 0".into()),
        (json!({"command": "cd deep && false"}), "ok exit code: 1".into()),
        (json!({"command": "cat file; rm -r ../../sub"}), "ok x\nexit code: 0".into()),
        (json!({"command": "pwd"}), format!("ok {}\nexit code: 0", world.path("").display()).replace("/\n", "\n")),
        (json!({"command": "pwd", "cwd": "gone"}), format!("error bash: cwd: {} is not a directory", world.path("gone").display())),
        (json!({"command": "true", "env": {"A=B": "1"}}), "error bash: env: \"A=B\" cannot be set".into()),
        (json!({"command": "echo a\0b"}), "error bash: command: contains a NUL character".into()),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("bash", input.clone()).await, told, "{input}");
    }
}

#[tokio::test]
async fn exported_variables_are_kept_between_commands() {
    let world = World::new();
    let cases = [
        (json!({"command": "export A=1 B='two words'; C=3"}), "exit code: 0"),
        (json!({"command": "echo $A $B [$C]"}), "1 two words []\nexit code: 0"),
        (json!({"command": "unset A; export C=; declare -x D; declare -ax E=(1 2); f() { :; }; export -f f"}), "exit code: 0"),
        (
            json!({"command": "echo ${A-unset} $B [${C-unset}] ${D-unset} ${E-unset}"}),
            "unset two words [] unset unset\nexit code: 0",
        ),
        // Inherited variables can be unset; variables of one call apply only to that call.
        (json!({"command": "unset HOME"}), "exit code: 0"),
        (json!({"command": "echo ${HOME-unset} $B; B=4", "env": {"B": "given"}}), "unset given\nexit code: 0"),
        (json!({"command": "echo ${HOME-unset} $B", "env": {"HOME": "given"}}), "given 4\nexit code: 0"),
        // Exports are kept after any exit code and any shell option.
        (json!({"command": "set -eu; export B=5; false"}), "exit code: 1"),
        (json!({"command": "echo $B; export B=6; exit 3"}), "5\nexit code: 3"),
        (json!({"command": "echo $B; set -Cf; IFS=; set -o posix; export B='7 7'"}), "6\nexit code: 0"),
        (json!({"command": "set -x; echo $B"}), "++ echo 7 7\n7 7\nexit code: 0"),
        // Exports are not kept after exec, after a kill, or with an EXIT trap.
        (json!({"command": "export B=8; exec true"}), "exit code: 0\n[working directory and exported variables were not kept]"),
        (json!({"command": "export B=8; kill -9 $$"}), "exit code: 137\n[working directory and exported variables were not kept]"),
        (
            json!({"command": "export B=8; trap 'echo bye' EXIT"}),
            "bye\nexit code: 0\n[working directory and exported variables were not kept]",
        ),
        (json!({"command": "(export B=8); echo $B"}), "7 7\nexit code: 0"),
        // Variables that nuncio sets keep their values.
        (json!({"command": "export TERM=xterm PAGER=less SHLVL=7 KEY=mine"}), "exit code: 0"),
        (json!({"command": "echo $TERM $PAGER $((SHLVL < 7)) $PWD", "cwd": "/"}), "dumb cat 1 /\nexit code: 0"),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("bash", input.clone()).await, format!("ok {told}"), "{input}");
    }
}

#[tokio::test]
async fn exported_values_are_kept_byte_for_byte() {
    let world = World::new();
    let sh = world.path("bin/sh");
    std::fs::create_dir(sh.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/bin/sh", &sh).unwrap();
    let octal = |byte: u8| format!("\\{byte:03o}");
    let values: [&[u8]; 14] = [
        b"",
        b"it's \"quoted\" \\ `x` $x ${x} !x",
        b"\n",
        b"a\nb\n\n",
        b"\ndeclare -x A=\"b\"\n",
        b"\x1b[31m\x01\x7f\t\r\x0b\x0c\x07\x08",
        b"\xff\xfe tail",
        "ä € 😀 \u{a0}\u{200b}".as_bytes(),
        "ä\n".as_bytes(),
        b"'",
        b"$'a'",
        b"\\n\\",
        b"=a=b=",
        b" ( [0]=\"a\" ) ",
    ];
    // Bash in two locales, and the sh of the system.
    for env in [json!({"LC_ALL": "C"}), json!({"LC_ALL": "C.UTF-8"}), json!({"PATH": sh.parent().unwrap()})] {
        for value in values {
            // The dot protects final line feeds, which `$(…)` would strip.
            let written: String = value.iter().map(|byte| octal(*byte)).collect();
            let export = format!("ODD=$(printf '{written}.'); export ODD=\"${{ODD%.}}\"");
            assert_eq!(world.told("bash", json!({"command": export, "env": env})).await, "ok exit code: 0");
            let shown = world.told("bash", json!({"command": "printf %s \"$ODD\" | od -An -v -to1"})).await;
            let shown: String = shown.split_whitespace().filter(|word| word.len() == 3).map(|word| format!("\\{word}")).collect();
            assert_eq!(shown, written, "{env} {value:?}");
        }
    }
}

#[tokio::test]
async fn oversized_exports_are_discarded_and_reported() {
    let world = World::new();
    let command = "export KEPT=1";
    assert_eq!(world.told("bash", json!({ "command": command })).await, "ok exit code: 0");
    let told = world.told("bash", json!({"command": "export KEPT=2 BIG=$(printf %040000d 0)"})).await;
    assert_eq!(told, "ok exit code: 0\n[exported variables were not kept: more than 32 KiB]");
    assert_eq!(world.told("bash", json!({"command": "echo $KEPT ${BIG-unset}"})).await, "ok 1 unset\nexit code: 0");
}

#[tokio::test]
async fn secret_variables_are_not_passed_to_commands() {
    let mut world = World::new();
    world.context.secrets = Arc::new(["PATH".to_owned(), "HOME".to_owned()]);
    let told = world.told("bash", json!({"command": "echo ${HOME-unset}"})).await;
    assert_eq!(told, "ok unset\nexit code: 0");
    // A secret variable that a command exports is not passed to the next command.
    world.call("bash", json!({"command": "export HOME=mine"})).await.unwrap();
    assert_eq!(world.told("bash", json!({"command": "echo ${HOME-unset}"})).await, "ok unset\nexit code: 0");
}

#[tokio::test]
async fn details_contain_exit_code_and_duration() {
    let world = World::new();
    let mut details = world.call("bash", json!({"command": "exit 4"})).await.unwrap().details;
    assert!(details["durationMs"].take().as_u64().unwrap() < 5_000);
    assert_eq!(details, json!({"command": "exit 4", "exitCode": 4, "durationMs": null, "truncated": false}));
}

#[tokio::test]
async fn long_output_is_truncated_and_saved_as_artifact() {
    let world = World::new();
    let output = world.call("bash", json!({"command": "seq 100000"})).await.unwrap();
    let told = plain_text(&output.parts);
    let whole: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let artifact = output.details["artifact"].as_str().unwrap();
    assert_eq!(output.details["truncated"], true);
    assert_eq!(std::fs::read_to_string(artifact).unwrap(), whole);
    assert!(told.len() < 52_000 && told.starts_with("1\n2\n") && told.ends_with("\n100000\nexit code: 0"), "{} bytes", told.len());
    assert!(told.contains(&format!("bytes left out; all {} bytes are in {artifact}]", whole.len())), "{told}");
    assert!(world.context.workspace.resolve(artifact).artifact);
}

#[tokio::test]
async fn artifact_of_very_long_output_is_capped() {
    let world = World::new();
    let output = world.call("bash", json!({"command": "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end"})).await.unwrap();
    let told = plain_text(&output.parts);
    let artifact = output.details["artifact"].as_str().unwrap();
    assert_eq!(std::fs::metadata(artifact).unwrap().len(), 16 << 20);
    assert!(told.contains("the first 16 MiB of all 20000005 bytes are in"), "{}", &told[25_000..26_000]);
    assert!(told.ends_with("x\nend\nexit code: 0"));
}

#[tokio::test]
async fn timeout_error_includes_earlier_output() {
    let world = World::new();
    let told = world.told("bash", json!({"command": "echo before; sleep 60", "timeout_ms": 2000})).await;
    let expected = "error before\ntimed out after 2000 ms; all its processes were ended; set a longer timeout_ms if needed";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn cancelled_command_ends_and_reports_progress() {
    let mut world = World::new();
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, cancel, go) = (shown.clone(), world.context.cancel.clone(), world.path("go"));
    world.context.progress = Arc::new(move |content| {
        let [ToolContent::Content { content: Part::Text { text } }] = content.as_slice() else { panic!("{content:?}") };
        seen.lock().unwrap().push(text.clone());
        std::fs::write(&go, "").unwrap();
        if text.contains("two") {
            cancel.cancel();
        }
    });
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; sleep 60";
    let told = world.told("bash", json!({ "command": command })).await;
    assert_eq!(told, "error one\ntwo\ncancelled; all its processes were ended");
    assert_eq!(*shown.lock().unwrap(), ["one\n", "one\ntwo\n"]);
}

#[tokio::test]
async fn endless_output_is_shown_and_can_be_cancelled() {
    let mut world = World::new();
    let cancel = world.context.cancel.clone();
    world.context.progress = Arc::new(move |content| {
        assert!(plain_content(&content).len() < 9_000);
        cancel.cancel();
    });
    let told = world.told("bash", json!({"command": "yes nuncio"})).await;
    // The output usually ends within a line.
    let output = told.strip_prefix("error ").and_then(|told| told.strip_suffix("\ncancelled; all its processes were ended"));
    let output = output.unwrap_or_else(|| panic!("{told}"));
    assert!(output.starts_with("nuncio\n") && output.contains("\nnuncio\n"), "{told}");
    assert!("nuncio".starts_with(output.lines().last().unwrap()), "{told}");
}

fn plain_content(content: &[ToolContent]) -> String {
    let [ToolContent::Content { content }] = content else { panic!("{content:?}") };
    content.as_text().into_owned()
}
