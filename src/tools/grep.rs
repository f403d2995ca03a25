//! stub

pub struct Grep;
