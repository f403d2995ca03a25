//! The cost of model requests, and the budgets that limit requests, tokens, cost and time.

mod cost;
mod limits;
mod permission_requests;
mod tree;
