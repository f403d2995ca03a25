//! Input from a terminal and output to it.

pub(super) mod activity;
pub(super) mod amounts;
pub(super) mod answer;
pub(super) mod ask;
pub(super) mod cell;
pub(super) mod client;
pub(super) mod editor;
mod file_change;
pub(super) mod form;
pub(super) mod input_queue;
pub(super) mod lines;
pub(super) mod markdown;
pub(super) mod marks;
pub(super) mod notify;
pub(super) mod output;
mod partial_change;
pub(super) mod remarks;
pub(super) mod renderer;
pub(super) mod status_line;
pub(super) mod styled_text;
pub(super) mod syntax;
