//! The form of a file that `write` replaces: encoding, byte order mark and line endings.

use serde_json::json;

use super::told;
use harness::Home;

fn wide(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
}

#[tokio::test]
async fn write_keeps_the_form_of_the_file_or_says_what_is_lost() {
    let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
    let plain = |text: &str| text.as_bytes().to_vec();
    let cases = [
        // Before, written, after, a part of the result.
        (plain("a\r\nb\r\n"), "a\nc\n", plain("a\r\nc\r\n"), "; kept its line endings (CRLF)"),
        (plain("a\r\nb\r\n"), "a\r\nc\r\n", plain("a\r\nc\r\n"), "(6 bytes)"),
        (plain("a\nb\n"), "a\r\nc\r\n", plain("a\nc\n"), "; kept its line endings (LF)"),
        (plain("a\rb\r"), "a\nc\n", plain("a\rc\r"), "; kept its line endings (CR)"),
        (plain("a\nb\n"), "a\nc\n", plain("a\nc\n"), "(4 bytes)"),
        (plain("a"), "a\nc\n", plain("a\nc\n"), "(4 bytes)"),
        (plain(""), "a\r\n", plain("a\r\n"), "(3 bytes)"),
        (marked("a\n"), "b\n", marked("b\n"), "; kept its byte order mark"),
        (marked("a\n"), "\u{feff}b\n", marked("b\n"), "(5 bytes)"),
        (marked("a\r\n"), "b\n", marked("b\r\n"), "; kept its line endings (CRLF) and its byte order mark"),
        (wide("a\r\n", u16::to_le_bytes), "é\n", wide("é\r\n", u16::to_le_bytes), "its encoding (UTF-16)"),
        (wide("a\n", u16::to_be_bytes), "𝄞\n", wide("𝄞\n", u16::to_be_bytes), "; kept its encoding (UTF-16)"),
        (plain("a\r\nb\n"), "a\nc\n", plain("a\nc\n"), "; its line endings were mixed"),
        (b"caf\xe9\n".to_vec(), "café\n", plain("café\n"), "; the file was not UTF-8"),
        (b"a\0b".to_vec(), "text", plain("text"), "; the file was binary"),
    ];
    for (before, written, after, note) in cases {
        let home = Home::new();
        std::fs::write(home.work().join("f"), &before).unwrap();
        let text = told(&home, "write", &json!({"file_path": "f", "content": written})).await;
        assert_eq!(std::fs::read(home.work().join("f")).unwrap(), after, "{before:?}: {text}");
        assert!(text.starts_with("overwrote f (") && text.ends_with(note) || text.contains(note), "{before:?}: {text}");
    }
}
