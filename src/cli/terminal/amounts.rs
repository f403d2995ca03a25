//! Formats amounts for people: tokens and times.

use std::time::Duration;

/// Formats a number of tokens with at most three digits: `950`, `1.2k`, `34k`, `1.2M`.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..9_950 => format!("{:.1}k", number as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Formats a time: `0.8 s`, `42 s`, `3 min 5 s`, `2 h 4 min`.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
