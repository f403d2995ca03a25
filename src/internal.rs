//! The modules of the library that its own binary, tests and benches use. They are not part of the
//! interface, and any version may change them.

pub mod api {
    pub use crate::api::*;
}
pub mod claims {
    pub use crate::claims::*;
}
#[cfg(feature = "cli")]
pub mod cli {
    pub use crate::cli::*;
}
pub mod config {
    pub use crate::config::*;
}
pub mod content {
    pub use crate::content::server_request::{Form, FormAnswer};
}
pub mod context {
    pub use crate::context::*;
}
pub mod documents {
    pub use crate::documents::*;
}
pub mod error {
    pub use crate::error::*;
}
pub mod hooks {
    pub use crate::hooks::*;
}
pub mod hub {
    pub use crate::hub::*;
}
pub mod limits {
    pub use crate::limits::*;
}
#[cfg(feature = "mcp")]
pub mod mcp {
    pub use crate::mcp::*;
}
pub mod model {
    pub use crate::model::*;
}
pub mod options {
    pub use crate::options::*;
}
pub mod patch {
    pub use crate::patch::*;
}
pub mod permission {
    pub use crate::permission::*;
}
pub mod process {
    pub use crate::process::*;
}
pub mod rpc {
    pub use crate::rpc::*;
}
pub mod runtime {
    pub use crate::runtime::*;
}
pub mod session {
    pub use crate::session::*;
}
pub mod terminal_text {
    pub use crate::terminal_text::*;
}
pub mod toolkit {
    pub use crate::toolkit::*;
}
pub mod tools {
    pub use crate::tools::*;
}
pub mod transcript {
    pub use crate::transcript::*;
}
pub mod web {
    pub use crate::web::*;
}
pub mod workspace {
    pub use crate::workspace::*;
}
