//! HTTP clients, and GET requests that are restricted to the public web.

mod address;
mod certificates;
mod client;
mod get;
#[cfg(feature = "postgres")]
mod lax_verifier;
#[cfg(feature = "mcp")]
mod streamable_http;

pub(crate) use address::Address;
pub(crate) use address::is_loopback;
pub use address::is_public;
pub(crate) use certificates::{certificate_problem, is_certificate_problem};
pub use client::{ClientOptions, HttpClients};
pub(crate) use client::{Destination, causes};
pub(crate) use get::WebResponse;
#[cfg(feature = "postgres")]
pub(crate) use lax_verifier::LaxVerifier;
#[cfg(feature = "mcp")]
pub(crate) use streamable_http::{HttpFailure, challenge_scope, request_challenge, request_error, required_scope};
