//! Hosted agents, and agents in terminals.

mod terminal_sessions;
