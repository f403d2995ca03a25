//! OpenRouter's `reasoning_details`
//! (openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks).

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A piece of the details. Consecutive pieces of the same type and index are merged.
#[skip_serializing_none]
#[derive(Deserialize, Serialize)]
pub(super) struct Detail {
    #[serde(default)]
    r#type: String,
    id: Option<String>,
    format: Option<String>,
    index: Option<u64>,
    text: Option<String>,
    summary: Option<String>,
    data: Option<String>,
    signature: Option<String>,
}

impl Detail {
    pub(super) fn bytes(&self) -> usize {
        [&self.text, &self.summary, &self.data, &self.signature].into_iter().flatten().map(String::len).sum()
    }
}

pub(super) fn add(details: &mut Vec<Detail>, piece: Detail) {
    let Some(last) = details.last_mut().filter(|last| last.r#type == piece.r#type && last.index == piece.index) else {
        details.push(piece);
        return;
    };
    let append = |to: &mut Option<String>, more: Option<String>| {
        if let Some(more) = more {
            to.get_or_insert_default().push_str(&more);
        }
    };
    append(&mut last.text, piece.text);
    append(&mut last.summary, piece.summary);
    append(&mut last.data, piece.data);
    last.signature = piece.signature.or(last.signature.take());
    last.id = last.id.take().or(piece.id);
    last.format = last.format.take().or(piece.format);
}
