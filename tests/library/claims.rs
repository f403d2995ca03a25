//! What answers claim about checks, held against what ran.

mod endings;
mod judge;
mod ran;
