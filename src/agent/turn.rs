//! A turn of the native agent: the loop, model requests, budget, context window, checks and review.

pub(super) mod answer;
pub(super) mod budget;
pub(super) mod context_window;
pub(super) mod fallback;
pub(super) mod native_agent;
pub(super) mod repetition;
pub(super) mod request;
pub(super) mod review;
pub(super) mod review_questions;
pub(super) mod run;
pub(super) mod step;
pub(super) mod turn_host;
pub(super) mod verify;
