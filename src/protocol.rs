//! The Agent Client Protocol's own types, and their translation to and from ours.

pub mod content;

pub use agent_client_protocol_schema::ProtocolVersion;
pub use agent_client_protocol_schema::v1 as acp;
