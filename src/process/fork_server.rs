//! The fork server: `nuncio helper OPEN_FILES`, started on first use, one per process. Its stdin is
//! a socket on which it receives orders, each with a lifeline and pipes. It forks a supervisor for
//! each command, which is faster than executing the binary again, and a reader for each document.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::command::Command;
use super::fork::fork;
use super::lease::DeadlineMemory;
use super::order::{LEFT, Order, SWEPT, receive};
use super::os::{self, CommandMark, ControlFiles};
use super::readers::Readers;
use super::sandbox::Sandbox;
use super::signals::Signals;
use super::supervisor::{self, FAILED, Pipes};
use super::tree;
use crate::limits;

/// How long a supervisor may take to terminate its command on request. After that, the fork server
/// kills the supervisor and the command.
const SUPERVISOR_WAIT: Duration = Duration::from_secs(1);

/// Runs the fork server. `arguments` are the command-line arguments after [`super::HELPER`]. Must
/// be called at the start of `main`, before any thread is started.
pub fn helper_main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    // Leave the user's terminal, so that commands cannot use it or be stopped by it. Fails only for
    // a process group leader, such as a helper started by hand.
    let _ = rustix::process::setsid();
    let open_files = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let served = match open_files {
        Some(open_files) => serve(open_files),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "this subcommand is internal to nuncio")),
    };
    if let Err(error) = &served {
        eprintln!("nuncio: cannot supervise commands: {error}");
    }
    std::process::exit(if served.is_ok() { 0 } else { FAILED })
}

/// The supervisors, by process id, and the readers.
#[derive(Default)]
struct Supervisors {
    running: HashMap<u32, SupervisedCommand>,
    /// Supervisors that were killed, or are to be killed, and that may have left processes.
    lost: Vec<(u32, CommandMark)>,
    readers: Readers,
    /// The deadline of the lease under which the commands run.
    lease: Option<DeadlineMemory>,
}

struct SupervisedCommand {
    number: u64,
    mark: CommandMark,
    /// The files that the command cannot change. Their placeholders are removed after it.
    control: ControlFiles,
    /// Time by which the supervisor must exit; set when its lifeline is closed.
    until: Option<Instant>,
}

/// Serves until the other end of the socket is closed, which closes all lifelines, and then until
/// all supervisors have ended.
fn serve(open_files: u64) -> io::Result<()> {
    os::adopt_descendants()?;
    let signals = Signals::open()?;
    let mut supervisors = Supervisors::default();
    let mut buffer = vec![0; limits::ORDER_BYTES_MAX];
    let served = loop {
        let ready = signals.wait_for(io::stdin().as_fd(), supervisors.time_left());
        supervisors.reap();
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match receive(io::stdin().as_fd(), &mut buffer) {
                Err(error) => break Err(error),
                Ok(None) => break Ok(()),
                Ok(Some((order, descriptors))) => {
                    if let Err(error) = supervisors.handle(order, descriptors, open_files) {
                        break Err(error);
                    }
                }
            }
        }
    };
    supervisors.cut(|_| true);
    while let Some(time_left) = supervisors.time_left() {
        signals.wait_child(time_left);
        supervisors.reap();
    }
    served
}

impl Supervisors {
    /// Executes an order. Fails if the deadline of the lease cannot be read.
    fn handle(&mut self, order: Option<Order>, descriptors: Vec<OwnedFd>, open_files: u64) -> io::Result<()> {
        match order {
            Some(Order::Run(number, command)) => {
                let control = command.sandbox.as_ref().map(Sandbox::control_files).unwrap_or_default();
                if let Some((pid, mark)) = start(*command, &control, descriptors, open_files, self.lease.as_ref()) {
                    self.running.insert(pid, SupervisedCommand { number, mark, control, until: None });
                }
            }
            Some(Order::Read(number, kind)) => self.readers.start(number, kind, descriptors),
            Some(Order::Cut(number)) => self.cut(|known| known == number),
            Some(Order::Sweep(number)) => {
                // Treat the supervisor as an orphan too, so that it is killed and reaped with its
                // children: the lifeline of a killed process closes before its children get a new
                // parent.
                self.lose(|known| known.number == number);
                let answer = if self.kill_orphans() { SWEPT } else { LEFT };
                // Errors are ignored: they mean that the receiver is gone.
                let _ = rustix::io::write(io::stdin(), &[answer]);
            }
            Some(Order::TryMount) => {
                if let Some(answer) = descriptors.first().filter(|_| os::can_mount()) {
                    let _ = rustix::io::write(answer, &[1]);
                }
            }
            Some(Order::Lease) => {
                let file = descriptors.first().ok_or(io::ErrorKind::InvalidData)?;
                self.lease = Some(DeadlineMemory::open(file.as_fd())?);
            }
            None => {}
        }
        Ok(())
    }

    /// Kills the matching readers, and sets the deadline of the matching supervisors. Their
    /// lifelines are closed, so they are terminating their commands.
    fn cut(&mut self, matches: impl Fn(u64) -> bool) {
        self.readers.cut(&matches);
        let until = Instant::now() + SUPERVISOR_WAIT;
        self.running.values_mut().filter(|known| matches(known.number)).for_each(|known| known.until = known.until.or(Some(until)));
    }

    /// Returns the time until the next deadline.
    fn time_left(&self) -> Option<Duration> {
        let next = self.running.values().filter_map(|known| known.until).min();
        let next = next.map(|until| until.saturating_duration_since(Instant::now()));
        next.into_iter().chain(self.readers.time_left()).min()
    }

    /// Removes supervisors that have exited or are past their deadline, for example because their
    /// command sent them SIGSTOP. Kills the processes that late or killed supervisors left behind,
    /// which the kernel reparents to this process.
    fn reap(&mut self) {
        let before = self.lost.len();
        self.readers.watch();
        tree::reap(|pid, status| {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            if self.readers.ended(pid, status) {
                return;
            }
            let Some(known) = self.running.remove(&pid) else { return };
            known.control.remove_placeholders();
            self.lost.extend(status.signaled().then_some((pid, known.mark)));
        });
        let now = Instant::now();
        self.lose(|known| known.until.is_some_and(|until| until <= now));
        if self.lost.len() > before {
            self.kill_orphans();
        }
    }

    /// Counts the matching supervisors as lost.
    fn lose(&mut self, matches: impl Fn(&SupervisedCommand) -> bool) {
        self.lost.extend(self.running.extract_if(|_, known| matches(known)).map(|(pid, known)| (pid, known.mark)));
    }

    /// Kills the processes without a supervisor. Returns false if some are left.
    fn kill_orphans(&mut self) -> bool {
        let killed = tree::kill_orphans(&self.lost, |pid| self.running.contains_key(&pid) || self.readers.contains(pid));
        if killed {
            self.lost.clear();
        }
        killed
    }
}

/// Forks a supervisor and returns its process id and the mark of its processes. Does not return in
/// the supervisor itself.
fn start(
    command: Command,
    control: &ControlFiles,
    descriptors: Vec<OwnedFd>,
    open_files: u64,
    lease: Option<&DeadlineMemory>,
) -> Option<(u32, CommandMark)> {
    let mut descriptors = descriptors.into_iter();
    let (Some(lifeline), Some(output)) = (descriptors.next(), descriptors.next()) else { return None };
    let (input, errors) = (descriptors.next(), descriptors.next());
    match fork() {
        Err(error) => {
            // Report the reason in the command's output. Without a supervisor, the command ends as
            // if it had been killed.
            let _ = rustix::io::write(&output, format!("nuncio: cannot start a process: {error}\n").as_bytes());
            None
        }
        Ok((0, mark)) => {
            let pipes = Pipes { lifeline, mark, output, input, errors };
            supervisor::supervisor_main(command, control, pipes, open_files, lease)
        }
        forked => forked.ok(),
    }
}
