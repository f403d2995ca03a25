//! Rule 32: the names and the places of documents in requests.

use std::collections::BTreeSet;

use super::Platform;
use super::names::constraint;
use super::refusal::Refusals;
use super::view::{Block, Content, Turn, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    if view.protocol == Protocol::Bedrock {
        bedrock(view, refused);
    }
    for block in view.all_blocks() {
        let Content::Document { name, data } = block.content else { continue };
        match view.protocol {
            Protocol::Anthropic if name.is_some_and(|name| !is_plain(name)) => {
                let words = format!(
                    "{}.document.title: can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, \
                     and square brackets",
                    block.place
                );
                refused.add(32, &*block.place, words);
            }
            Protocol::OpenaiChat if view.platform == Platform::Azure => {
                refused.add(32, &*block.place, "Invalid Value: 'file'. This model does not support file content types.");
            }
            Protocol::OpenaiChat | Protocol::OpenaiResponses if data.is_some_and(|data| !data.starts_with("data:")) => {
                let words = "Invalid value for 'file_data': expected a base64-encoded data URL with a MIME type.";
                refused.add(32, &*block.place, words);
            }
            _ => {}
        }
    }
}

/// Returns whether a name has only letters, digits, single blanks, hyphens, parentheses and brackets.
fn is_plain(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter.is_whitespace() || "-()[]".contains(letter);
    name.chars().all(allowed) && !name.contains("  ")
}

fn bedrock(view: &View<'_>, refused: &mut Refusals) {
    let mut names = BTreeSet::new();
    for block in view.all_blocks() {
        let Content::Document { name, .. } = block.content else { continue };
        let (name, place) = (name.unwrap_or_default(), format!("{}.document.name", block.place));
        if name.is_empty() || name.chars().count() > 200 {
            let words = "Member must have length less than or equal to 200 and greater than or equal to 1";
            refused.add(32, &*place, constraint(name, &place, words));
        } else if !is_plain(name) {
            let words = "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, \
                         parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.";
            refused.add(32, &*place, words);
        } else if !names.insert(name) {
            refused.add(32, &*place, format!("Messages contain duplicate document names: {name}."));
        }
    }
    view.turns.iter().for_each(|turn| turns(turn, refused));
}

fn turns(turn: &Turn<'_>, refused: &mut Refusals) {
    let is_document = |block: &Block<'_>| matches!(block.content, Content::Document { .. });
    let count = turn.blocks.iter().filter(|block| is_document(block)).count();
    if count > 5 {
        let words = format!("The number of documents in the Message object at {} exceeds the limit of 5.", turn.place);
        refused.add(32, &*turn.place, words);
    }
    if count > 0 && !turn.blocks.iter().any(|block| matches!(block.content, Content::Text(_))) {
        let words = format!("{}: a text block is required when a message contains documents.", turn.place);
        refused.add(32, &*turn.place, words);
    }
    for pair in turn.blocks.windows(2).filter(|pair| is_document(&pair[0]) && pair[1].value.get("cachePoint").is_some()) {
        refused.add(32, &*pair[1].place, "A cachePoint cannot be inserted after a document block.");
    }
}
