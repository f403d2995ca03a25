//! Edits; most cases are in tests/library/cases/edits.jsonl, one object per line.

use super::*;

/// Characters from this one on represent bytes that are not valid UTF-8.
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

/// A case is `{name, file, old, new, all?}` with either `{strategy, after, count?, line?}` or
/// `{error}`, a part of the message.
#[tokio::test]
async fn edit_cases_produce_expected_results() {
    let cases = std::fs::read_to_string(harness::package("tests/library/cases/edits.jsonl")).unwrap();
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
async fn edit_of_large_file_changes_only_the_match() {
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

/// Of places with the same relative indentation, the one with the same indentation is meant.
#[tokio::test]
async fn equal_indentation_decides_between_places() {
    let lines = |indent: &str| format!("{indent}first( 1 );\n{indent}second();\n");
    for (wanted, changed) in [("    ", [true, false]), ("        ", [false, true]), ("\t", [false, false])] {
        let world = World::new();
        world.put("f", lines("    ") + "\n" + &lines("        "));
        let old = lines(wanted).replace(";\n", ";  \n");
        let input = json!({"file_path": "f", "old_string": old, "new_string": format!("{wanted}found();\n")});
        let result = world.call("edit", input).await;
        let expected = ["    ", "        "].iter().zip(changed).map(|(indent, changed)| match changed {
            true => format!("{indent}found();\n"),
            false => lines(indent),
        });
        assert_eq!(world.text("f"), expected.collect::<Vec<_>>().join("\n"), "{wanted:?}");
        assert_eq!(result.is_ok(), changed.contains(&true), "{wanted:?}");
    }
}

/// The first and the last line occur often in a large file; the lines between identify the block.
#[tokio::test]
async fn long_block_between_common_lines_is_found() {
    let world = World::new();
    let line = |number: usize| match number % 5 {
        0 => "}\n".to_owned(),
        _ => format!("    value_{number} = compute(other_{number});\n"),
    };
    let text = |numbers: std::ops::Range<usize>| numbers.map(line).collect::<String>();
    world.put("f", text(0..25_000));
    let block = text(12_000..12_301);
    let old = block.replacen("compute(other_12104)", "compute(another_12104)", 1);
    let new = old.replacen("compute(other_12003)", "found()", 1);
    let output = world.call("edit", json!({"file_path": "f", "old_string": old, "new_string": new})).await.unwrap();
    assert_eq!((&output.details["strategy"], &output.details["linesChanged"]), (&json!("block_anchor"), &json!(1)));
    assert_eq!(world.text("f"), text(0..25_000).replacen("compute(other_12003)", "found()", 1));
}

/// The cost of a replacement depends on the length of the match, not on that of the file.
#[tokio::test]
async fn many_matches_in_one_long_line_are_replaced() {
    let world = World::new();
    world.put("f", "ab ".repeat(50_000));
    let input = json!({"file_path": "f", "old_string": "ab ", "new_string": "c\nd", "replace_all": true});
    world.call("edit", input).await.unwrap();
    assert_eq!(world.text("f"), "c\nd".repeat(50_000));
}

#[tokio::test]
async fn utf16_is_rejected_and_invalid_utf8_is_preserved() {
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
