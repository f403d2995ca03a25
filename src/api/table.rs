//! The table itself. A new method is its struct in a file of its group, and a line here.

use super::method::Entry;
use super::{initialize, options, prompt, session};

pub const METHODS: &[Entry] = &[
    Entry::of::<initialize::Initialize>(),
    Entry::of::<initialize::Authenticate>(),
    Entry::of::<initialize::Logout>(),
    Entry::of::<session::NewSession>(),
    Entry::of::<session::LoadSession>(),
    Entry::of::<session::ResumeSession>(),
    Entry::of::<session::ListSessions>(),
    Entry::of::<session::CloseSession>(),
    Entry::of::<session::DeleteSession>(),
    Entry::of::<options::SetMode>(),
    Entry::of::<options::SetConfigOption>(),
    Entry::of::<prompt::Prompt>(),
    Entry::of::<prompt::Cancel>(),
];

pub fn entry(name: &str) -> Option<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == name)
}
