//! Background jobs: they continue between calls and end with their session.

use super::*;
use harness::{bounded, gone};
use harness::{marked, marker};

async fn start(world: &World, command: &str) -> String {
    let output = world.call("bash", json!({"command": command, "background": true})).await.unwrap();
    let job = output.details["job"].as_str().unwrap().to_string();
    assert_eq!(plain_text(&output.parts), format!("started job {job}: bash_output shows its output, bash_kill ends it"));
    job
}

/// Polls the job until its output or status contains `text`.
pub async fn look_until(world: &World, job: &str, text: &str) -> ToolOutput {
    bounded(text, async {
        loop {
            let output = world.call("bash_output", json!({"job": job, "since": 0})).await.unwrap();
            if plain_text(&output.parts).contains(text) {
                return output;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn job_continues_between_calls_and_output_is_read_incrementally() {
    let world = World::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.path("pipe1"), rustix::fs::Mode::RWXU).unwrap();
    let command = "echo one; read line < pipe1; echo two $line; exit 3";
    assert_eq!(start(&world, command).await, "1");
    let output = look_until(&world, "1", "one\n").await;
    assert_eq!(output.details, json!({"job": "1", "command": command, "running": true, "next": 4}));
    assert_eq!(world.told("bash_output", json!({"job": 1})).await, "ok [job 1 is still running]");
    assert_eq!(world.told("bash", json!({"command": "echo go > pipe1"})).await, "ok exit code: 0");
    look_until(&world, "1", "ended").await;
    let told = world.told("bash_output", json!({"job": "1", "since": 4})).await;
    assert_eq!(told, "ok two go\n[job 1 ended: exit code: 3]");
    assert_eq!(world.told("bash_output", json!({"job": "1"})).await, "ok [job 1 ended: exit code: 3]");
    let output = world.call("bash_output", json!({})).await.unwrap();
    assert_eq!(plain_text(&output.parts), format!("job 1 ended: exit code: 3: {command}\n"));
    assert_eq!(output.details, json!({"jobs": [{"job": "1", "command": command, "running": false, "exitCode": 3}]}));
    assert_eq!(world.told("bash_kill", json!({"job": "1"})).await, "ok job 1 had already ended: exit code: 3");
}

#[tokio::test]
async fn unknown_job_is_an_error() {
    let world = World::new();
    assert_eq!(world.told("bash_output", json!({})).await, "ok there are no background jobs");
    let none = "error there is no job 1; there are no background jobs";
    assert_eq!(world.told("bash_output", json!({"job": "1"})).await, none);
    assert_eq!(world.told("bash_kill", json!({"job": "1"})).await, none);
    start(&world, "true").await;
    assert_eq!(world.told("bash_kill", json!({"job": "one"})).await, "error there is no job one; there are jobs 1");
}

#[tokio::test]
async fn killed_job_leaves_no_processes() {
    let world = World::new();
    let marker = marker();
    let command = format!("echo started; setsid sleep 60 {marker} & (trap '' TERM; sleep 60 {marker}); true");
    let job = start(&world, &command).await;
    look_until(&world, &job, "started").await;
    assert!(!marked(&marker).is_empty());
    assert_eq!(world.told("bash_kill", json!({ "job": job })).await, "ok job 1 ended: killed");
    assert_eq!(marked(&marker), Vec::<u32>::new());
    // The shell names the end of its subshell if the signal reaches the shell last.
    let output = world.told("bash_output", json!({ "job": job, "since": 0 })).await;
    assert_eq!(output.replace("Terminated\n", ""), "ok started\n[job 1 ended: killed]");
}

#[tokio::test]
async fn jobs_end_with_their_session() {
    let mut world = World::new();
    let marker = marker();
    let job = start(&world, &format!("echo started; sleep 60 {marker}")).await;
    look_until(&world, &job, "started").await;
    world.context.shell.jobs.close().await;
    assert_eq!(marked(&marker), Vec::<u32>::new());
    let told = world.told("bash", json!({"command": "true", "background": true})).await;
    assert_eq!(told, "error bash: the session is being closed");

    world = World::new();
    let job = start(&world, &format!("echo started; sleep 60 {marker}")).await;
    look_until(&world, &job, "started").await;
    drop(world);
    gone(&marker).await;
}

#[tokio::test]
async fn jobs_are_bounded_in_number_and_time() {
    let world = World::new();
    for _ in 0..8 {
        start(&world, "sleep 60").await;
    }
    let ninth = json!({"command": "sleep 60", "background": true});
    let told = world.told("bash", ninth).await;
    assert_eq!(told, "error bash: 8 background jobs are already running; end one of them with bash_kill");
    world.call("bash_kill", json!({"job": "3"})).await.unwrap();
    let timed = world.call("bash", json!({"command": "sleep 60", "background": true, "timeout_ms": 50})).await.unwrap();
    assert_eq!(timed.details["job"], "9");
    look_until(&world, "9", "ended: timed out").await;
    for number in 10..=20 {
        assert_eq!(start(&world, "true").await, number.to_string());
        look_until(&world, &number.to_string(), "ended").await;
    }
    // The oldest ended jobs are removed from the list; running jobs are not.
    let jobs = world.call("bash_output", json!({})).await.unwrap().details["jobs"].clone();
    let jobs: Vec<&str> = jobs.as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
    assert_eq!(jobs.len(), 16);
    assert_eq!(jobs[..8], ["1", "2", "4", "5", "6", "7", "8", "12"]);
}

#[tokio::test]
async fn long_output_is_read_in_parts() {
    let world = World::new();
    let whole: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    start(&world, "seq 60000; printf 'ä'").await;
    look_until(&world, "1", "ended").await;
    // The beginning of the output is no longer in memory.
    let first = world.call("bash_output", json!({"job": "1", "since": 0})).await.unwrap();
    let artifact = first.details["artifact"].as_str().unwrap();
    let missed = whole.len() + 2 - (256 << 10);
    let told = plain_text(&first.parts);
    assert!(told.starts_with(&format!("[{missed} bytes left out; they are in {artifact}]\n")), "{}", &told[..200]);
    assert_eq!(std::fs::read_to_string(artifact).unwrap(), format!("{whole}ä"));
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(artifact).unwrap()) & 0o777, 0o600);
    // The rest is returned in parts, without gaps or repetitions.
    let (mut read, mut next) = (String::new(), missed);
    while next < whole.len() + 2 {
        let part = world.call("bash_output", json!({"job": "1", "since": next})).await.unwrap();
        let text = plain_text(&part.parts);
        let (text, status) = text.rsplit_once('[').unwrap();
        let after = part.details["next"].as_u64().unwrap() as usize;
        assert!(after > next && after - next <= 50 << 10, "{status}");
        read.push_str(&text[..after - next]);
        next = after;
    }
    assert_eq!(read, format!("{whole}ä")[missed..]);
}

#[tokio::test]
async fn job_does_not_change_the_shell_state() {
    let world = World::with_files(&[("sub/file", "")]);
    start(&world, "cd sub; export LEFT=1").await;
    look_until(&world, "1", "ended").await;
    assert_eq!(world.told("bash", json!({"command": "echo ${LEFT-unset}; ls"})).await, "ok unset\nsub\nexit code: 0");
    // A job starts in the directory of the shell, with its exported variables.
    world.call("bash", json!({"command": "cd sub; export KEPT=1"})).await.unwrap();
    start(&world, "echo $KEPT; ls").await;
    look_until(&world, "2", "1\nfile\n[job 2 ended: exit code: 0]").await;
}
