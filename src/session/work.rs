//! Turns, and the messages and prompts that wait for them.

pub(crate) mod asking_turn;
pub(super) mod background;
pub(super) mod capacity;
#[doc(hidden)]
pub mod core;
pub(crate) mod decisions;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
pub mod new_turn;
pub(super) mod run;
#[doc(hidden)]
pub mod turn;
