//! stub

pub struct Glob;
