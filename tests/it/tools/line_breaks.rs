//! Line breaks in a search pattern.

use serde_json::json;

use super::told;
use harness::Home;

#[tokio::test]
async fn line_break_in_a_pattern_matches() {
    let lf = "f:1:one\nf:2:two\n";
    let cases = [
        (json!({"pattern": "one\ntwo"}), "one\ntwo\n", lf),
        (json!({"pattern": "one\\ntwo"}), "one\ntwo\n", lf),
        (json!({"pattern": "one\ntwo"}), "one\r\ntwo\r\n", lf),
        (json!({"pattern": "one\\ntwo"}), "one\r\ntwo\r\n", lf),
        (json!({"pattern": "one\r\ntwo"}), "one\ntwo\n", "no matches found\n"),
        (json!({"pattern": "one\\r\\ntwo"}), "one\r\ntwo\r\n", lf),
        (json!({"pattern": "one\ntwo", "multiline": false}), "one\ntwo\n", lf),
        (json!({"pattern": "one\\n+two"}), "one\n\n\ntwo\n", "f:1:one\nf:2:\nf:3:\nf:4:two\n"),
        (json!({"pattern": "one[\\n ]two"}), "one\ntwo\n", lf),
        (json!({"pattern": "one[\n ]two"}), "one\ntwo\n", lf),
        (json!({"pattern": "(?x) one\n two"}), "onetwo\n", "f:1:onetwo\n"),
        (json!({"pattern": "one\\\\ntwo"}), "one\\ntwo\n", "f:1:one\\ntwo\n"),
        (json!({"pattern": "^one$\n^two$"}), "one\ntwo\n", lf),
    ];
    for (input, file, expected) in cases {
        let home = Home::new();
        home.put("f", file);
        assert_eq!(told(&home, "grep", &input).await, expected, "{input} {file:?}");
    }
}
