//! Long lines: a search shows the text around the match, and a read continues within a line.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::told;
use harness::Home;

#[tokio::test]
async fn grep_shows_the_match_in_a_long_line() {
    let filler = |count: usize| "x".repeat(count);
    let cases = [
        (format!("{}needle{}", filler(5000), filler(5000)), "[4753 bytes before] ", " [4753 more bytes]"),
        (format!("{}needle", filler(5000)), "[4506 bytes before] ", "needle"),
        (format!("needle{}", filler(5000)), "needle", " [4506 more bytes]"),
        (format!("{}needle{}", "é".repeat(2000), filler(5000)), "[3754 bytes before] é", "x [4752 more bytes]"),
        (format!("short\n{}needle{}\n", filler(5000), filler(5000)), "[4753 bytes before] ", " [4753 more bytes]"),
    ];
    for (line, begin, end) in cases {
        let home = Home::new();
        home.put("min.js", &line);
        let text = told(&home, "grep", &json!({"pattern": "needle"})).await;
        let shown = text.trim_end().splitn(3, ':').nth(2).unwrap();
        assert!(shown.starts_with(begin) && shown.ends_with(end) && shown.contains("needle"), "{begin}: {text}");
    }
    let home = Home::new();
    home.put("f", &format!("{}one\ntwo{}\n", filler(2000), filler(2000)));
    let text = told(&home, "grep", &json!({"pattern": "one\ntwo"})).await;
    assert!(text.contains("xone\n") && text.contains(":two"), "{text}");
}

#[tokio::test]
async fn read_continues_within_a_line() {
    let wide = "ab𝄞".repeat(10_000);
    let marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(wide.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let letters = format!("one\n{}\nthree", "aé€𝄞".repeat(8_000));
    for (text, bytes) in [
        ("0123456789".repeat(5_000), "0123456789".repeat(5_000).into_bytes()),
        (letters.clone(), letters.into_bytes()),
        (format!("{}\nlast", "x".repeat(8193)), format!("{}\r\nlast\r\n", "x".repeat(8193)).into_bytes()),
        (wide, marked),
    ] {
        let home = Home::new();
        std::fs::write(home.work().join("f"), &bytes).unwrap();
        let mut read: BTreeMap<usize, String> = BTreeMap::new();
        let mut input = json!({"file_path": "f"});
        while !input.is_null() {
            let answer = told(&home, "read", &input).await;
            for (index, line) in answer.lines().enumerate().filter(|(_, line)| line.contains('\t')) {
                let (number, line) = line.trim_start().split_once('\t').unwrap();
                let whole = read.entry(number.parse().unwrap()).or_default();
                if index > 0 || input["skip_bytes"].is_null() {
                    whole.clear();
                }
                *whole += line.split(" [").next().unwrap();
            }
            let numbers = |text: &str| text.split([' ', ']', '\n']).filter_map(|word| word.parse().ok()).collect::<Vec<u64>>();
            input = match answer.split_once("read on with offset ").map(|(_, rest)| numbers(rest)) {
                Some(next) => json!({"file_path": "f", "offset": next[0], "skip_bytes": next[1]}),
                None => Value::Null,
            };
        }
        let read: Vec<String> = read.into_values().collect();
        assert!(read.join("\n") == text, "{} of {} bytes", read.join("\n").len(), text.len());
    }
}
