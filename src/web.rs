//! HTTP clients, and GET requests that are restricted to the public web.

mod address;
mod client;
mod get;

pub use address::{Address, is_public};
pub(crate) use client::{causes, chain, client};
pub use get::Web;
pub(crate) use get::WebResponse;
