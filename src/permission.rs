//! What a tool call wants to touch, as plain data. Who decides about it, and how, is not the tools' affair.

pub mod paths;
pub mod rules;
pub mod shell;

pub use crate::config::AccessKind;

/// Everything that a call will touch, known before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub kind: AccessKind,
    /// As the model wrote them; `Workspace::resolve` says where they are.
    pub paths: Vec<String>,
    /// The shell command, for [`AccessKind::Exec`].
    pub command: Option<String>,
    /// The variables set for it, as a shell would write them before it.
    pub environment: String,
    /// The address, for [`AccessKind::Network`], as the network will know it.
    pub url: Option<String>,
}

impl Access {
    pub fn read(path: impl Into<String>) -> Access {
        Access { paths: vec![path.into()], ..Access::none() }
    }

    pub fn write(path: impl Into<String>) -> Access {
        Access { kind: AccessKind::Write, ..Access::read(path) }
    }

    pub fn network(url: impl Into<String>) -> Access {
        Access { kind: AccessKind::Network, url: Some(url.into()), ..Access::none() }
    }

    /// Touches nothing outside the session itself.
    pub fn none() -> Access {
        Access { kind: AccessKind::Read, paths: Vec::new(), command: None, environment: String::new(), url: None }
    }
}
