//! JSON-RPC 2.0 between two peers over lines of bytes: both may ask, both may cancel. Knows no method.

pub mod lines;
pub mod message;
pub mod peer;
