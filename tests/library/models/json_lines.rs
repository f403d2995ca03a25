//! The decoder for JSON values that are separated by line ends.

use nuncio::internal::model::json_lines::LineDecoder;

#[test]
fn lines_are_split_at_any_byte() {
    let stream = "{\"a\":1}\n\r\n{\"b\":\"größe\"}\r\n{\"c\":3}";
    for size in 1..stream.len() {
        let (mut decoder, mut lines) = (LineDecoder::default(), Vec::new());
        for piece in stream.as_bytes().chunks(size) {
            decoder.push(piece);
            while let Some(line) = decoder.next_line().expect("small") {
                lines.push(line.into_owned());
            }
        }
        lines.extend(decoder.end());
        assert_eq!(lines, ["{\"a\":1}", "{\"b\":\"größe\"}", "{\"c\":3}"], "{size}");
    }
}

#[test]
fn endless_line_is_an_error() {
    let mut decoder = LineDecoder::default();
    let part = vec![b'x'; 1 << 20];
    let failed = (0..17).any(|_| {
        decoder.push(&part);
        decoder.next_line().is_err()
    });
    assert!(failed);
}
