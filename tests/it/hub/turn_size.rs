//! Limits on the size of what a hosted agent sends in one turn.

use harness::limits::MODEL_ANSWER_BYTES_MAX;

use super::{PLAYED, bodies, home, home_of, session};
use harness::text;

#[tokio::test]
async fn turn_with_too_much_text_fails_and_its_rest_is_not_recorded() {
    for (kind, script) in PLAYED {
        let home = home_of(kind, script, &[], "").await;
        let ran = home.run(&["run", "--agent", "other", "flood 9"], "").await;
        assert!(ran.code != 0 && ran.stderr.contains("more than 8 MiB of text"), "{kind}: {}", ran.stderr);
        assert_eq!(ran.stdout.matches('x').count(), MODEL_ANSWER_BYTES_MAX, "{kind}");
        // The next turn uses a new process.
        let ran = home.run(&["run", "--continue", "say"], "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello, world\n"), "{kind}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn permission_requests_count_toward_the_size_of_the_turn() {
    let home = home(&[]).await;
    let ran = home.run(&["run", "--agent", "other", "flood-questions 14"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("or 64 MiB in all"), "{}", ran.stderr);
    let ran = home.run(&["run", "--agent", "other", "flood-questions 3"], "").await;
    assert!(ran.stdout.contains("done"), "{ran:?}");
}

#[tokio::test]
async fn updates_of_a_call_end_before_its_result() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (stop, updates) = agent.turn(&session, "flood-output 50").await;
    let told = ".".repeat(50) + "done";
    assert_eq!((stop, text(&updates, "agent_message_chunk")), ("end_turn".into(), told));
    agent.finish().await;
    let live = bodies(&home, &session, &["tool.updated"]).await;
    let recorded = live.iter().filter(|update| update["content"].is_array()).count();
    assert_eq!(recorded, MODEL_ANSWER_BYTES_MAX / (200 << 10));
    let result = bodies(&home, &session, &["tool.completed"]).await.remove(0);
    assert!(result["output"][0]["text"].as_str().unwrap().starts_with("49 xx"), "the last content is the result");
}
