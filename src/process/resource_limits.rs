//! Limits of the resources of a process (getrlimit(2)).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lowers limits of this process and its descendants; a limit that is lower already is kept.
pub(super) fn lower(limits: &[(Resource, u64)]) {
    for (resource, most) in limits {
        let most = getrlimit(*resource).maximum.map_or(*most, |hard| hard.min(*most));
        // Lowering a limit is always permitted.
        let _ = setrlimit(*resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}
