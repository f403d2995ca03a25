//! The project's checks: the tool `verify`, the checks at the end of a turn, and `require_clean`.

mod changed;
mod clean;
mod ends;
mod policy;
mod tool;
