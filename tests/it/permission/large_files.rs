//! Requests about changes of files that are too long to be shown whole.

use serde_json::{Value, json};

use harness::{Home, Reply};

#[tokio::test]
async fn request_shows_the_changed_lines_of_a_long_file() {
    let home = Home::new();
    let mut long: String = (0..80_000).map(|number| format!("line {number} of the long file\n")).collect();
    long.insert_str(0, "````\n");
    home.put("long.txt", &long);
    let edit = |file: &str, old: &str, new: &str| {
        let input = json!({"file_path": file, "old_string": old, "new_string": new});
        json!({"tool_calls": [{"name": "edit", "input": input}]})
    };
    let new = "a new line\n".repeat(40_000);
    let steps = json!([
        edit("long.txt", "line 40000 of", "row 40000 of"),
        edit("long.txt", "````\n", "```` two\n"),
        {"tool_calls": [{"name": "write", "input": {"file_path": "new.txt", "content": new}}]},
        {"text": "done"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Pick("allow_once");
    agent.turn(&session, "go").await;
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission");
    let contents: Vec<&Value> = asked.map(|frame| &frame["params"]["toolCall"]["content"]).collect();
    let texts: Vec<&str> = contents.iter().map(|content| content[0]["content"]["text"].as_str().unwrap()).collect();
    let bytes = long.len() - 1;
    let changed =
        format!("long.txt: {bytes} bytes, of which only the changed lines are shown:\n\n```diff\n--- a/long.txt\n+++ b/long.txt\n");
    let expected = "-line 40000 of the long file\n+row 40000 of the long file\n line 40001 of the long file\n";
    assert!(texts[0].starts_with(&(changed + "@@ ")) && texts[0].contains(expected), "{}", texts[0]);
    assert!(texts[0].ends_with("\n```") && texts[0].len() < 1000, "{}", texts[0]);
    // Content with a fence does not end the block.
    assert!(texts[1].contains("\n\n`````diff\n--- a/long.txt") && texts[1].ends_with("\n`````"), "{}", texts[1]);
    assert!(texts[2].contains("+a new line\n") && texts[2].ends_with("[diff truncated]\n```"), "{}", &texts[2][..200]);
    assert!(texts[2].len() < 33_000 && contents.iter().all(|content| content.as_array().unwrap().len() == 1));
    assert_eq!(home.get("new.txt").unwrap(), new);
    agent.finish().await;
}
