//! The types of the Agent Client Protocol, and their conversion to and from nuncio's own.

pub mod content;

pub use agent_client_protocol_schema::ProtocolVersion;
pub use agent_client_protocol_schema::v1 as acp;
