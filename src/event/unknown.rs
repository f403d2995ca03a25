//! Events of newer versions.

use std::sync::Arc;

use serde_json::value::RawValue;

/// An event whose type this version does not know. Every output contains the event's stored text
/// unchanged.
#[derive(Clone, Debug)]
pub struct UnknownEvent {
    pub(super) name: String,
    pub(super) stored: Arc<RawValue>,
}

impl PartialEq for UnknownEvent {
    fn eq(&self, other: &Self) -> bool {
        self.stored.get() == other.stored.get()
    }
}
