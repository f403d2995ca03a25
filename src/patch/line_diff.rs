//! Compares two sequences of lines.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::limits;

/// Returns the operations that turn `old` into `new`. After [`limits::DIFF_TIME`], the rest is
/// compared coarsely.
pub(super) fn compare<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let deadline = Instant::now() + limits::DIFF_TIME;
    // Equal lines get equal numbers. Numbers are compared faster than lines, and the comparison is
    // compiled for one type only.
    let mut numbers: HashMap<&T, usize> = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline))
}
