//! The scripted model.

use nuncio::internal::model::scripted::{self, Script};
use nuncio::internal::model::{Chunk, Retry};

use super::{ask, hi, request, shown};

fn without_ids(shown: String) -> String {
    let line = |line: &str| match line.strip_prefix("call ") {
        Some(call) => format!("call {}", call.split_once(' ').expect("an id").1),
        None => line.to_owned(),
    };
    shown.lines().map(|text| line(text) + "\n").collect()
}

#[tokio::test]
async fn scripted_steps_run_in_order() {
    let script = r#"{"steps":[
        {"thinking":"hm","text":"größer","chunk_chars":4,"delay_ms":10,"tool_calls":[{"name":"read","input":{"file_path":"a"}},{"name":"list"}]},
        {"text":"after","expect":"Be brief","error":{"status":429,"times":2}},
        {"expect":"the moon"}
    ]}"#;
    let model = scripted::open("scripted:x", Script::parse(script).expect("a script"));
    let started = std::time::Instant::now();
    let first = ask(model.as_ref(), request(hi())).await;
    assert!(started.elapsed().as_millis() >= 30, "a pause before each of three pieces");
    let expected = "thinking hm\ntext größ\ntext er\ncall read {\"file_path\":\"a\"}\ncall list {}\nusage 8 10 0 0\nstop EndTurn\n";
    assert_eq!(without_ids(shown(&first.chunks)), expected);
    let ids: Vec<_> =
        first.chunks.iter().filter_map(|chunk| if let Chunk::ToolCall { id, .. } = chunk { Some(id) } else { None }).collect();
    assert_ne!(ids[0], ids[1]);

    let second = ask(model.as_ref(), request(hi())).await;
    let shown_second = shown(&second.chunks);
    assert_eq!(shown_second.matches("retry ").count(), 2, "{shown_second}");
    assert!(shown_second.contains("HTTP 429 (response 1 of 2)") && shown_second.contains("text after"), "{shown_second}");

    let third = ask(model.as_ref(), request(hi())).await.error.expect("an error");
    assert_eq!(third.message, "step 3 of the script expects \"the moon\", which the request does not contain");
    assert_eq!(third.retry, Retry::Never);
    let fourth = ask(model.as_ref(), request(hi())).await;
    assert!(shown(&fourth.chunks).starts_with("text done\n"));
}

#[test]
fn errors_in_scripts_name_their_location() {
    let check = |json: &str, expected: &str| {
        let message = Script::parse(json).expect_err("a mistake").message;
        assert!(message.starts_with(expected), "{message}");
    };
    check("{", "the script: EOF");
    check(r#"{"step":[]}"#, "the script at step: unknown field `step`");
    check(r#"{"steps":[{},{"text":1}]}"#, "the script at steps[1].text: invalid type: integer `1`, expected a string");
    check(r#"{"steps":[{"chunk_chars":0}]}"#, "the script at steps[0].chunk_chars: invalid value");
    check(r#"{"steps":[{"error":{"times":2}}]}"#, "the script at steps[0].error: missing field `status`");
    check(r#"{"steps":[]} x"#, "the script: trailing characters");
}
