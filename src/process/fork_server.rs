//! The fork server: `nuncio helper OPEN_FILES`, one for a process and made when it is first needed. Its stdin is a socket from which it
//! takes orders, each with a lifeline and pipes; for each it forks a supervisor, which is quicker than to begin anew.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::event::PollFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::getpid;

use super::helper::{self, Pipes, Signals};
use super::{Command, Sandbox, What, tree};
use crate::limits;

/// What is asked of the server. A sweep is answered with one byte when it is done.
pub(super) enum Order {
    Run(Command),
    Sweep,
}

const RUN_SHELL: u8 = 0;
const RUN_PROGRAM: u8 = 1;
const SWEEP: u8 = 2;

/// What precedes a sandbox: whether there is network, whether it is required, its temporary directory, how many directories may be
/// written, the path of each. Nothing follows `OPEN`.
const OPEN: &str = "open";
const CONFINED: &str = "confined";
const YES: &str = "yes";
const NO: &str = "no";

impl Order {
    /// A kind, then texts, each behind its length: directory; how many are set, name and value of each; how many are removed, the name
    /// of each; those of a sandbox; the rest are arguments.
    fn encode(&self) -> Vec<u8> {
        let Order::Run(command) = self else { return vec![SWEEP] };
        let (kind, arguments) = match &command.what {
            What::Shell(line) => (RUN_SHELL, vec![OsString::from(line)]),
            What::Program(arguments) => (RUN_PROGRAM, arguments.clone()),
        };
        let mut bytes = vec![kind];
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
            Some(Sandbox { writable, temp, network, required }) => {
                put(OsStr::new(CONFINED));
                [network, required].into_iter().for_each(|flag| put(OsStr::new(if *flag { YES } else { NO })));
                put(temp.as_os_str());
                put(OsStr::new(&writable.len().to_string()));
                writable.iter().for_each(|path| put(path.as_os_str()));
            }
        }
        arguments.iter().for_each(|text| put(text));
        bytes
    }

    /// None: not of our making.
    fn decode(bytes: &[u8]) -> Option<Order> {
        let (kind, mut rest) = bytes.split_first()?;
        if *kind == SWEEP {
            return Some(Order::Sweep);
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
                let directories = count(texts.next()?)?;
                let writable = (0..directories).map(|_| Some(texts.next()?.into())).collect::<Option<_>>()?;
                Some(Sandbox { writable, temp, network, required })
            }
        };
        let what = match *kind {
            RUN_SHELL => What::Shell(texts.next()?.into_string().ok()?),
            RUN_PROGRAM => What::Program(texts.collect()),
            _ => return None,
        };
        Some(Order::Run(Command { what, cwd, env_set, env_removed, sandbox }))
    }

    /// Sends it with its descriptors, in one message: the lifeline, the pipe for the output, and perhaps the one that is to be stdin.
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

/// The next order and its descriptors; none when nobody will send one any more.
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
    let whole = !received.flags.contains(ReturnFlags::TRUNC);
    Ok(Some((Order::decode(&buffer[..received.bytes]).filter(|_| whole), descriptors)))
}

/// Serves until the other end of the socket is closed. Supervisors that run then go on by themselves: their lifelines tell them what to do.
pub(super) fn serve(open_files: u64) -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let signals = Signals::block()?;
    let mut supervisors = HashSet::new();
    let mut buffer = vec![0; limits::ORDER_BYTES_MAX];
    loop {
        let ready = signals.wait_for(io::stdin().as_fd(), None);
        reap(&mut supervisors);
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match receive(io::stdin().as_fd(), &mut buffer)? {
                None => return Ok(()),
                Some((Some(Order::Run(command)), descriptors)) => supervisors.extend(fork(command, descriptors, open_files)?),
                Some((Some(Order::Sweep), _)) => {
                    tree::kill_orphans(|pid| supervisors.contains(&pid));
                    rustix::io::write(io::stdin(), &[0])?;
                }
                Some((None, _)) => {}
            }
        }
    }
}

/// Forgets supervisors that are gone. What one that was killed left came to us, and is killed.
fn reap(supervisors: &mut HashSet<u32>) {
    let mut killed = false;
    tree::reap(|pid, status| {
        let known = supervisors.remove(&pid.as_raw_nonzero().get().unsigned_abs());
        killed |= known && status.signaled();
    });
    if killed {
        tree::kill_orphans(|pid| supervisors.contains(&pid));
    }
}

/// The id of the supervisor; in the supervisor itself this does not return.
fn fork(command: Command, descriptors: Vec<OwnedFd>, open_files: u64) -> io::Result<Option<u32>> {
    let mut descriptors = descriptors.into_iter();
    let (Some(lifeline), Some(output), input) = (descriptors.next(), descriptors.next(), descriptors.next()) else {
        return Ok(None);
    };
    // SAFETY: this process has one thread, so whatever the child does is as safe as here.
    match unsafe { libc::fork() } {
        -1 => {
            let said = format!("nuncio: cannot start a process: {}\n", io::Error::last_os_error());
            // The command ends as one whose supervisor is gone; whoever reads its output is told why.
            let _ = rustix::io::write(&output, said.as_bytes());
            Ok(None)
        }
        0 => helper::supervisor_main(command, Pipes { lifeline, output, input }, open_files),
        pid => Ok(Some(pid.unsigned_abs())),
    }
}
