//! nuncio.

pub mod content;
pub mod error;
pub mod id;
pub mod limits;
pub mod model;
