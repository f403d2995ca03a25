//! Clients of the program and fakes of its world, for the tests of the program and of the library.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
// `new` creates directories, or prints a seed.
#![allow(clippy::new_without_default)]

mod agent;
mod calls;
mod collector;
mod editor;
mod events;
mod home;
mod http;
pub mod images;
#[allow(dead_code)]
#[path = "../../../src/limits.rs"]
pub mod limits;
pub mod log;
mod marker;
mod memory;
pub mod pages;
mod poll;
mod process_end;
mod program;
pub mod provider;
mod proxy;
mod random;
pub mod rules;
mod running;
mod server;
mod site;
mod socket;
pub mod steps;
mod store;
pub mod subagents;
mod terminal;
mod updates;
pub mod verdict;
mod watch;
pub mod wires;
mod written_requests;

use std::future::Future;
use std::time::Duration;

pub use agent::{Agent, Reply};
pub use calls::{changing_calls, reading_paths, route, session_routes};
pub use collector::{Collector, hex};
pub use editor::{Editor, Manner};
pub use events::{Events, Frame, StreamEvent};
pub use home::{CommandResult, Home, UNCONFINED};
pub use http::{Answer, Ask, Bridge, Connection};
pub use marker::{marked, marker};
pub use memory::peak_kib;
pub use poll::poll;
pub use process_end::{gone, pause};
pub use program::{POSIX, current_program, package, program};
pub use proxy::{Direction, Proxy};
pub use random::{Random, random_cases};
pub use running::RunningCommand;
pub use server::Server;
pub use site::Site;
pub use socket::Socket;
pub use store::{TestStore, literal, on_postgres};
pub use terminal::Terminal;
pub use updates::{busy, frame, kinds, notices, session_updates, text, tool};
pub use watch::{Watch, WatchFlags};

/// Maximum wait for an expected message or event, or for the end of a command, on a machine that is
/// several times slower than usual.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits for a future and panics after [`LIMIT`].
pub async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing came for {LIMIT:?}"),
    }
}

/// Skips a test of a feature that the POSIX calls do not provide, in a build with NUNCIO_POSIX=1.
#[macro_export]
macro_rules! needs_linux {
    ($feature:literal) => {
        if $crate::POSIX {
            eprintln!("skipped: {}: the POSIX calls have no {}", module_path!(), $feature);
            return;
        }
    };
}

/// Skips a test of SQLite's files if the store is PostgreSQL (`NUNCIO_TEST_STORE`).
#[macro_export]
macro_rules! needs_sqlite {
    ($reason:literal) => {
        if $crate::on_postgres() {
            eprintln!("skipped: {}: {}", module_path!(), $reason);
            return;
        }
    };
}
