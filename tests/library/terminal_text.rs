//! Properties of terminal output for arbitrary text in arbitrary pieces. `PROPTEST_CASES` sets the
//! number of cases.

use nuncio::internal::terminal_text::{OutputFilter, json, output, output_line, question, question_line};
use proptest::prelude::*;

/// Text with many control sequences and some other characters.
fn text() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just("\u{1b}"),
        Just("\u{1b}["),
        Just("\u{1b}]0;"),
        Just("\u{1b}P"),
        Just("\u{1b}\\"),
        Just("\u{9b}"),
        Just("\u{9d}"),
        Just("\u{90}"),
        Just("\u{9c}"),
        Just("\u{7}"),
        Just("\u{18}"),
        Just("2K"),
        Just("31;1m"),
        Just("("),
        Just("\r"),
        Just("\n"),
        Just("\t"),
        Just("\u{7f}"),
        Just("\u{202e}"),
        Just("\u{200b}"),
        Just("\u{e0041}"),
        Just("é漢"),
    ];
    let piece = prop_oneof![4 => special.prop_map(str::to_owned), 2 => "[ -~]{0,6}", 1 => any::<String>()];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The text, split between characters.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    (text(), proptest::collection::vec(any::<prop::sample::Index>(), 0..12)).prop_map(|(text, cuts)| {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let mut cuts: Vec<usize> = cuts.iter().filter(|_| !places.is_empty()).map(|cut| places[cut.index(places.len())]).collect();
        cuts.sort_unstable();
        let (mut pieces, mut from) = (Vec::new(), 0);
        for cut in cuts {
            pieces.push(text[from..cut].to_owned());
            from = cut;
        }
        pieces.push(text[from..].to_owned());
        pieces
    })
}

fn acts(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    }
}

proptest! {
    #![proptest_config(crate::random::property("texts", 256))]

    #[test]
    fn filtered_text_has_no_control_characters(pieces in pieces()) {
        let text = pieces.concat();
        let mut filter = OutputFilter::default();
        let shown: String = pieces.iter().map(|piece| filter.push(piece)).collect();
        prop_assert!(!shown.contains(acts), "{shown:?}");
        prop_assert_eq!(&shown, &output(&text), "wherever it is cut");
        prop_assert_eq!(&output(&shown), &shown, "what was let through is let through again");
        prop_assert!(!output_line(&text).contains(|character| acts(character) || character == '\n' || character == '\t'));
        prop_assert!(!question(&text).contains(acts));
        prop_assert!(!question_line(&text).contains(|character| acts(character) || character == '\n' || character == '\t'));
    }

    #[test]
    fn plain_text_is_unchanged(text in "[ -~\n\té漢🙂]{0,200}") {
        prop_assert_eq!(&output(&text), &text);
        prop_assert_eq!(&question(&text), &text);
        prop_assert_eq!(&json(&text), &text);
    }

    /// Every character of a question is visible, as itself or in an escape notation.
    #[test]
    fn questions_contain_every_character(text in text()) {
        let mut rest = question(&text);
        for character in text.chars() {
            let number = u32::from(character);
            let forms = [character.to_string(), format!("^{}", char::from((number as u8) ^ 0x40)), format!("<U+{number:04X}>")];
            let shown = forms.iter().find(|form| rest.starts_with(form.as_str()) && !form.contains(acts));
            let length = shown.map(String::len);
            prop_assert!(length.is_some(), "{character:?} is not at the beginning of {rest:?}");
            rest.drain(..length.unwrap_or_default());
        }
        prop_assert_eq!(rest, "");
    }

    #[test]
    fn json_keeps_its_value(text in text()) {
        let written = serde_json::to_string(&text).unwrap();
        let escaped = json(&written);
        prop_assert!(!escaped.contains(acts), "{escaped:?}");
        prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
}

#[track_caller]
fn check(text: &str, shown: &str, asked: &str) {
    assert_eq!(output(text), shown, "output of {text:?}");
    assert_eq!(question(text), asked, "question of {text:?}");
}

#[test]
fn control_sequences_are_removed_or_escaped() {
    check("a\u{1b}[2K\u{1b}[1;31mb\u{1b}[0m", "ab", "a^[[2K^[[1;31mb^[[0m");
    check("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c", "abc", "a^[]0;title^Gb^[]8;;http://x^[\\c");
    check(
        "a\u{1b}Pq#0\u{1b}\\b\u{1b}_x\u{9c}c\u{1b}^x\u{7}d\u{1b}Xx\u{1b}\\e",
        "abcde",
        "a^[Pq#0^[\\b^[_x<U+009C>c^[^x^Gd^[Xx^[\\e",
    );
    check("a\u{1b}(0b\u{1b}cc\u{1b}7d", "abcd", "a^[(0b^[cc^[7d");
    check("a\u{9b}31mb\u{9d}0;x\u{9c}c", "abc", "a<U+009B>31mb<U+009D>0;x<U+009C>c");
    check("a\u{8}\u{0}\u{7f}\u{85}b", "ab", "a^H^@^?<U+0085>b");
    check("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "abcde", "a<U+202E>b<U+2066>c<U+200F>d<U+061C>e");
    check("a\u{200b}b\u{a0}c\u{feff}", "a\u{200b}b\u{a0}c\u{feff}", "a<U+200B>b<U+00A0>c<U+FEFF>");
    // A carriage return ends a line.
    check("one\rtwo\r\nthree\r\r\n\r\nfour", "one\ntwo\nthree\n\nfour", "one^Mtwo^M\nthree^M^M\n^M\nfour");
    check("10%\r\u{1b}[K20%\r\u{1b}[K\n", "10%\n20%\n", "10%^M^[[K20%^M^[[K\n");
    // A sequence hides at most the rest of its line, and ends at the same place as in a terminal.
    check("a\u{1b}]0;never ended\nb", "a\nb", "a^[]0;never ended\nb");
    check("a\u{1b}[31\nb\u{1b}[3\u{18}1mc\u{1b}[é\u{1b}", "a\nb1mcé", "a^[[31\nb^[[3^X1mc^[[é^[");
    assert_eq!((output_line("a\nb\tc\n"), question_line("a\nb\tc")), ("a b c".into(), "a^Jb^Ic".into()));
}
