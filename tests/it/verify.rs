//! The project's checks: the tool `verify`, the checks at the end of a turn, and `require_clean`.

mod changed_checks;
mod claims;
mod clean_tree;
mod policy;
mod tool;
mod turn_ends;
