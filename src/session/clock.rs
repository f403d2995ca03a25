//! The time of events.

/// Returns the time in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_millis() as u64).unwrap_or(0)
}
