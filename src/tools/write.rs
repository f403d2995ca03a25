//! stub

pub struct Write;
