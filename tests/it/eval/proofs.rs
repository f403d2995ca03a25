//! `nuncio eval --prove`: which tasks are proved, and why the others are not.

use super::{cache, put_task};
use harness::Home;

/// Name, changed files, and the line of the output.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

const CASES: &[Case<'_>] = &[
    ("good", &[], "ok   good, which changes 1 file\n"),
    (
        "reward",
        &[("tests/test.sh", "sh total.sh | grep -q 4 && echo 1 > $LOGS/reward.txt || echo 0 > $LOGS/reward.txt\n")],
        "ok   reward, which changes 1 file\n",
    ),
    (
        "json",
        &[(
            "tests/test.sh",
            "sh total.sh | grep -q 4 && one=1 || one=0; echo \"{\\\"reward\\\": $one}\" > $LOGS/reward.json; exit 1\n",
        )],
        "ok   json, which changes 1 file\n",
    ),
    (
        "answer",
        &[("tests/test.sh", "grep -q four $ANSWER\n"), ("solution/solve.sh", "echo four > $ANSWER\n")],
        "ok   answer, which changes no file\n",
    ),
    (
        "helper",
        &[("tests/test.sh", "sh $TESTS/helper.sh\n"), ("tests/helper.sh", "test \"$(sh total.sh)\" = 4\n")],
        "ok   helper, which changes 1 file\n",
    ),
    ("passing", &[("tests/test.sh", "true\n")], "FAIL passing: test.sh passes on the untouched start\n"),
    ("failing", &[("tests/test.sh", "echo never; false\n")], "FAIL failing: test.sh fails after solve.sh: never\n"),
    ("lost", &[("tests/test.sh", "no-such-program\n")], "FAIL lost: untouched: test.sh ended with exit code 127"),
    ("crash", &[("solution/solve.sh", "echo oops; exit 7\n")], "FAIL crash: solve.sh failed with exit code 7: oops\n"),
    ("setup", &[("environment/setup.sh", "exit 3\n")], "FAIL setup: environment/setup.sh failed with exit code 3"),
    ("unsolved", &[("solution/solve.sh", "")], "FAIL unsolved: solution/solve.sh is missing\n"),
    (
        "endless",
        &[("task.toml", "[verifier]\ntimeout_sec = 0.2\n"), ("tests/test.sh", "sleep 1000\n")],
        "FAIL endless: untouched: test.sh reached its time limit\n",
    ),
];

#[tokio::test]
async fn tasks_are_proved_or_say_why_not() {
    needs_linux!("sandbox");
    let home = Home::new();
    CASES.iter().for_each(|(name, changes, _)| put_task(&home, name, changes));
    let ran = home.run(&["eval", "../tasks", "--prove"], "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    for (name, _, expected) in CASES {
        assert!(ran.stdout.contains(expected), "{name}: {ran:?}");
    }
    let good = CASES.iter().filter(|(_, _, line)| line.starts_with("ok")).count();
    assert_eq!(std::fs::read_dir(cache(&home).join("proofs")).unwrap().count(), good, "records of proofs");
}

/// A script of a task has no network and writes only in the directories of the run.
#[tokio::test]
async fn scripts_of_tasks_are_confined() {
    needs_linux!("sandbox");
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let escapes = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && exit 0\ntouch {work}/x && exit 0\n\
         cat {work}/../tasks/escape/tests/test.sh && exit 0\nexit 1\n",
        work = home.work().display(),
    );
    put_task(&home, "escape", &[("tests/test.sh", &escapes)]);
    let ran = home.run(&["eval", "../tasks", "--prove"], "").await;
    assert!(ran.stdout.contains("FAIL escape: test.sh fails after solve.sh"), "an escape succeeded: {ran:?}");
}

/// One process at a time uses the directories.
#[tokio::test]
async fn second_process_is_refused() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    std::fs::create_dir_all(cache(&home)).unwrap();
    let lock = std::fs::File::create(cache(&home).join("lock")).unwrap();
    lock.lock().unwrap();
    let ran = home.run(&["eval", "../tasks", "--prove"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("another nuncio eval runs in"), "{ran:?}");
    drop(lock);
    assert_eq!(home.run(&["eval", "../tasks", "--prove"], "").await.code, 0);
}
