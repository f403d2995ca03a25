//! The fork server: `nuncio helper OPEN_FILES`, started on first use, one per process. Its stdin is
//! a socket on which it receives orders, each with a lifeline and pipes. It forks a supervisor for
//! each command, which is faster than executing the binary again.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::getpid;

use super::helper::{self, Pipes, Signals};
use super::{Command, Sandbox, What, tree};
use crate::limits;

/// An order to the server. The sender numbers the commands.
pub(super) enum Order {
    Run(u64, Box<Command>),
    /// The lifeline of this command was closed: if its supervisor does not end it in time, the
    /// server does.
    Cut(u64),
    /// The supervisor of this command died, or is dying, without a report: kill what it left
    /// behind. Answered with [`SWEPT`] or [`LEFT`].
    Sweep(u64),
}

const RUN_SHELL: u8 = 0;
const RUN_PROGRAM: u8 = 1;
const CUT: u8 = 2;
const SWEEP: u8 = 3;

/// Answers to a sweep: no process is left, or some are.
pub(super) const SWEPT: u8 = 0;
const LEFT: u8 = 1;

/// Encoding of a sandbox: `OPEN` without one; otherwise `CONFINED`, whether the network is allowed,
/// whether the sandbox is required, its temporary directory, and the lists of writable, readable
/// and private paths, each preceded by its length.
const OPEN: &str = "open";
const CONFINED: &str = "confined";
const YES: &str = "yes";
const NO: &str = "no";

impl Order {
    /// Encodes the order: a kind, the number, then texts, each preceded by its length: the
    /// directory; the number of variables to set, with the name and value of each; the number of
    /// variables to remove, with the name of each; the sandbox; the arguments.
    fn encode(&self) -> Vec<u8> {
        let (number, command) = match self {
            Order::Run(number, command) => (number, command),
            Order::Cut(number) => return [&[CUT], number.to_ne_bytes().as_slice()].concat(),
            Order::Sweep(number) => return [&[SWEEP], number.to_ne_bytes().as_slice()].concat(),
        };
        let (kind, arguments) = match &command.what {
            What::Shell(line) => (RUN_SHELL, vec![OsString::from(line)]),
            What::Program(arguments) => (RUN_PROGRAM, arguments.clone()),
        };
        let mut bytes = [&[kind], number.to_ne_bytes().as_slice()].concat();
        let mut put = |text: &OsStr| {
            bytes.extend_from_slice(&(text.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        put(command.cwd.as_os_str());
        put(OsStr::new(&command.env_set.len().to_string()));
        for (name, value) in &command.env_set {
            put(name);
            put(value);
        }
        put(OsStr::new(&command.env_removed.len().to_string()));
        command.env_removed.iter().for_each(|text| put(text));
        match &command.sandbox {
            None => put(OsStr::new(OPEN)),
            Some(Sandbox { writable, private, readable, temp, network, required }) => {
                put(OsStr::new(CONFINED));
                [network, required].into_iter().for_each(|flag| put(OsStr::new(if *flag { YES } else { NO })));
                put(temp.as_os_str());
                for paths in [writable, readable, private] {
                    put(OsStr::new(&paths.len().to_string()));
                    paths.iter().for_each(|path| put(path.as_os_str()));
                }
            }
        }
        arguments.iter().for_each(|text| put(text));
        bytes
    }

    /// Decodes an order. `None` if it is malformed.
    fn decode(bytes: &[u8]) -> Option<Order> {
        let (kind, rest) = bytes.split_first()?;
        let (number, mut rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_ne_bytes(*number);
        match *kind {
            CUT => return Some(Order::Cut(number)),
            SWEEP => return Some(Order::Sweep(number)),
            _ => {}
        }
        let mut texts = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (text, after) = after.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
            texts.push(OsString::from_vec(text.to_vec()));
            rest = after;
        }
        let mut texts = texts.into_iter();
        let cwd = PathBuf::from(texts.next()?);
        let count = |text: OsString| text.to_str()?.parse::<usize>().ok();
        let set = count(texts.next()?)?;
        let env_set = (0..set).map(|_| Some((texts.next()?, texts.next()?))).collect::<Option<_>>()?;
        let removed = count(texts.next()?)?;
        let env_removed = (0..removed).map(|_| texts.next()).collect::<Option<_>>()?;
        let sandbox = match texts.next()?.to_str()? {
            OPEN => None,
            _ => {
                let (network, required) = (texts.next()? == YES, texts.next()? == YES);
                let temp = texts.next()?.into();
                let mut paths = || {
                    let length = count(texts.next()?)?;
                    (0..length).map(|_| Some(texts.next()?.into())).collect::<Option<Vec<PathBuf>>>()
                };
                let (writable, readable, private) = (paths()?, paths()?, paths()?);
                Some(Sandbox { writable, private, readable, temp, network, required })
            }
        };
        let what = match *kind {
            RUN_SHELL => What::Shell(texts.next()?.into_string().ok()?),
            RUN_PROGRAM => What::Program(texts.collect()),
            _ => return None,
        };
        Some(Order::Run(number, Box::new(Command { what, cwd, env_set, env_removed, sandbox })))
    }

    /// Sends the order in one message with its descriptors: the lifeline, the output pipe and, if
    /// stdin is piped, that pipe.
    pub(super) fn send(&self, socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = self.encode();
        if bytes.len() > limits::ORDER_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "the command is too long"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Receives the next order and its descriptors. `None` when the other end is closed; the order is
/// `None` if it is malformed or truncated.
fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(Option<Order>, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let complete = !received.flags.contains(ReturnFlags::TRUNC);
    Ok(Some((Order::decode(&buffer[..received.bytes]).filter(|_| complete), descriptors)))
}

/// The running supervisors, by process id.
#[derive(Default)]
struct Supervisors(HashMap<u32, Supervised>);

struct Supervised {
    number: u64,
    /// Deadline for its end, once its lifeline was closed.
    until: Option<Instant>,
}

/// Serves until the other end of the socket is closed, which closes all lifelines, and then until
/// all supervisors have ended.
pub(super) fn serve(open_files: u64) -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let signals = Signals::block()?;
    let mut supervisors = Supervisors::default();
    let mut buffer = vec![0; limits::ORDER_BYTES_MAX];
    let served = loop {
        let ready = signals.wait_for(io::stdin().as_fd(), supervisors.time_left());
        supervisors.reap();
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match receive(io::stdin().as_fd(), &mut buffer) {
                Err(error) => break Err(error),
                Ok(None) => break Ok(()),
                Ok(Some((order, descriptors))) => supervisors.handle(order, descriptors, open_files),
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
    fn handle(&mut self, order: Option<Order>, descriptors: Vec<OwnedFd>, open_files: u64) {
        match order {
            Some(Order::Run(number, command)) => {
                if let Some(pid) = fork(*command, descriptors, open_files) {
                    self.0.insert(pid, Supervised { number, until: None });
                }
            }
            Some(Order::Cut(number)) => self.cut(|known| known == number),
            Some(Order::Sweep(number)) => {
                // The lifeline of a killed process closes before its children get a new parent: the
                // supervisor is killed and reaped with them.
                self.0.retain(|_, known| known.number != number);
                let answer = if self.kill_orphans() { SWEPT } else { LEFT };
                // Errors are ignored: the receiver is gone then.
                let _ = rustix::io::write(io::stdin(), &[answer]);
            }
            None => {}
        }
    }

    /// Sets the deadline of the supervisors that match: their lifelines are closed, which makes
    /// them end their commands.
    fn cut(&mut self, matches: impl Fn(u64) -> bool) {
        let until = Instant::now() + limits::SUPERVISOR_WAIT;
        self.0.values_mut().filter(|known| matches(known.number)).for_each(|known| known.until = known.until.or(Some(until)));
    }

    /// Returns the time until the next deadline.
    fn time_left(&self) -> Option<Duration> {
        let next = self.0.values().filter_map(|known| known.until).min();
        next.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Removes supervisors that have ended and those past their deadline, such as a supervisor that
    /// its command stopped. Kills the processes that late or killed supervisors left, which the
    /// kernel reparents to this process.
    fn reap(&mut self) {
        let mut killed = false;
        tree::reap(|pid, status| {
            let known = self.0.remove(&pid.as_raw_nonzero().get().unsigned_abs());
            killed |= known.is_some() && status.signaled();
        });
        let (now, before) = (Instant::now(), self.0.len());
        self.0.retain(|_, known| known.until.is_none_or(|until| until > now));
        if killed || self.0.len() < before {
            self.kill_orphans();
        }
    }

    /// Kills the processes without a supervisor. Returns false if some are left.
    fn kill_orphans(&self) -> bool {
        tree::kill_orphans(|pid| self.0.contains_key(&pid))
    }
}

/// Forks a supervisor and returns its process id. Does not return in the supervisor itself.
fn fork(command: Command, descriptors: Vec<OwnedFd>, open_files: u64) -> Option<u32> {
    let mut descriptors = descriptors.into_iter();
    let (Some(lifeline), Some(output), input) = (descriptors.next(), descriptors.next(), descriptors.next()) else {
        return None;
    };
    // SAFETY: this process has one thread, so the child may do anything that the parent may.
    match unsafe { libc::fork() } {
        -1 => {
            let message = format!("nuncio: cannot start a process: {}\n", io::Error::last_os_error());
            // The output carries the reason; without a supervisor, the command ends as if it was
            // killed.
            let _ = rustix::io::write(&output, message.as_bytes());
            None
        }
        0 => helper::supervisor_main(command, Pipes { lifeline, output, input }, open_files),
        pid => Some(pid.unsigned_abs()),
    }
}
