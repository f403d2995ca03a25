//! Commands under their supervisor: exit status, output, and the end of all their processes.

mod lease;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::{marked, marker};
use nuncio::internal::process::{Child, Command, ExitStatus, ProcessLauncher};
use tokio::io::AsyncWriteExt;

fn supervisor() -> ProcessLauncher {
    ProcessLauncher::new(harness::program())
}

fn marked_command(line: &str, marker: &str) -> Command {
    Command::shell(line.replace("sleep 60", &format!("sleep 60 {marker}")), "/").env("NUNCIO_TEST", marker)
}

fn none() -> Vec<u32> {
    Vec::new()
}

async fn read_all(child: &mut Child) -> Vec<u8> {
    let mut output = Vec::new();
    while child.output.read(&mut output).await.unwrap() > 0 {}
    output
}

async fn read_until(child: &mut Child, text: &str) {
    let mut output = Vec::new();
    while !output.windows(text.len()).any(|window| window == text.as_bytes()) {
        assert!(child.output.read(&mut output).await.unwrap() > 0, "ended with {}", String::from_utf8_lossy(&output));
    }
}

/// The descriptors of `ls`, which lists a directory. With the POSIX calls, it also has the mark of
/// its command.
const DESCRIPTORS: &str = if harness::POSIX { "0 1 2 3 64 " } else { "0 1 2 3 " };

#[tokio::test]
async fn commands_report_exit_code_and_working_directory() {
    let cases: &[(&str, i32, &str, Option<&str>)] = &[
        ("true", 0, "", Some("/")),
        ("exit 7", 7, "", Some("/")),
        ("kill -9 $$", 137, "", None),
        ("kill -TERM $$", 143, "", Some("/")),
        ("cd /usr && false", 1, "", Some("/usr")),
        ("cd /usr; exec true", 0, "", None),
        ("echo a; echo b >&2; echo c; echo d >&2", 0, "a\nb\nc\nd\n", Some("/")),
        ("cat; echo read $?", 0, "read 0\n", Some("/")),
        ("read line; echo $?", 0, "1\n", Some("/")),
        ("echo $# $0", 0, "0 bash\n", Some("/")),
        ("ulimit -Sn", 0, "1024\n", Some("/")),
        ("set -euo pipefail; cd /usr; false; echo not here", 1, "", Some("/usr")),
        ("trap 'echo bye' EXIT; echo hi", 0, "hi\nbye\n", None),
        ("ls /proc/self/fd | tr '\\n' ' '", 0, DESCRIPTORS, Some("/")),
        ("cat <<'X'\n$a 'b' \"c\"\nX", 0, "$a 'b' \"c\"\n", Some("/")),
    ];
    for (line, code, output, cwd) in cases {
        let mut child = supervisor().spawn(&Command::shell(*line, "/")).unwrap();
        let said = read_all(&mut child).await;
        let status = child.wait().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&said), *output, "{line}");
        assert_eq!((status.code, status.cwd), (*code, cwd.map(PathBuf::from)), "{line}");
    }
}

/// A process that the command leaves running may write for a short time before it is ended.
#[tokio::test]
async fn output_of_left_process_is_read() {
    let mut said = String::new();
    for _ in 0..20 {
        let mut child = supervisor().spawn(&Command::shell("echo early; (sleep 0.01; echo late) &", "/")).unwrap();
        said = String::from_utf8(read_all(&mut child).await).unwrap();
        assert_eq!(child.wait().await.unwrap().code, 0);
        if said == "early\nlate\n" {
            return;
        }
    }
    panic!("{said}");
}

#[tokio::test]
async fn programs_that_cannot_run_report_an_error() {
    let mut child = supervisor().spawn(&Command::program(["nuncio-no-such-program"], "/")).unwrap();
    let said = String::from_utf8(read_all(&mut child).await).unwrap();
    assert_eq!(child.wait().await.unwrap().code, 127);
    assert!(said.contains("nuncio-no-such-program: No such file"), "{said}");

    let mut child = supervisor().spawn(&Command::program(["/"], "/")).unwrap();
    read_all(&mut child).await;
    assert_eq!(child.wait().await.unwrap().code, 126);
}

#[tokio::test]
async fn environment_changes_apply_only_to_the_command() {
    let command = Command::shell("echo ${SET_HERE-unset} ${HOME-unset} $PPID | cut -d' ' -f1,2", "/");
    let mut child = supervisor().spawn(&command.env("SET_HERE", "set").env_remove("HOME")).unwrap();
    assert_eq!(read_all(&mut child).await, b"set unset\n");
}

const TREE: &str = "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60; true' &) ; env -i sleep 60 & echo started; wait";
const DEAF: &str =
    "trap '' TERM HUP INT; sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60; true' &) ; echo started; wait; wait; sleep 60";
const BACKGROUND: &str = "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60; true' &)";

/// Starts `line`, waits for `started`, and returns the child and the number of its processes.
async fn started(line: &str, marker: &str) -> (Child, usize) {
    let mut child = supervisor().spawn(&marked_command(line, marker)).unwrap();
    read_until(&mut child, "started").await;
    let running = marked(marker).len();
    (child, running)
}

#[tokio::test]
async fn ended_command_leaves_no_processes() {
    for (line, longest) in [("echo started; sleep 60", 150), (TREE, 150), (DEAF, 600)] {
        let mut quickest = Duration::MAX;
        for _ in 0..20 {
            let marker = marker();
            let (child, running) = started(line, &marker).await;
            assert!(running >= 1, "{line}: {running} running");
            let before = Instant::now();
            child.end().await.unwrap();
            quickest = quickest.min(before.elapsed());
            assert_eq!(marked(&marker), none(), "{line}");
            if quickest < Duration::from_millis(longest) {
                break;
            }
        }
        assert!(quickest < Duration::from_millis(longest), "{line} took {quickest:?}");
    }
}

#[tokio::test]
async fn dropped_command_leaves_no_processes() {
    for line in [TREE, DEAF] {
        let marker = marker();
        let (child, _) = started(line, &marker).await;
        let Child { mut output, ending } = child;
        drop(ending);
        let mut rest = Vec::new();
        let end = async { while output.read(&mut rest).await.unwrap() > 0 {} };
        tokio::time::timeout(Duration::from_secs(10), end).await.unwrap();
        let left = marked(&marker);
        // The pipe closes when the supervisor ends; its entry in /proc may remain for a moment.
        assert!(left.len() <= 1, "{line}: {left:?}");
    }
}

#[tokio::test]
async fn background_processes_end_with_their_command() {
    for line in [BACKGROUND, "set -m; sleep 60 & sleep 60 &", "trap '' TERM; sleep 60 & exit 3"] {
        let marker = marker();
        let mut child = supervisor().spawn(&marked_command(line, &marker)).unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(status.code, if line.ends_with('3') { 3 } else { 0 });
        assert_eq!(marked(&marker), none(), "{line}");
    }
}

#[tokio::test]
async fn signals_to_the_supervisor_end_the_command() {
    for signal in ["TERM", "INT", "HUP"] {
        let marker = marker();
        let mut child = supervisor().spawn(&marked_command(&format!("sleep 60 & kill -{signal} $PPID; wait"), &marker)).unwrap();
        child.wait().await.unwrap();
        assert_eq!(marked(&marker), none(), "{signal}");
    }
}

#[tokio::test]
async fn killed_supervisor_leaves_no_processes() {
    let marker = marker();
    let line = &TREE.replace("wait", "kill -9 $PPID; sleep 60");
    let mut child = supervisor().spawn(&marked_command(line, &marker)).unwrap();
    assert_eq!(child.wait().await.unwrap(), ExitStatus { code: 137, ..ExitStatus::default() });
    assert_eq!(marked(&marker), none());
}

#[tokio::test]
async fn piped_program_receives_input_and_returns_output() {
    let marker = marker();
    let script = format!(
        "import sys  # {marker}\nsys.stderr.write('lost\\n')\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"
    );
    let command = Command::program(["python3", "-c", &script], "/");
    let (mut child, mut input) = supervisor().spawn_piped(&command).unwrap();
    for (asked, answer) in [("abc", "cba\n"), ("x", "x\n")] {
        input.write_all(format!("{asked}\n").as_bytes()).await.unwrap();
        let mut said = Vec::new();
        while said.len() < answer.len() {
            assert!(child.output.read(&mut said).await.unwrap() > 0, "{}", String::from_utf8_lossy(&said));
        }
        assert_eq!(String::from_utf8_lossy(&said), answer);
    }
    drop(input);
    assert_eq!(read_all(&mut child).await, b"");
    assert_eq!(child.wait().await.unwrap().code, 0);

    // A program that waits for input ends when its `Child` is ended.
    let (child, input) = supervisor().spawn_piped(&command).unwrap();
    child.end().await.unwrap();
    assert_eq!(marked(&marker), none());
    drop(input);

    let (mut child, mut input) = supervisor().spawn_piped(&Command::program(["nuncio-no-such-program"], "/")).unwrap();
    assert_eq!(read_all(&mut child).await, b"");
    assert_eq!(child.wait().await.unwrap().code, 127);
    assert!(input.write_all(b"anybody?").await.is_err());
}

#[tokio::test]
async fn bytes_that_are_not_utf8_reach_the_command_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"dir\xff\xfe\n");
    let directory = temp.path().canonicalize().unwrap().join(name);
    std::fs::create_dir(&directory).unwrap();
    let script = OsStr::new("pwd; printf '%s|' \"$1\" \"$VALUE\" \"$TMPDIR\"; echo >file");
    let arguments = [OsStr::new("sh"), OsStr::new("-c"), script, OsStr::new("sh"), OsStr::from_bytes(b"\xf0\x28\\\"")];
    let (writable, temp) = (vec![directory.clone()], directory.clone());
    let sandbox = nuncio::internal::process::Sandbox { writable, temp, ..Default::default() };
    for sandbox in [None, Some(sandbox)] {
        let confined = sandbox.is_some();
        let command = Command::program(arguments, &directory).env("VALUE", OsStr::from_bytes(b"a\x80\r\nb")).env("TMPDIR", "x");
        let mut child = supervisor().spawn(&command.sandbox(sandbox)).unwrap();
        let temp = if confined { directory.as_os_str().as_bytes() } else { b"x" };
        let expected = [directory.as_os_str().as_bytes(), b"\n\xf0\x28\\\"|a\x80\r\nb|", temp, b"|"].concat();
        assert_eq!(read_all(&mut child).await, expected);
        assert_eq!(child.wait().await.unwrap().code, 0);
    }
}

#[tokio::test]
async fn command_is_killed_before_nuncio_when_memory_runs_out() {
    needs_linux!("required sandbox");
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    let line = "cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'; cat /proc/$PPID/oom_score_adj";
    let temp = tempfile::tempdir().unwrap();
    let sandbox =
        nuncio::internal::process::Sandbox { temp: temp.path().canonicalize().unwrap(), required: true, ..Default::default() };
    for sandbox in [None, Some(sandbox)] {
        let mut child = supervisor().spawn(&Command::shell(line, "/").sandbox(sandbox.clone())).unwrap();
        let said = String::from_utf8(read_all(&mut child).await).unwrap();
        child.wait().await.unwrap();
        let scores: Vec<i32> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(scores.len(), 3, "{said}");
        assert!(scores[0] >= own.max(500) && scores[1] == scores[0], "{sandbox:?}: {scores:?}");
        assert_eq!(scores[2], own, "the supervisor outlives its command");
    }
}

#[test]
fn close_range_is_called_by_system_call_number() {
    if cfg!(target_env = "musl") {
        eprintln!("skipped: {}: the symbol matters only with glibc; musl is linked statically", module_path!());
        return;
    }
    // The symbol close_range requires glibc 2.34.
    let binary = std::fs::read(harness::program()).unwrap();
    assert!(memchr::memmem::find(&binary, b"\0close_range\0").is_none());
}

#[tokio::test]
async fn processes_of_the_same_user_cannot_inspect_nuncio() {
    needs_linux!("protection of memory");
    use std::os::unix::fs::MetadataExt;
    // The files in /proc/PID that require the permission to trace belong to root when the process
    // is not dumpable.
    const NOBODY: u32 = 65_534;
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let mut command = tokio::process::Command::new(harness::program());
    command.arg("acp").current_dir(dir.path()).env("NUNCIO_HOME", &home).kill_on_drop(true);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    if rustix::process::geteuid().is_root() {
        for path in [dir.path(), &home] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut agent = command.spawn().unwrap();
    let (mut stdin, mut stdout) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stdin
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n")
        .await
        .unwrap();
    assert!(stdout.read_u8().await.is_ok());
    let owner = std::fs::metadata(format!("/proc/{}/environ", agent.id().unwrap())).unwrap().uid();
    assert_eq!(owner, 0);
}
