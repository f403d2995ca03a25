//! soon
use crate::config::Settings;
use crate::model::{Model, ModelError};
use std::sync::Arc;
pub struct ModelChoice { pub id: String, pub name: String }
pub struct Models {}
impl Models {
    pub fn secret_names(&self) -> Vec<String> { Vec::new() }
    pub async fn default_id(&self, _settings: &Settings) -> Result<String, ModelError> { Ok("x".into()) }
    pub async fn open(&self, _id: &str, _settings: &Settings) -> Result<Arc<dyn Model>, ModelError> { Err(ModelError::new(crate::model::Again::Never, "")) }
    pub fn choices(&self, _settings: &Settings, _current: &str) -> Vec<ModelChoice> { Vec::new() }
    pub fn check(&self, _id: &str, _settings: &Settings) -> Result<(), ModelError> { Ok(()) }
}
