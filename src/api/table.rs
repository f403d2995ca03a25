//! The table itself. A new method is its struct in a file of its group, and a line here.

use super::method::Entry;
use super::{initialize, message, options, permission, prompt, session, turn, view};

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
    Entry::of::<view::Get>(),
    Entry::of::<view::Messages>(),
    Entry::of::<turn::Turns>(),
    Entry::of::<message::Message>(),
    Entry::of::<message::Retry>(),
    Entry::of::<permission::List>(),
    Entry::of::<permission::Answer>(),
];

pub fn entry(name: &str) -> Option<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == name)
}
