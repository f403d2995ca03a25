//! The fork server: `nuncio helper OPEN_FILES`, started on first use, one per process. Its stdin is
//! a socket on which it receives orders, each with a lifeline and pipes. It forks a supervisor for
//! each command, which is faster than executing the binary again, and a reader for each document.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::SendFlags;

use super::command::Command;
use super::fork::fork;
use super::fork_server_handle::HelperArguments;
use super::lease::DeadlineMemory;
use super::order::{LEFT, Order, SWEPT, receive};
use super::os::{self, CommandMark, Guard, Watch};
use super::readers::Readers;
use super::report;
use super::signals::Signals;
use super::supervisor::{self, FAILED, Pipes};
use super::tree;
use crate::limits;

/// Variables with which a command names a git directory.
pub(crate) const GIT_DIR_VARIABLES: [&str; 2] = ["GIT_DIR", "GIT_COMMON_DIR"];

/// How long a supervisor may take to terminate its command on request. After that, the fork server
/// kills the supervisor and the command.
const SUPERVISOR_WAIT: Duration = Duration::from_secs(1);

/// Interval at which control files are checked if the system reports no changes.
const CHECK_AGAIN: Duration = Duration::from_millis(20);

/// Runs the fork server. `arguments` are the command-line arguments after [`super::HELPER`]: the
/// soft limit on open files, and the directories that variables of commands name as git
/// directories. Must be called at the start of `main`, before any thread is started.
pub fn helper_main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    // Leave the user's terminal, so that commands cannot use it or be stopped by it. Fails only for
    // a process group leader, such as a helper started by hand.
    let _ = rustix::process::setsid();
    let open_files = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let served = match open_files {
        Some(open_files) => serve(HelperArguments { open_files, git_dirs: arguments.map(PathBuf::from).collect() }),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "this subcommand is internal to nuncio")),
    };
    if let Err(error) = &served {
        eprintln!("nuncio: cannot supervise commands: {error}");
    }
    std::process::exit(if served.is_ok() { 0 } else { FAILED })
}

/// The supervisors, by process id, and the readers.
struct Supervisors {
    running: HashMap<u32, SupervisedCommand>,
    arguments: HelperArguments,
    watch: Watch,
    /// True if the system permits mounts. Set when it is first tried.
    mounts: OnceCell<bool>,
    /// Supervisors that were killed, or are to be killed, and that may have left processes.
    lost: Vec<(u32, CommandMark)>,
    /// The guards of their commands, for when no process of them is left.
    lost_guards: Vec<Guard>,
    readers: Readers,
    /// The deadline of the lease under which the commands run.
    lease: Option<DeadlineMemory>,
}

struct SupervisedCommand {
    number: u64,
    mark: CommandMark,
    /// Watches over the files that the command cannot change, and the lifeline for its report.
    guard: Option<(Guard, OwnedFd)>,
    /// Time by which the supervisor must exit; set when its lifeline is closed.
    until: Option<Instant>,
}

/// Serves until the other end of the socket is closed, which closes all lifelines, and then until
/// all supervisors have ended.
fn serve(arguments: HelperArguments) -> io::Result<()> {
    os::adopt_descendants()?;
    let signals = Signals::open()?;
    let mut supervisors = Supervisors {
        running: HashMap::new(),
        arguments,
        watch: Watch::new(),
        mounts: OnceCell::new(),
        lost: Vec::new(),
        lost_guards: Vec::new(),
        readers: Readers::default(),
        lease: None,
    };
    let mut buffer = vec![0; limits::ORDER_BYTES_MAX];
    let served = loop {
        let ready = signals.wait_for(io::stdin().as_fd(), supervisors.watch.descriptor(), supervisors.time_left());
        supervisors.reap();
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match receive(io::stdin().as_fd(), &mut buffer) {
                Err(error) => break Err(error),
                Ok(None) => break Ok(()),
                Ok(Some((order, descriptors))) => {
                    if let Err(error) = supervisors.handle(order, descriptors) {
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
    fn handle(&mut self, order: Option<Order>, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        match order {
            Some(Order::Run(number, command)) => self.run(number, *command, descriptors),
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
                if let Some(answer) = descriptors.first().filter(|_| *self.mounts.get_or_init(os::can_mount)) {
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

    /// Starts a command.
    fn run(&mut self, number: u64, command: Command, descriptors: Vec<OwnedFd>) {
        let guard = command
            .sandbox
            .as_ref()
            .map(|sandbox| Guard::new(sandbox, self.named(&command), || *self.mounts.get_or_init(os::can_mount)));
        let mut guard = guard.unwrap_or_default();
        self.running.values().filter_map(|known| known.guard.as_ref()).for_each(|(other, _)| guard.share(other));
        guard.watch(&mut self.watch);
        // The report ends when this is closed, too.
        let lifeline = descriptors.first().filter(|_| guard.is_needed()).and_then(|lifeline| lifeline.try_clone().ok());
        if let Some((pid, mark)) = start(command, &guard, descriptors, self.arguments.open_files, self.lease.as_ref()) {
            let guard = lifeline.map(|lifeline| (guard, lifeline));
            self.running.insert(pid, SupervisedCommand { number, mark, guard, until: None });
        }
    }

    /// Returns the directories that variables of a command name as git directories.
    fn named(&self, command: &Command) -> Vec<PathBuf> {
        let set = command.env_set.iter().filter(|(name, _)| GIT_DIR_VARIABLES.iter().any(|known| name == known));
        set.map(|(_, value)| value.into())
            .chain(self.arguments.git_dirs.iter().cloned())
            .map(|path: PathBuf| command.cwd.join(path))
            .collect()
    }

    /// Protects control files again that another process replaced.
    fn check(&mut self) {
        let (matters, now) = (self.watch.matters(), Instant::now());
        for (pid, known) in &mut self.running {
            if let Some((guard, _)) = &mut known.guard
                && (matters || guard.due().is_some_and(|due| due <= now))
            {
                guard.check(*pid);
                guard.watch(&mut self.watch);
            }
        }
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
        let now = Instant::now();
        let unwatched = self.watch.descriptor().is_none().then(|| now + CHECK_AGAIN);
        let times = |known: &SupervisedCommand| {
            let guard = known.guard.as_ref().map(|(guard, _)| guard.due().into_iter().chain(unwatched).min());
            known.until.into_iter().chain(guard.flatten()).min()
        };
        let next = self.running.values().filter_map(times).min();
        let next = next.map(|until| until.saturating_duration_since(now));
        next.into_iter().chain(self.readers.time_left()).min()
    }

    /// Removes supervisors that have exited or are past their deadline, for example because their
    /// command sent them SIGSTOP. Kills the processes that late or killed supervisors left behind,
    /// which the kernel reparents to this process.
    fn reap(&mut self) {
        let before = self.lost.len();
        self.readers.watch();
        let mut ended = Vec::new();
        tree::reap(|pid, status| ended.push((pid.as_raw_nonzero().get().unsigned_abs(), status)));
        // Reads all changes that the ended commands made.
        self.check();
        for (pid, status) in ended {
            if self.readers.ended(pid, status) {
                continue;
            }
            match self.running.remove(&pid) {
                Some(known) if status.signaled() => self.lost(pid, known),
                Some(SupervisedCommand { guard: Some((guard, lifeline)), .. }) => {
                    let [restored, created] = guard.finish().map(|files| files.join(", "));
                    if status.exit_status() == Some(0) && !(restored.is_empty() && created.is_empty()) {
                        // Fails if the receiver is gone, or does not read.
                        let _ = rustix::net::send(lifeline, &report::files(&restored, &created), SendFlags::DONTWAIT);
                    }
                }
                Some(_) | None => {}
            }
        }
        let now = Instant::now();
        self.lose(|known| known.until.is_some_and(|until| until <= now));
        if self.lost.len() > before {
            self.kill_orphans();
        }
    }

    /// Counts the matching supervisors as lost.
    fn lose(&mut self, matches: impl Fn(&SupervisedCommand) -> bool) {
        let found: Vec<_> = self.running.extract_if(|_, known| matches(known)).collect();
        found.into_iter().for_each(|(pid, known)| self.lost(pid, known));
    }

    fn lost(&mut self, pid: u32, known: SupervisedCommand) {
        self.lost.push((pid, known.mark));
        self.lost_guards.extend(known.guard.map(|(guard, _)| guard));
    }

    /// Kills the processes without a supervisor. Returns false if some are left.
    fn kill_orphans(&mut self) -> bool {
        let killed = tree::kill_orphans(&self.lost, |pid| self.running.contains_key(&pid) || self.readers.contains(pid));
        if killed {
            self.lost.clear();
            for guard in self.lost_guards.drain(..) {
                guard.finish();
            }
        }
        killed
    }
}

/// Forks a supervisor and returns its process id and the mark of its processes. Does not return in
/// the supervisor itself.
fn start(
    command: Command,
    guard: &Guard,
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
            supervisor::supervisor_main(command, guard, pipes, open_files, lease)
        }
        forked => forked.ok(),
    }
}
