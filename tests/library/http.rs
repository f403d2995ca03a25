//! The HTTP bridge and the method table.

mod fields;
