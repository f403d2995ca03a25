//! The orders that nuncio sends to its fork server, in one message each. Their encoding is
//! length-prefixed bytes, because paths and variables need not be UTF-8; serde_json would encode
//! them as arrays of numbers, which do not fit into a message.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::command::{Command, CommandKind};
use super::os::{self, OrderMessage};
use super::sandbox::Sandbox;
use crate::documents::DocumentKind;
use crate::limits;

/// An order to the fork server. Commands are identified by numbers that the sender assigns.
pub(super) enum Order {
    /// Start this command.
    Run(u64, Box<Command>),
    /// Read a document of this kind. The descriptors are those of a command with a piped stdin.
    Read(u64, DocumentKind),
    /// The lifeline of this command or reader was closed. If the supervisor does not terminate the
    /// command in time, the server does.
    Cut(u64),
    /// The supervisor of this command died, or is dying, without a report: kill its leftover
    /// processes. The server answers [`SWEPT`] or [`LEFT`].
    Sweep(u64),
    /// Write a byte to the descriptor of this order if the system permits mounts.
    TryMount,
    /// Commands run under the lease whose deadline is in the file of this order's descriptor. The
    /// first order, if the sender has a lease.
    Lease,
}

const RUN_SHELL: u8 = 0;
const RUN_PROGRAM: u8 = 1;
const CUT: u8 = 2;
const SWEEP: u8 = 3;
const TRY_MOUNT: u8 = 4;
const LEASE: u8 = 5;
const READ: u8 = 6;

/// Answer to a sweep: no process is left.
pub(super) const SWEPT: u8 = 0;
/// Answer to a sweep: some processes are left.
pub(super) const LEFT: u8 = 1;

/// Flags in an encoded command: the command has a sandbox; the sandbox allows changes of git's
/// control files, of `.nuncio`, and the network; the sandbox is required.
const SANDBOXED: &str = "sandboxed";
const GIT_CONFIG: &str = "git_config";
const SETTINGS: &str = "settings";
const NETWORK: &str = "network";
const REQUIRED: &str = "required";

impl Order {
    /// Encodes the order: its kind, the command's number and, for [`Order::Read`], the kind of the
    /// document, or for [`Order::Run`] the lists of texts. Each list and each text is preceded by
    /// its length.
    fn encode(&self) -> Vec<u8> {
        let (kind, number) = match self {
            Order::Run(number, command) => match command.kind {
                CommandKind::Shell(_) => (RUN_SHELL, number),
                CommandKind::Program(_) => (RUN_PROGRAM, number),
            },
            Order::Read(number, _) => (READ, number),
            Order::Cut(number) => (CUT, number),
            Order::Sweep(number) => (SWEEP, number),
            Order::TryMount => (TRY_MOUNT, &0),
            Order::Lease => (LEASE, &0),
        };
        let mut bytes = [&[kind], number.to_ne_bytes().as_slice()].concat();
        match self {
            Order::Run(_, command) => lists(command).iter().for_each(|list| put(list, &mut bytes)),
            Order::Read(_, kind) => bytes.push(*kind as u8),
            Order::Cut(_) | Order::Sweep(_) | Order::TryMount | Order::Lease => {}
        }
        bytes
    }

    /// Decodes an order. `None` if it is malformed.
    fn decode(bytes: &[u8]) -> Option<Order> {
        let (kind, rest) = bytes.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let number = u64::from_ne_bytes(*number);
        match *kind {
            CUT => Some(Order::Cut(number)),
            SWEEP => Some(Order::Sweep(number)),
            TRY_MOUNT => Some(Order::TryMount),
            LEASE => Some(Order::Lease),
            READ => Some(Order::Read(number, DocumentKind::from_number(*rest.first()?)?)),
            kind => Some(Order::Run(number, Box::new(command(kind, rest)?))),
        }
    }

    /// Sends the order in one message with its file descriptors: the command's end of the lifeline
    /// (closing the other end ends the command), the output pipe and, if stdin is piped, the input
    /// pipe, then the pipe for stderr, if it is not discarded.
    pub(super) fn send(&self, socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = self.encode();
        if bytes.len() > limits::ORDER_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "the command is too long"));
        }
        os::send_order(socket, &bytes, descriptors)
    }
}

/// Returns the lists of texts of a command: directory; names and values of variables to set;
/// variables to remove; flags; temporary directory, writable, readable and private paths of the
/// sandbox; arguments.
fn lists(command: &Command) -> [Vec<&OsStr>; 9] {
    fn texts(texts: &[impl AsRef<OsStr>]) -> Vec<&OsStr> {
        texts.iter().map(AsRef::as_ref).collect()
    }
    let sandbox = command.sandbox.as_ref();
    let flags = sandbox.map_or_else(Vec::new, |Sandbox { git_config, settings, network, required, .. }| {
        let own = [(GIT_CONFIG, *git_config), (SETTINGS, *settings), (NETWORK, *network), (REQUIRED, *required)];
        let flags = [(SANDBOXED, true)].into_iter().chain(own);
        flags.filter(|(_, set)| *set).map(|(name, _)| OsStr::new(name)).collect()
    });
    let paths = |paths: fn(&Sandbox) -> &[PathBuf]| sandbox.map_or_else(Vec::new, |sandbox| texts(paths(sandbox)));
    [
        vec![command.cwd.as_os_str()],
        command.env_set.iter().flat_map(|(name, value)| [name.as_os_str(), value]).collect(),
        texts(&command.env_removed),
        flags,
        paths(|sandbox| std::slice::from_ref(&sandbox.temp)),
        paths(|sandbox| &sandbox.writable),
        paths(|sandbox| &sandbox.readable),
        paths(|sandbox| &sandbox.private),
        match &command.kind {
            CommandKind::Shell(line) => vec![OsStr::new(line)],
            CommandKind::Program(arguments) => texts(arguments),
        },
    ]
}

fn put(list: &[&OsStr], into: &mut Vec<u8>) {
    into.extend_from_slice(&(list.len() as u32).to_ne_bytes());
    for text in list {
        into.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        into.extend_from_slice(text.as_bytes());
    }
}

fn command(kind: u8, mut rest: &[u8]) -> Option<Command> {
    let mut list = || take(&mut rest);
    let cwd = list()?.pop()?.into();
    let env_set = list()?.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let env_removed = list()?;
    let flags = list()?;
    let has = |flag: &str| flags.iter().any(|set| set == flag);
    let temp = list()?.pop().unwrap_or_default().into();
    let mut paths = || Some(list()?.into_iter().map(Into::into).collect());
    let (writable, readable, private) = (paths()?, paths()?, paths()?);
    let (git_config, settings, network, required) = (has(GIT_CONFIG), has(SETTINGS), has(NETWORK), has(REQUIRED));
    let sandbox = Sandbox { writable, private, readable, temp, new_temp: false, git_config, settings, network, required };
    let mut arguments = list()?;
    let kind = match kind {
        RUN_SHELL => CommandKind::Shell(arguments.pop()?.into_string().ok()?),
        RUN_PROGRAM => CommandKind::Program(arguments),
        _ => return None,
    };
    Some(Command { kind, cwd, env_set, env_removed, sandbox: has(SANDBOXED).then_some(sandbox), project: None })
}

/// Decodes the first list of texts in `bytes` and removes it.
fn take(bytes: &mut &[u8]) -> Option<Vec<OsString>> {
    fn length(bytes: &mut &[u8]) -> Option<usize> {
        Some(u32::from_ne_bytes(bytes.split_off(..4)?.try_into().ok()?) as usize)
    }
    let texts = length(bytes)?;
    (0..texts).map(|_| length(bytes).and_then(|length| Some(OsString::from_vec(bytes.split_off(..length)?.to_vec())))).collect()
}

/// Receives the next order and its descriptors. Returns `None` when the other end is closed. The
/// order is `None` if the message is malformed or truncated.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(Option<Order>, Vec<OwnedFd>)>> {
    let Some(OrderMessage { bytes, complete, descriptors }) = os::receive_order(socket, buffer)? else { return Ok(None) };
    Ok(Some((Order::decode(&buffer[..bytes]).filter(|_| complete), descriptors)))
}
