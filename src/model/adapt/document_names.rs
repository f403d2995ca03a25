//! The names of documents.

use std::borrow::Cow;
use std::collections::HashSet;

use super::traits::ProviderTraits;
use crate::content::Part;

/// Returns the part for a request. `names` are those of the documents before it.
pub(super) fn adapt<'a>(part: &'a Part, traits: ProviderTraits, names: &mut HashSet<String>) -> Cow<'a, Part> {
    match part {
        Part::Document { mime_type, name, data, text } if traits.has_plain_document_names => {
            let plain = document_name(name.as_deref().unwrap_or_default());
            let mut unique = plain.clone();
            let mut number = 2;
            while !names.insert(unique.clone()) {
                unique = format!("{plain} {number}");
                number += 1;
            }
            match name.as_ref() == Some(&unique) {
                true => Cow::Borrowed(part),
                false => {
                    let (mime_type, data, text) = (mime_type.clone(), data.clone(), text.clone());
                    Cow::Owned(Part::Document { mime_type, name: Some(unique), data, text })
                }
            }
        }
        part => Cow::Borrowed(part),
    }
}

/// Converts the name of a document to one that Anthropic and Amazon Bedrock accept: letters,
/// digits, and single spaces, hyphens, parentheses and brackets.
fn document_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-()[]".contains(letter);
    let name: String = name.chars().map(|letter| if allowed(letter) { letter } else { ' ' }).take(200).collect();
    let words: Vec<&str> = name.split_whitespace().collect();
    if words.is_empty() { "document".into() } else { words.join(" ") }
}
