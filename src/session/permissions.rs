//! Permission requests and their answers.

pub(crate) mod broker;
pub(crate) mod deadline;
pub(super) mod request;
