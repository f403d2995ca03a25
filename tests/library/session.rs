//! Sessions.

mod ownership;
