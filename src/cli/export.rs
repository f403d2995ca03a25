//! soon
use super::*;
use crate::api::Nuncio;
use crate::session::Sessions;
use std::path::Path;
pub fn export(_n: &Nuncio, _s: &Sessions, _id: &str, _l: Option<&Path>) -> Result<()> { Ok(()) }
pub async fn import(_s: &Sessions, _f: &Path) -> Result<()> { Ok(()) }
