//! The form of a text file: encoding, byte order mark and line endings. A file that is replaced as
//! a whole keeps its form.

use super::text::Encoding;

/// The content of a replaced file.
pub(crate) struct ReplacedText {
    pub(crate) bytes: Vec<u8>,
    /// Parts of the form that the content has from the file, not from the new text.
    kept: Vec<&'static str>,
    /// Parts of the form that the content does not have any more.
    lost: Vec<&'static str>,
}

impl ReplacedText {
    /// Gives `new` the form of the file `old`.
    pub(crate) fn new(old: &[u8], new: &str) -> ReplacedText {
        let mut replaced = ReplacedText { bytes: Vec::new(), kept: Vec::new(), lost: Vec::new() };
        let encoding = Encoding::detect(old);
        let former = encoding.decode(old);
        let is_marked = encoding != Encoding::Utf8 && !new.is_empty();
        let text = if is_marked { new.strip_prefix('\u{feff}').unwrap_or(new) } else { new };
        if encoding == Encoding::Utf8 && old.contains(&0) {
            replaced.lost.push("the file was binary");
        } else if former.contains('\u{fffd}') && std::str::from_utf8(old).is_err() && encoding == Encoding::Utf8 {
            replaced.lost.push("the file was not UTF-8, and is now");
        }
        let text = replaced.with_endings_of(&former, text);
        match encoding {
            Encoding::Utf8 => {}
            Encoding::Utf8Marked => replaced.kept.push("its byte order mark"),
            Encoding::Utf16Little | Encoding::Utf16Big => replaced.kept.push("its encoding (UTF-16)"),
        }
        replaced.bytes = if is_marked { encoding.encode(&text) } else { text.into_bytes() };
        if !is_marked || replaced.bytes == new.as_bytes() {
            replaced.kept.retain(|kept| kept.contains("endings"));
        }
        replaced
    }

    /// Gives `text` the line endings of `former`.
    fn with_endings_of(&mut self, former: &str, text: &str) -> String {
        let pairs = former.matches("\r\n").count();
        let (returns, feeds) = (former.matches('\r').count() - pairs, former.matches('\n').count() - pairs);
        let plain = text.replace("\r\n", "\n");
        let (same, kept) = match (pairs, feeds, returns) {
            (0, 0, 0) => return text.to_owned(),
            (0, _, 0) => (plain, "its line endings (LF)"),
            (_, 0, 0) => (plain.replace('\n', "\r\n"), "its line endings (CRLF)"),
            (0, 0, _) => (plain.replace('\n', "\r"), "its line endings (CR)"),
            _ => {
                if text.contains('\n') {
                    self.lost.push("its line endings were mixed, and are now as you wrote them");
                }
                return text.to_owned();
            }
        };
        if same != text {
            self.kept.push(kept);
        }
        same
    }

    /// Describes for the model how the content differs from the text that it wrote, and what the
    /// file lost.
    pub(crate) fn note(&self) -> String {
        let kept = if self.kept.is_empty() { String::new() } else { format!("; kept {}", self.kept.join(" and ")) };
        let lost = if self.lost.is_empty() { String::new() } else { format!("; {}", self.lost.join("; ")) };
        kept + &lost
    }
}
