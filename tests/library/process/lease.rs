//! Commands of a node, which end with its lease, also while the node is stopped.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nuncio::Error;
use nuncio::internal::process::{Child, Command, ExitStatus, LeaseDeadline, ProcessLauncher, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use harness::{marked, marker};

use super::{DEAF, marked_command, none, read_all, read_until, supervisor};
use harness::{bounded, gone, pause, poll};

const ENDED: &str = "the command was ended because this node's lease ended";
const NOT_RUN: &str = "the command was not run because this node's lease has ended";
/// A lease that is not renewed ends after this time.
const SHORT: Duration = Duration::from_millis(300);
/// The length of the lease that the node of the last test renews until it is stopped.
const RENEWED: Duration = Duration::from_millis(600);
/// Selects the role of this binary: see [`node`].
const NODE: &str = "NUNCIO_TEST_NODE";

/// A launcher with a lease that does not end yet.
fn node_launcher() -> (Arc<LeaseDeadline>, ProcessLauncher) {
    let lease = Arc::new(LeaseDeadline::new().unwrap());
    (lease.clone(), supervisor().with_lease(lease))
}

/// Ends the lease in a short time, without another renewal. Returns the deadline.
fn renew_last(lease: &LeaseDeadline) -> Duration {
    let deadline = LeaseDeadline::now() + SHORT;
    lease.set(Some(deadline));
    deadline
}

async fn ending(child: &mut Child) -> Result<ExitStatus, Error> {
    bounded("the end of the command", child.wait()).await
}

/// Runs a line that prints one word, and returns the word.
async fn printed(launcher: &ProcessLauncher, line: &str) -> String {
    let mut child = launcher.spawn(&Command::shell(line, "/")).unwrap();
    let output = String::from_utf8(read_all(&mut child).await).unwrap();
    assert_eq!(ending(&mut child).await.unwrap().code, 0);
    output.trim().to_string()
}

/// Returns the process id of the fork server, the parent of a supervisor.
async fn fork_server(launcher: &ProcessLauncher) -> Pid {
    let pid = printed(launcher, "sed -n 's/PPid:\t//p' /proc/$PPID/status").await;
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

/// Ignores signals, has daemons as children, and writes to a file forever.
fn endless_writer(file: &Path) -> String {
    let write = format!("while :; do echo $((count += 1)) >{}; done & ", file.display());
    DEAF.replace("sleep 60 & setsid", &format!("{write} setsid"))
}

#[tokio::test]
async fn lease_that_is_not_renewed_ends_all_processes_of_its_commands() {
    let dir = tempfile::tempdir().unwrap();
    let temp = dir.path().canonicalize().unwrap();
    let file = temp.join("count");
    let sandbox = Sandbox { writable: vec![temp.clone()], temp, ..Sandbox::default() };
    for sandbox in [None, Some(sandbox)] {
        let (lease, launcher) = node_launcher();
        let marker = marker();
        let mut child = launcher.spawn(&marked_command(&endless_writer(&file), &marker).sandbox(sandbox)).unwrap();
        read_until(&mut child, "started").await;
        poll("all processes of the command", || marked(&marker).len() >= 5).await;
        let deadline = renew_last(&lease);
        assert_eq!(ending(&mut child).await.unwrap_err().message, ENDED);
        assert!(LeaseDeadline::now() >= deadline);
        assert_eq!(marked(&marker), none());
        assert!(file.exists());
    }
}

/// A program that serves over pipes, such as an MCP server.
#[tokio::test]
async fn server_ends_with_the_lease() {
    let (lease, launcher) = node_launcher();
    let marker = marker();
    let (mut child, mut input) = launcher.spawn_piped(&Command::program(["cat"], "/").env("NUNCIO_TEST", &marker)).unwrap();
    input.write_all(b"started").await.unwrap();
    read_until(&mut child, "started").await;
    renew_last(&lease);
    assert_eq!(ending(&mut child).await.unwrap_err().message, ENDED);
    assert_eq!(marked(&marker), none());
}

#[tokio::test]
async fn renewed_lease_does_not_end_commands() {
    let (lease, launcher) = node_launcher();
    let (mut child, input) = launcher.spawn_piped(&Command::program(["sh", "-c", "echo started; cat; exit 3"], "/")).unwrap();
    read_until(&mut child, "started").await;
    // Shorter than the time after which a supervisor looks at the deadline anyway.
    let length = 3 * SHORT;
    let until = LeaseDeadline::now() + 2 * length;
    let renewed = || {
        lease.set(Some(LeaseDeadline::now() + length));
        LeaseDeadline::now() > until
    };
    poll("two lengths of the lease", renewed).await;
    lease.set(None);
    drop(input);
    assert_eq!(ending(&mut child).await.unwrap().code, 3);
}

#[tokio::test]
async fn lease_without_a_deadline_changes_nothing() {
    let (lease, launcher) = node_launcher();
    for set in [false, true] {
        if set {
            lease.set(None);
        }
        for (line, code) in [("cd /usr", 0), ("exit 7", 7), ("kill -9 $$", 137), ("sleep 60 & exit 4", 4)] {
            let command = Command::shell(line, "/");
            let expected = ending(&mut supervisor().spawn(&command).unwrap()).await.unwrap();
            assert_eq!(ending(&mut launcher.spawn(&command).unwrap()).await.unwrap(), expected);
            assert_eq!(expected.code, code, "{line}");
        }
    }
}

#[tokio::test]
async fn no_command_starts_after_the_lease() {
    let (lease, launcher) = node_launcher();
    let server = fork_server(&launcher).await;
    for deadline in [Duration::ZERO, Duration::from_millis(1), LeaseDeadline::now()] {
        lease.set(Some(deadline));
        assert_eq!(launcher.spawn(&Command::shell("true", "/")).unwrap_err().message, NOT_RUN);
    }

    // The lease ends while the order of the command waits.
    lease.set(None);
    pause(server).await;
    let mut child = launcher.spawn(&Command::shell("echo started", "/")).unwrap();
    lease.set(Some(LeaseDeadline::now()));
    kill_process(server, Signal::CONT).unwrap();
    assert_eq!(read_all(&mut child).await, b"");
    assert_eq!(ending(&mut child).await.unwrap_err().message, NOT_RUN);

    // The next lease has the same fork server.
    lease.set(Some(LeaseDeadline::now() + Duration::from_secs(60)));
    assert_eq!(fork_server(&launcher).await, server);
}

#[tokio::test]
async fn restarted_fork_server_has_the_lease() {
    let (lease, launcher) = node_launcher();
    let first = fork_server(&launcher).await;
    kill_process(first, Signal::KILL).unwrap();
    let second = async {
        loop {
            // Sent before the first server has ended, a command ends with it.
            let mut child = launcher.spawn(&Command::shell("echo started; sleep 60", "/")).unwrap();
            let mut output = Vec::new();
            if child.output.read(&mut output).await.unwrap() > 0 {
                return child;
            }
        }
    };
    let mut child = bounded("a new fork server", second).await;
    renew_last(&lease);
    assert_eq!(ending(&mut child).await.unwrap_err().message, ENDED);
}

/// Runs the node of the next test in a process that the test can stop: this binary, with [`NODE`]
/// set. Renews its lease until its command has ended, then prints the error.
#[tokio::test]
async fn node() {
    if std::env::var_os(NODE).is_none() {
        return;
    }
    let mut marker = String::new();
    std::io::stdin().read_line(&mut marker).unwrap();
    let (lease, launcher) = node_launcher();
    let mut child = launcher.spawn(&marked_command(DEAF, marker.trim())).unwrap();
    read_until(&mut child, "started").await;
    let renew = || lease.set(Some(LeaseDeadline::now() + RENEWED));
    // Before the word after which the test stops this process: without a deadline the command would
    // not end.
    renew();
    println!("\nrunning");
    let renewed = poll("the end of the command", || {
        renew();
        false
    });
    tokio::select! {
        ended = child.wait() => println!("\nended: {}", ended.unwrap_err().message),
        () = renewed => {}
    }
}

#[tokio::test]
async fn commands_of_a_stopped_node_end_with_its_lease() {
    let marker = marker();
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "process::lease::node"]).env(NODE, "1").kill_on_drop(true);
    let mut node = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    node.stdin.take().unwrap().write_all(format!("{marker}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let running = async { while lines.next_line().await.unwrap().expect("a running command") != "running" {} };
    bounded("the start of the command", running).await;
    poll("all processes of the command", || marked(&marker).len() >= 5).await;

    let pid = node.id().unwrap();
    let process = Pid::from_raw(pid as i32).unwrap();
    pause(process).await;
    let end = LeaseDeadline::now() + RENEWED;
    poll("the end of the lease", || LeaseDeadline::now() > end).await;
    gone(&marker).await;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("State:\tT"), "{status}");

    kill_process(process, Signal::CONT).unwrap();
    let mut rest = String::new();
    bounded("the end of the node", lines.into_inner().read_to_string(&mut rest)).await.unwrap();
    assert!(rest.contains(&format!("\nended: {ENDED}\n")), "{rest}");
    assert!(node.wait().await.unwrap().success());
}
