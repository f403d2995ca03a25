//! nuncio.

pub mod content;
pub mod error;
pub mod event;
pub mod id;
pub mod limits;
pub mod model;
pub mod patch;
pub mod permission;
pub mod process;
pub mod tools;
pub mod workspace;
