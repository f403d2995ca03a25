//! Budgets and prices.

mod cost;
