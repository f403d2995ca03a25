//! The setting `fallback`: models that answer if the session's model is overloaded, limits the rate
//! of requests, has no quota left, or cannot be reached.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{Price, Settings, model_settings};
use crate::error::{Error, Result};
use crate::model::{Cause, Model};
use crate::runtime::services::{Services, failed_request, model_error};

/// The models of one turn that can replace the session's model.
pub(in crate::agent) struct Fallback<'a> {
    services: &'a Services,
    settings: &'a Settings,
    /// Ids of the models that were not used yet, in order.
    left: VecDeque<String>,
}

impl<'a> Fallback<'a> {
    /// Creates the list of the fallback models of the model `id`.
    pub(in crate::agent) fn new(services: &'a Services, settings: &'a Settings, id: &str) -> Fallback<'a> {
        let left = model_settings(&settings.models, id).fallback.unwrap_or_default().into();
        Fallback { services, settings, left }
    }

    /// Returns whether the request is sent to another model after this error.
    pub(in crate::agent) fn applies(&self, error: &Error) -> bool {
        let Some(failed) = failed_request(error).filter(|_| !self.left.is_empty()) else { return false };
        match failed.cause {
            Cause::Overloaded | Cause::RateLimit | Cause::Quota => true,
            Cause::Authentication => false,
            _ => failed.unreachable,
        }
    }

    /// Returns the price of the model `id`, if it is known.
    pub(in crate::agent) async fn price(&self, id: &str) -> Option<Price> {
        self.services.price(id, self.settings).await
    }

    /// Opens the next model.
    pub(in crate::agent) async fn next(&mut self) -> Option<Result<Arc<dyn Model>>> {
        let id = self.left.pop_front()?;
        Some(self.services.models.open_fallback(&id, self.settings, self.left.is_empty()).await.map_err(model_error))
    }
}
