//! stub

pub struct List;
