//! JSON-RPC 2.0 between two peers over a byte stream. Both peers may send requests and cancel them.
//! This module does not depend on the methods that are called.
//!
//! [`connection()`] creates three parts: a [`Connection`] sends, a [`MessageReader`] passes
//! received messages to a [`Handler`], and a [`MessageWriter`] writes the queued messages.

mod connection;
mod dialect;
pub(crate) mod framing;
pub mod headers;
pub mod lines;
pub mod message;
mod reader;
mod requests;
mod shared;
mod writer;

pub use connection::{Connection, RequestError, connection};
pub use dialect::{Dialect, OverflowPolicy};
pub use framing::Framing;
pub use reader::Handler;
pub use reader::{MessageReader, ReadError};
pub use shared::ClosedConnection;
pub use writer::MessageWriter;
pub use writer::{Feed, FrameWriter};
