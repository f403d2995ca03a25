//! Permission requests and their answers.

pub(crate) mod broker;
pub(super) mod request;
