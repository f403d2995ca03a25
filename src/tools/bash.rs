//! stub

pub struct Bash;
