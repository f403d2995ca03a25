//! Providers by the tables of the library.

mod local;
mod table;
