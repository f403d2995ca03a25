//! Permissions: the resources that a tool call accesses, as plain data, and the rules that decide
//! whether the call is allowed.

pub mod git_acts;
pub mod hidden;
pub(crate) mod paths;
pub mod rules;
pub mod shell;

pub use crate::config::AccessKind;
use crate::config::AccessShape;
use crate::content::ToolCategory;

/// The resources that a tool call will access, determined before the call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub kind: AccessKind,
    /// Paths as the model wrote them; `Workspace::resolve` resolves them.
    pub paths: Vec<String>,
    /// The shell command, for [`AccessKind::Exec`].
    pub command: Option<String>,
    /// The environment variables set for the command, as assignments in shell syntax.
    pub environment: String,
    /// The normalised URL, for [`AccessKind::Network`].
    pub url: Option<String>,
}

impl Access {
    pub(crate) fn read(path: impl Into<String>) -> Access {
        Access { paths: vec![path.into()], ..Access::none() }
    }

    pub(crate) fn write(path: impl Into<String>) -> Access {
        Access { kind: AccessKind::Write, ..Access::read(path) }
    }

    pub(crate) fn network(url: impl Into<String>) -> Access {
        Access { kind: AccessKind::Network, url: Some(url.into()), ..Access::none() }
    }

    pub(crate) fn category(&self) -> ToolCategory {
        match self.kind {
            AccessKind::Exec => ToolCategory::Command,
            AccessKind::Network => ToolCategory::Network,
            AccessKind::Mcp => ToolCategory::Mcp,
            AccessKind::Read | AccessKind::Write if self.paths.is_empty() => ToolCategory::Other,
            AccessKind::Read | AccessKind::Write => ToolCategory::File,
        }
    }

    /// Returns whether rules that are checked against `shape` can match everything in this access.
    pub(crate) fn has(&self, shape: &AccessShape) -> bool {
        self.kind == shape.kind
            && (shape.path || self.paths.is_empty())
            && (shape.pattern || (self.command.is_none() && self.url.is_none()))
    }

    /// Creates the access of an ordinary call in the session's directory of a tool whose calls have
    /// these shapes: the most restricted one.
    pub(crate) fn ordinary(shapes: &[AccessShape]) -> Access {
        let order = [AccessKind::Read, AccessKind::Write, AccessKind::Mcp, AccessKind::Network, AccessKind::Exec];
        let most = shapes.iter().max_by_key(|shape| order.iter().position(|kind| *kind == shape.kind));
        match most {
            Some(shape) if shape.path => Access { kind: shape.kind, ..Access::read(".") },
            Some(shape) => Access { kind: shape.kind, ..Access::none() },
            None => Access::none(),
        }
    }

    /// Creates an access to nothing outside the session.
    pub(crate) fn none() -> Access {
        Access { kind: AccessKind::Read, paths: Vec::new(), command: None, environment: String::new(), url: None }
    }
}
