//! Tests of the HTTP API over a socket, against a real `nuncio serve` process.

mod access_control;
mod attacks;
mod drain;
mod eviction;
pub mod exactly_once;
mod external_reads;
mod prompts;
mod routes;
mod rpc;
mod shared_session;
mod sign_in;
mod store;
mod streams;
mod telemetry;
mod tls;
