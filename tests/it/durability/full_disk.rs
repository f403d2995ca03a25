//! A disk without space for the store.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use harness::{Home, bounded};

/// A log that cannot be written has one cause, whatever is tried after it.
#[tokio::test]
async fn full_disk_is_the_cause_of_each_error() {
    needs_sqlite!("fills the disk of nuncio.db");
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    // A small file system on the data directory, which only this process sees.
    let mount = "mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$@\"";
    let data = home.data();
    let in_namespace = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", mount]).arg(&data).arg(program).args(arguments);
        command.envs(home.variables()).env("HOME", home.work()).current_dir(home.work()).stdin(Stdio::null()).kill_on_drop(true);
        command
    };
    if !in_namespace("true", &[]).output().await.is_ok_and(|tried| tried.status.success()) {
        return;
    }
    let long: String = (0..300_000).map(|number| format!("{number} ")).collect();
    let cases = [json!([{"text": long}]), json!([{"thinking": long, "text": "end"}])];
    for steps in cases {
        let model = home.script(steps);
        let mut run = in_namespace(harness::program(), &["run", "--model", &model, "go"]);
        let ran = bounded("the error", run.output()).await.unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{errors}");
        let error = errors.split_once("nuncio:").unwrap().1;
        assert!(error.contains("disk is full") && error.contains("free disk space"), "{errors}");
        let others: Vec<&str> = errors.lines().filter(|line| line.contains("ERROR") && !line.contains("disk is full")).collect();
        assert!(others.is_empty(), "{errors}");
    }
}
