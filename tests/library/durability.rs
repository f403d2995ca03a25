//! Durability: the conversation after a kill, and without deltas.

mod killed_turn;
mod pruned_deltas;
