//! Formats amounts for people: tokens and times.

use std::time::Duration;

use chrono::{DateTime, Local};

/// Formats a number of tokens with at most three digits: `950`, `1.2k`, `34k`, `1.2M`.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => format!("{:.1}k", number as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Formats a time of RFC 3339 as the local time: `2026-11-28 14:05`. An invalid time is empty.
pub(crate) fn local_time(time: &str) -> String {
    let time = DateTime::parse_from_rfc3339(time);
    time.map(|time| time.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

/// Formats the time since a time of RFC 3339: `12 s`, `5 min`, `3 h`, `2 d`. An invalid time is
/// empty.
pub(crate) fn age(time: &str) -> String {
    let Ok(time) = DateTime::parse_from_rfc3339(time) else { return String::new() };
    match Local::now().signed_duration_since(time).num_seconds().max(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Formats a duration: `0.8 s`, `42 s`, `3 min 5 s`, `2 h 4 min`.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
