//! Short digests by which the content of requests is recognized.

use ring::digest::{Context, SHA256};

use crate::hex::hex;

/// Length of a fingerprint, in bytes before hexadecimal encoding.
const FINGERPRINT_BYTES: usize = 12;

/// Returns the start of the SHA-256 of texts, in hexadecimal. Each text is preceded by its length,
/// so that the border between two texts counts.
pub(super) fn fingerprint(texts: &[&str]) -> String {
    let mut all = Context::new(&SHA256);
    for text in texts {
        all.update(&(text.len() as u64).to_le_bytes());
        all.update(text.as_bytes());
    }
    hex(&all.finish().as_ref()[..FINGERPRINT_BYTES])
}
