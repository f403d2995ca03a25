//! stub

pub struct Read;
