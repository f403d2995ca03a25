//! The subagents of a session.

pub(super) mod ancestor;
pub(crate) mod budget_owner;
pub(super) mod children;
pub(super) mod running_children;
pub(super) mod work_view;
