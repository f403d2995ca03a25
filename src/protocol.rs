//! The types of the Agent Client Protocol (ACP), and conversions between them and nuncio's own
//! types.

pub(crate) mod content;

pub(crate) use agent_client_protocol_schema::ProtocolVersion;
pub(crate) use agent_client_protocol_schema::v1 as acp;
