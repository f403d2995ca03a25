//! stub

pub struct Edit;
