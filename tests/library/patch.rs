//! Properties of edits and patches over random files. `PROPTEST_CASES` sets the number of cases.

use nuncio::internal::patch::apply_patch::{Operation, apply, parse};
use nuncio::internal::patch::edit::edit;
use nuncio::internal::patch::{Side, unified_diff};
use proptest::prelude::*;

/// A line from a small set, so that lines repeat, with all kinds of whitespace and endings.
fn line() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just(""),
        Just("}"),
        Just("a"),
        Just("b"),
        Just("  a"),
        Just("\ta b"),
        Just("    a  b"),
        Just("a b "),
        Just("-- c"),
        Just("++ c"),
        Just("- d"),
        Just("+ d"),
        Just("@@ e"),
        Just("*** End Patch"),
        Just("\\ f"),
        Just("some longer text"),
        Just("é漢"),
        Just("a\r"),
        Just("\r"),
    ];
    let ending = prop_oneof![8 => Just("\n"), 3 => Just("\r\n")];
    (text, ending).prop_map(|(text, ending)| format!("{text}{ending}"))
}

/// A file; its last line may lack its ending.
fn file() -> impl Strategy<Value = String> {
    (proptest::collection::vec(line(), 0..30), any::<bool>()).prop_map(|(lines, cut)| {
        let mut text = lines.concat();
        if cut && text.ends_with('\n') {
            text.pop();
        }
        text
    })
}

/// A file and a changed version of it.
fn versions() -> impl Strategy<Value = (String, String)> {
    let changes =
        proptest::collection::vec((any::<prop::sample::Index>(), 0..3usize, proptest::collection::vec(line(), 0..3)), 1..4);
    (file(), changes, file(), 0..4u8).prop_map(|(old, changes, other, how)| {
        if how == 0 {
            return (old, other);
        }
        let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
        for (place, removed, added) in changes {
            let start = place.index(lines.len() + 1);
            let end = (start + removed).min(lines.len());
            lines.splice(start..end, added);
        }
        (old, lines.concat())
    })
}

fn apply_patch(old: &[u8], patch: &str) -> Result<Vec<u8>, String> {
    let files = parse(patch)?;
    let [file] = files.as_slice() else { return Err(format!("{files:?}")) };
    match &file.operation {
        Operation::Add { content } => Ok(content.clone().into_bytes()),
        Operation::Delete { hunks } | Operation::Update { hunks, .. } => Ok(apply(old, hunks)?.bytes),
    }
}

/// An edit as content, old text, new text and `replace_all`. The old text is a part of the file, as
/// it is or with different whitespace.
fn edits() -> impl Strategy<Value = (String, String, String, bool)> {
    (file(), any::<prop::sample::Index>(), 1..4usize, file(), 0..5u8, any::<bool>()).prop_map(
        |(content, place, count, new, how, all)| {
            let lines: Vec<&str> = content.split_inclusive('\n').collect();
            let start = place.index(lines.len().max(1)).min(lines.len());
            let mut old = lines[start..(start + count).min(lines.len())].concat();
            match how {
                0 => old = old.trim().to_owned(),
                1 => old = old.replace("  ", " ").replace('\t', "    "),
                2 => old = old.replace("\r\n", "\n"),
                3 => old = old.lines().map(|line| format!("  {}\n", line.trim())).collect(),
                _ => {}
            }
            (content, old, new, all)
        },
    )
}

proptest! {
    #![proptest_config(crate::random::property("files", 256))]

    #[test]
    fn diff_applied_to_the_old_file_gives_the_new_file((old, new) in versions()) {
        let side = |text| Some(Side::text("f", text));
        let diff = unified_diff(side(&old), side(&new)).text;
        if old == new {
            prop_assert_eq!(diff, "");
        } else {
            let found = apply_patch(old.as_bytes(), &diff);
            prop_assert_eq!(found.as_deref(), Ok(new.as_bytes()), "\n{}", diff);
        }
        let added = unified_diff(None, side(&new)).text;
        prop_assert!(new.is_empty() || apply_patch(b"", &added).as_deref() == Ok(new.as_bytes()), "\n{}", added);
        let deleted = unified_diff(side(&old), None).text;
        prop_assert!(old.is_empty() || apply_patch(old.as_bytes(), &deleted).as_deref() == Ok(b""), "\n{}", deleted);
    }

    /// Bytes before the first and after the last changed line stay, even if they are not UTF-8.
    #[test]
    fn bytes_outside_the_changed_lines_stay((content, old, new, all) in edits(), before in any::<Vec<u8>>(), after in any::<Vec<u8>>()) {
        let guard = |bytes: &[u8]| [bytes, b"\xffguard\xfe\n"].concat();
        let (head, tail) = (guard(&before), guard(&after));
        // The last line of the content must be terminated, so that the tail does not extend it.
        let content = if content.is_empty() || content.ends_with('\n') { content } else { format!("{content}\n") };
        let whole = [&head, content.as_bytes(), &tail].concat();
        if let Ok(edited) = edit(&whole, &old, &new, all)
            && edit(content.as_bytes(), &old, &new, all).is_ok()
            && !all
        {
            prop_assert!(edited.bytes.starts_with(&head), "{:?}", edited);
            prop_assert!(edited.bytes.ends_with(&tail), "{:?}", edited);
        }
    }

    /// A successful edit changes the file, and has the same effect on a file with CRLF endings.
    #[test]
    fn edit_is_independent_of_line_endings((content, old, new, all) in edits()) {
        let plain = content.replace("\r\n", "\n").replace('\r', "");
        let (old, new) = (old.replace('\r', ""), new.replace('\r', ""));
        let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
        let lf = edit(plain.as_bytes(), &old, &new, all);
        let crlf = edit(marked.as_bytes(), &old, &new, all);
        match (lf, crlf) {
            (Ok(lf), Ok(crlf)) => {
                let lf_text = String::from_utf8(lf.bytes).unwrap();
                prop_assert_ne!(&lf_text, &plain);
                // A file of one line has no line ending to preserve.
                if plain.contains('\n') {
                    prop_assert_eq!(String::from_utf8(crlf.bytes).unwrap(), format!("\u{feff}{}", lf_text.replace('\n', "\r\n")));
                }
                prop_assert_eq!((lf.strategy, lf.match_count, lf.line), (crlf.strategy, crlf.match_count, crlf.line));
            }
            (lf, crlf) => prop_assert_eq!(lf.map(|edited| edited.strategy), crlf.map(|edited| edited.strategy)),
        }
    }

    #[test]
    fn parser_does_not_panic_on_any_text(text in any::<String>(), content in file()) {
        let _ = apply_patch(content.as_bytes(), &text);
        let _ = apply_patch(content.as_bytes(), &format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch"));
        let _ = apply_patch(content.as_bytes(), &format!("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n{text}"));
    }

    /// Damaged patches: lines of valid patches, removed, repeated, swapped, replaced and truncated.
    #[test]
    fn parser_does_not_panic_on_damaged_patches(
        (old, new) in versions(),
        lines in proptest::collection::vec((any::<prop::sample::Index>(), 0..6u8), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let diff = unified_diff(Some(Side::text("f", &old)), Some(Side::text("g", &new))).text;
        let envelope = "*** Begin Patch\n*** Add File: a\n+b\n*** Delete File: c\n*** Update File: d\n*** Move to: e\n@@ a\n@@ b\n-a\n+b\n c\n\n*** End of File\n*** End Patch\n";
        let words = ["@@", "*** End Patch", "\\ No newline at end of file", "", "*** Begin Patch", "@@ -1,999999999999 +0,0 @@"];
        let mut patch: Vec<&str> = envelope.lines().chain(diff.lines()).collect();
        for (place, how) in lines {
            let index = place.index(patch.len());
            match how {
                0 => drop(patch.remove(index)),
                1 => patch.insert(index, patch[index]),
                2 => patch.swap(0, index),
                3 => patch[index] = patch[index].trim(),
                _ => patch.insert(index, words[index % words.len()]),
            }
            if patch.is_empty() {
                break;
            }
        }
        let text = patch.join("\n");
        let end = text.floor_char_boundary(cut.index(text.len() + 1));
        for patch in [&text, &text[end..], &text[..end], &diff] {
            for file in parse(patch).unwrap_or_default() {
                if let Operation::Update { hunks, .. } | Operation::Delete { hunks } = file.operation {
                    let _ = apply(old.as_bytes(), &hunks);
                }
            }
        }
    }
}
