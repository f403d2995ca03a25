//! stub

pub struct Plan;
