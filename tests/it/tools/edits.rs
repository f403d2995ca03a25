//! Edits as data: tests/it/cases/edits.jsonl, an object a line.

use super::*;

/// Characters from here on stand for bytes that are no text.
const BYTES: u32 = 0xe000;

fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for character in text.chars() {
        match u8::try_from(u32::from(character).wrapping_sub(BYTES)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// `{name, file, old, new, all?}` with either `{strategy, after, count?, line?}` or `{error}`, a piece of it.
#[tokio::test]
async fn every_case_holds() {
    let cases = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases/edits.jsonl")).unwrap();
    let world = World::new();
    let mut findings = Vec::new();
    let mut count = 0;
    for line in cases.lines() {
        count += 1;
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| case[field].as_str().unwrap_or_else(|| panic!("{field}: {line}"));
        let before = bytes(text("file"));
        world.put("f", &before);
        let input = json!({"file_path": "f", "old_string": text("old"), "new_string": text("new"), "replace_all": case["all"]});
        world.context.files.note(&world.path("f"), None);
        let found = world.call("edit", input).await;
        let after = world.bytes("f");
        let right = match &found {
            Ok(output) => {
                let details = json!([case["strategy"], case["count"].as_u64().unwrap_or(1)]);
                after == bytes(case["after"].as_str().unwrap_or(line))
                    && json!([output.details["strategy"], output.details["matchCount"]]) == details
                    && output.locations[0].line.map(u64::from) == Some(case["line"].as_u64().unwrap_or(1))
            }
            Err(error) => case["error"].as_str().is_some_and(|piece| error.0.contains(piece)) && after == before,
        };
        if !right {
            findings.push(format!("{line}\n  {:?}\n  {found:?}", String::from_utf8_lossy(&after)));
        }
    }
    assert!(findings.is_empty(), "{} of {count}:\n{}", findings.len(), findings.join("\n"));
    assert!(count >= 120, "{count}");
}

#[tokio::test]
async fn an_edit_of_a_large_file_touches_nothing_else() {
    let world = World::new();
    let filler = "a line of filler text\n".repeat(50_000);
    world.put("f", format!("{filler}    needle( 1 );\n{filler}"));
    let input = json!({"file_path": "f", "old_string": "needle( 1 );  ", "new_string": "found();"});
    let output = world.call("edit", input).await.unwrap();
    assert_eq!(world.text("f"), format!("{filler}    found();\n{filler}"));
    assert_eq!((&output.details["strategy"], &output.details["linesChanged"]), (&json!("line_trimmed"), &json!(1)));
    let context = " a line of filler text\n".repeat(3);
    let diff = format!("--- a/f\n+++ b/f\n@@ -49998,7 +49998,7 @@\n{context}-    needle( 1 );\n+    found();\n{context}");
    assert_eq!(output.details["diff"], diff);
}

/// Each place costs what it is long, not what the file is.
#[tokio::test]
async fn many_places_of_one_long_line_are_replaced() {
    let world = World::new();
    world.put("f", "ab ".repeat(50_000));
    let input = json!({"file_path": "f", "old_string": "ab ", "new_string": "c\nd", "replace_all": true});
    world.call("edit", input).await.unwrap();
    assert_eq!(world.text("f"), "c\nd".repeat(50_000));
}

#[tokio::test]
async fn what_is_no_utf8_text_is_refused_or_kept() {
    let world = World::new();
    world.put("wide", b"\xff\xfea\0\n\0");
    let told = world.told("edit", json!({"file_path": "wide", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(told, "error wide is UTF-16; use bash to change it");
    let patch = "*** Begin Patch\n*** Update File: wide\n@@\n-a\n+b\n*** End Patch";
    assert_eq!(
        world.told("apply_patch", json!({ "patch": patch })).await,
        "error wide: wide is UTF-16; use bash to change it; nothing was changed"
    );
    world.put("latin", b"caf\xe9\r\n  one \xff\r\n");
    let patch = "*** Begin Patch\n*** Update File: latin\n@@\n+zero\n*** End Patch";
    world.call("apply_patch", json!({ "patch": patch })).await.unwrap();
    assert_eq!(world.bytes("latin"), b"caf\xe9\r\n  one \xff\r\nzero\r\n");
}
