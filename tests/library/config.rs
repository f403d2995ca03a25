//! Settings.

mod narrow;
