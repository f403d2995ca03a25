//! The open permission requests of a session, and their deadlines.

pub(crate) mod broker;
pub(crate) mod deadline;
