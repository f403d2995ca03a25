//! The binary to measure, and figures of its processes from `/proc`.

#![allow(dead_code)]

use std::ffi::OsString;
use std::process::Child;

/// The binary to measure: the one of packages, unless `NUNCIO_BENCH_BINARY` names another.
pub fn binary() -> OsString {
    let built = || harness::current_program("../dist", "cargo build --profile dist").into();
    std::env::var_os("NUNCIO_BENCH_BINARY").unwrap_or_else(built)
}

fn read(child: &Child, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("a process")
}

/// Resident memory, in KiB.
pub fn resident_kib(child: &Child) -> u64 {
    let status = read(child, "status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Anonymous memory, in KiB.
pub fn anonymous_kib(child: &Child) -> u64 {
    let maps = read(child, "smaps_rollup");
    let line = maps.lines().find(|line| line.starts_with("Anonymous:")).expect("Anonymous");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// How often the threads of a process have woken up from a wait.
pub fn wakeups(child: &Child) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
    let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
    let counts = statuses.filter_map(|status| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    counts.sum()
}

/// CPU time in seconds, with a resolution of 1/100 s.
pub fn cpu(child: &Child) -> f64 {
    let stat = read(child, "stat");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|field| fields[*field].parse::<u64>().expect("ticks")).sum();
    ticks as f64 / 100.0
}
