//! The provider of one model of the embedding program.

use std::sync::Arc;

use crate::model::{Model, ModelError, ModelProvider};

/// A provider with one model.
pub(super) struct FixedModel(Arc<dyn Model>);

impl FixedModel {
    pub(super) fn new(model: impl Model) -> FixedModel {
        FixedModel(Arc::new(model))
    }
}

impl ModelProvider for FixedModel {
    fn open(&self, _: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(self.0.clone())
    }
}
