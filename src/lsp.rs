//! Language servers (LSP 3.17), used for diagnostics only. A server is started when a file first
//! needs it, shared by the sessions of this process, and stopped when the last session releases it.

mod client;
mod detect;
mod diagnostic;
mod documents;
mod language_id;
mod languages;
mod server;
mod servers;
mod uri;

pub(crate) use detect::installed;
pub(crate) use diagnostic::{Diagnostic, render};
pub(crate) use languages::{EditDiagnostics, LanguageConfig, Languages, ServerLimits};
pub(crate) use server::{Confinement, Launch};
pub(crate) use servers::Servers;
