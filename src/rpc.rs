//! JSON-RPC 2.0 between two peers over a byte stream: both may send requests and cancel them.
//! Independent of the methods.

pub mod lines;
pub mod message;
pub mod peer;
