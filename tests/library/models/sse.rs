//! The decoder for server-sent events.

use nuncio::internal::model::sse::Decoder;

#[track_caller]
fn check(pieces: &[&str], expected: &[&str]) {
    let whole = pieces.concat();
    let bytewise: Vec<&[u8]> = whole.as_bytes().chunks(1).collect();
    for pieces in [pieces.iter().map(|piece| piece.as_bytes()).collect(), bytewise] {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(data) = decoder.next_event().expect("small") {
                events.push(data.into_owned());
            }
        }
        assert_eq!(events, expected);
    }
}

#[test]
fn events() {
    check(&["data: a\n\n", "data: b\n\n"], &["a", "b"]);
    check(&["data: a", "bc\n", "\ndata:d\n\n"], &["abc", "d"]);
    check(&["\u{feff}data: a\n\n"], &["a"]);
    check(&["data: a\r\n\r", "\ndata: b\r\n\r\n"], &["a", "b"]);
    check(&["data: a\r\rdata: b\r\r"], &["a", "b"]);
    check(&[": ping\n\n", "event: x\nid: 1\nretry: soon\ndata: {\ndata: }\n\n"], &["{\n}"]);
    // An event with empty data is none.
    check(&["data\n\n", "database: x\n\nwhat\n\n"], &[]);
    check(&["data: größe\n\n", "data: cut"], &["größe"]);
}

#[test]
fn an_endless_event_is_refused() {
    let mut decoder = Decoder::default();
    let line = "x".repeat(1 << 20);
    let refused = (0..17).any(|_| {
        decoder.push(line.as_bytes());
        decoder.next_event().is_err()
    });
    assert!(refused);
}
