//! Subagents: the tool `task`, child sessions, their permissions and their end.

mod background;
mod client_sessions;
mod definitions;
mod depth;
mod parent_end;
mod permissions;
mod problem_report;
mod results;
