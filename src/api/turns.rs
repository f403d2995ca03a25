//! Methods for turns: prompts, messages, permission requests.

pub(super) mod context;
pub(super) mod execute;
pub(super) mod jobs;
pub(super) mod message;
pub(super) mod permission;
pub(super) mod prompt;
pub(super) mod queue;
pub(super) mod result;
pub(super) mod rules;
pub(super) mod turn;
