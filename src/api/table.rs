//! The method table. To add a method, add a struct to the file of its group and a row here.

use super::method::Entry;
use super::{artifact, attachment, fork, initialize, message, options, permission, prompt, session, status, turn, view};

/// All methods.
pub const METHODS: &[Entry] = &[
    Entry::of::<initialize::Initialize>(),
    Entry::of::<initialize::Authenticate>(),
    Entry::of::<initialize::Logout>(),
    Entry::of::<session::NewSession>(),
    Entry::of::<session::LoadSession>(),
    Entry::of::<session::ResumeSession>(),
    Entry::of::<fork::Fork>(),
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
    Entry::of::<status::Tools>(),
    Entry::of::<status::Agents>(),
    Entry::of::<status::Models>(),
    Entry::of::<status::Status>(),
    Entry::of::<attachment::Add>(),
    Entry::of::<attachment::Get>(),
    Entry::of::<attachment::List>(),
    Entry::of::<artifact::List>(),
    Entry::of::<artifact::Get>(),
];

/// The row of the method `name`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == name)
}
