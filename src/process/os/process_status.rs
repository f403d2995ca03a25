//! Properties of a process that each system lists.

/// The time at which a process started. The unit depends on the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StartTime(pub(super) u64);

pub(in crate::process) struct ProcessStatus {
    pub zombie: bool,
    pub parent: u32,
    pub started: StartTime,
}
