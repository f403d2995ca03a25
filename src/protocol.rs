//! The types of the Agent Client Protocol, and their conversion to and from nuncio's own.

pub(crate) mod content;

pub(crate) use agent_client_protocol_schema::ProtocolVersion;
pub(crate) use agent_client_protocol_schema::v1 as acp;
