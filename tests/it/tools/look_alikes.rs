//! Edits whose text differs from the file in characters that look alike.

use serde_json::json;

use super::told;
use harness::Home;

/// Each case: the file, the old text, the new text, and the new file.
const EDITS: [(&str, &str, &str, &str); 14] = [
    // Curly quotes.
    ("say “hi” to Bob\n", "say \"hi\" to Bob", "say \"hi\" to Ann", "say “hi” to Ann\n"),
    ("it’s one\nit’s two\n", "it's two", "it's three", "it’s one\nit’s three\n"),
    // Decomposed and composed letters, in both directions.
    ("cafe\u{301} one\n", "caf\u{e9} one", "caf\u{e9} two", "cafe\u{301} two\n"),
    ("caf\u{e9} one\n", "cafe\u{301} one", "cafe\u{301} two", "caf\u{e9} two\n"),
    ("\u{ac01} one\n", "\u{1100}\u{1161}\u{11a8} one", "\u{1100}\u{1161}\u{11a8} two", "\u{ac01} two\n"),
    // Dashes, spaces, an ellipsis, and invisible characters.
    ("pages 1–2 — all\n", "pages 1-2 - all", "pages 1-2 - some", "pages 1–2 — some\n"),
    ("10\u{a0}km far\n", "10 km far", "10 km near", "10\u{a0}km near\n"),
    ("wait… now\n", "wait... now", "wait... then", "wait… then\n"),
    ("soft\u{ad}ware a\n", "software a", "software b", "soft\u{ad}ware b\n"),
    ("ＡＢ one\n", "AB one", "AB two", "ＡＢ two\n"),
    // The file has the plain form.
    ("say \"hi\" to Bob\n", "say “hi” to Bob", "say “hi” to Ann", "say \"hi\" to Ann\n"),
    // With another indentation, and with other line endings.
    ("{\n    say “hi”\n    end\n}\n", "say \"hi\"\nend", "say \"hi\"\nmore\nend", "{\n    say “hi”\n    more\n    end\n}\n"),
    ("say “a”\r\nsay “b”\r\n", "say \"a\"\nsay \"b\"", "say \"a\"\nsay \"c\"", "say “a”\r\nsay “c”\r\n"),
    // A character that the change removes.
    ("say “hi” now\n", "\"hi\" now", "now", "say now\n"),
];

#[tokio::test]
async fn edit_finds_look_alike_characters_and_keeps_those_of_the_file() {
    for (before, old, new, after) in EDITS {
        let home = Home::new();
        home.put("f", before);
        let text = told(&home, "edit", &json!({"file_path": "f", "old_string": old, "new_string": new})).await;
        assert_eq!(home.get("f").unwrap(), after, "{old}: {text}");
    }
}

#[tokio::test]
async fn patch_finds_look_alike_characters_and_keeps_those_of_the_file() {
    for (before, old, new, after) in EDITS.into_iter().skip(2).take(9) {
        let home = Home::new();
        home.put("f", before);
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n-{old}\n+{new}\n*** End Patch");
        let text = told(&home, "apply_patch", &json!({ "patch": patch })).await;
        assert_eq!(home.get("f").unwrap(), after, "{old}: {text}");
    }
    let home = Home::new();
    home.put("f", "first “line”\nsecond ‘line’\nthird line\n");
    let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n first \"line\"\n-second 'line'\n+second 'word'\n third line\n";
    let text = told(&home, "apply_patch", &json!({ "patch": patch })).await;
    assert_eq!(home.get("f").unwrap(), "first “line”\nsecond ‘word’\nthird line\n", "{text}");
}

#[tokio::test]
async fn several_look_alikes_are_ambiguous_or_all_replaced() {
    let home = Home::new();
    home.put("f", "“a” b\n„a“ b\n");
    let input = json!({"file_path": "f", "old_string": "\"a\" b", "new_string": "\"a\" c"});
    let text = told(&home, "edit", &input).await;
    assert!(text.contains("found 2 times") && text.contains("at lines 1, 2"), "{text}");
    let input = json!({"file_path": "f", "old_string": "\"a\" b", "new_string": "\"a\" c", "replace_all": true});
    let text = told(&home, "edit", &input).await;
    assert_eq!(home.get("f").unwrap(), "“a” c\n„a“ c\n", "{text}");
}

/// Letters of other scripts do not match, but the message names them.
#[tokio::test]
async fn message_names_the_code_point_that_differs() {
    for (file, old, points) in [
        ("let v\u{430}lue = 1;\n", "let value = 1;", "(U+0430, not U+0061)"),
        ("x\u{b2} + y = 1\n", "x2 + y = 1", "(U+00B2, not U+0032)"),
        ("a \u{d7} b = ab\n", "a x b = ab", "(U+00D7, not U+0078)"),
    ] {
        let home = Home::new();
        home.put("f", file);
        let text = told(&home, "edit", &json!({"file_path": "f", "old_string": old, "new_string": "y"})).await;
        assert!(text.contains(points), "{text}");
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n-{old}\n+y\n*** End Patch");
        let text = told(&home, "apply_patch", &json!({ "patch": patch })).await;
        assert!(text.contains(points), "{text}");
        assert_eq!(home.get("f").unwrap(), file);
    }
}
