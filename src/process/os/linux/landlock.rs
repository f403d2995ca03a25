//! Confines a command with Landlock, which restricts files, seccomp, which restricts sockets and
//! calls that circumvent Landlock, and resource limits. A supervisor restricts itself before it
//! starts its command; descendants inherit the restrictions and cannot remove them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::process::{Resource, Signal, geteuid, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities};

use super::git_control::{ControlFiles, Guard, Watch};
use super::masked::mask;
use super::private::{Split, open};
use super::syscalls;
use crate::process::Sandbox;
use crate::process::resource_limits::lower;

/// Largest file that a sandboxed command may write, in bytes (`RLIMIT_FSIZE`).
const SANDBOX_FILE_BYTES_MAX: u64 = 16 << 30;
/// Maximum number of the user's processes while a sandboxed command runs (`RLIMIT_NPROC`).
const SANDBOX_PROCESSES_MAX: u64 = 16 << 10;

/// The newest Landlock ABI that nuncio uses. Older kernels apply the restrictions that they
/// support.
const NEWEST: ABI = ABI::V9;

/// Rights that are never granted for directories: creating a device file gives access to the
/// device.
const NEVER: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeBlock | MakeChar | IoctlDev});

/// Capabilities, over files and users, that commands run as root keep. The other capabilities
/// affect the system or circumvent the sandbox.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP);

/// Devices that a command may write to, because they store nothing. Terminals are excluded, because
/// people see output there.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Restrictions that older kernels do not support, with the ABI that introduced them.
const UNSUPPORTED: [(ABI, &str); 3] =
    [(ABI::V3, "truncating files"), (ABI::V5, "control of devices"), (ABI::V6, "signals to other processes")];

/// The restrictions in effect, as long as the command runs.
#[derive(Debug, Default)]
pub(in crate::process) struct ActiveSandbox {
    /// The restrictions that this kernel does not support.
    pub unsupported: Vec<&'static str>,
    _locks: Vec<File>,
}

impl Sandbox {
    /// Returns whether this system can restrict files.
    pub(crate) fn is_available() -> bool {
        let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        required.handle_access(AccessFs::WriteFile).is_ok()
    }

    /// Returns whether the system reports changes of control files.
    pub(crate) fn is_watched() -> bool {
        Watch::new().descriptor().is_some()
    }

    /// Returns whether commands can change control files that this sandbox should protect, because
    /// the system permits no mounts. `can_mount` tells whether it does.
    pub(crate) fn exposes_git(&self, can_mount: impl FnOnce() -> bool) -> bool {
        !self.git_config && ControlFiles::has_repository(&self.writable) && !can_mount()
    }

    /// Restricts this process, which must have one thread, and its descendants. The error contains
    /// the reason why the restrictions do not apply.
    pub(in crate::process) fn apply(&self, guard: &Guard) -> Result<ActiveSandbox, String> {
        lower(&[(Resource::Core, 0), (Resource::Fsize, SANDBOX_FILE_BYTES_MAX), (Resource::Nproc, SANDBOX_PROCESSES_MAX)]);
        let split = Split::new(&self.private);
        // Nuncio's directories, with the locks, are hidden next.
        let locks = guard.lock()?;
        let masked = self.mask(&split);
        guard.protect(masked)?;
        drop_capabilities();
        let abi = self.confine_files(if masked { Split::new(&[]) } else { split }).map_err(|error| format!("Landlock: {error}"))?;
        let abi = abi.ok_or("this kernel has no Landlock, or it is turned off")?;
        let mut unsupported: Vec<&str> = UNSUPPORTED.iter().filter(|(since, _)| abi < *since).map(|(_, what)| *what).collect();
        if syscalls::confine(self.network).is_err() {
            unsupported.push(if abi < ABI::V4 { "the network" } else { "sockets other than TCP" });
        }
        Ok(ActiveSandbox { unsupported, _locks: locks })
    }

    /// Hides the private paths inside writable directories. If this returns false, Landlock must
    /// block access to those paths.
    fn mask(&self, split: &Split) -> bool {
        let tops: Vec<PathBuf> = self.writable.iter().filter(|top| split.is_in(top)).cloned().collect();
        let kept: Vec<&Path> = self.writable.iter().chain(&self.readable).chain([&self.temp]).map(PathBuf::as_path).collect();
        let kept: Vec<&Path> = kept.into_iter().filter(|path| !split.is_in(path)).collect();
        !tops.is_empty() && mask(split, &tops, &kept)
    }

    /// Applies Landlock and returns its ABI, or `None` if it is not available. Reading is
    /// restricted only if there are private paths that are not hidden.
    fn confine_files(&self, split: Split) -> Result<Option<ABI>, RulesetError> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let read = if split.private.is_empty() { BitFlags::EMPTY } else { read };
        let mut ruleset = Ruleset::default().handle_access(AccessFs::from_write(NEWEST) | read)?.scope(Scope::from_all(NEWEST))?;
        if !self.network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let write = AccessFs::from_write(NEWEST) & !NEVER;
        let device = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
        let mut created = Some(ruleset.create()?);
        let mut failed = None;
        // Add each rule immediately, so that only one file is open at a time.
        let mut add = |opened: OwnedFd, access: BitFlags<AccessFs>| match created
            .take()
            .map(|it| it.add_rule(PathBeneath::new(opened, access)))
        {
            Some(Ok(next)) => created = Some(next),
            Some(Err(error)) => failed = Some(error),
            None => {}
        };
        let mut allow = |top: &Path, access: BitFlags<AccessFs>| {
            if access.is_empty() {
                return;
            }
            split.allow(top, &mut |opened, is_directory| {
                let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
                add(opened, access);
            });
        };
        self.writable.iter().chain([&self.temp]).for_each(|path| allow(path, write | read));
        self.readable.iter().map(PathBuf::as_path).chain([Path::new("/")]).for_each(|path| allow(path, read));
        DEVICES.iter().filter_map(|path| open(Path::new(path))).for_each(|opened| add(opened, device));
        let Some(created) = created else { return failed.map_or(Ok(None), Err) };
        Ok(match created.restrict_self()?.landlock {
            LandlockStatus::Available { effective_abi, .. } => Some(effective_abi),
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
        })
    }
}

/// Takes files and the network from this process, a reader, which must have one thread, and ends it
/// with its parent. A kernel without Landlock changes nothing: the second restriction,
/// [`syscalls::confine_reader_calls`], is sufficient.
pub(in crate::process) fn confine_reader() -> Result<(), RulesetError> {
    // Fails only for a signal that does not exist.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.handle_access(AccessNet::from_all(NEWEST))?;
    ruleset.scope(Scope::from_all(NEWEST))?.create()?.restrict_self().map(drop)
}

/// Drops capabilities. Commands run as root keep [`CAPABILITIES`]; commands of other users keep
/// none.
fn drop_capabilities() {
    for capability in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        if !CAPABILITIES.contains(capability) {
            // Fails for users other than root, and for capabilities that do not exist.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    // Drop the supervisor's own capabilities too. If the supervisor had more than the command, the
    // shell could not open the report file through /proc (ptrace(2)).
    let kept = if geteuid().is_root() { CAPABILITIES } else { CapabilitySet::empty() };
    if let Ok(own) = capabilities(None) {
        let kept = own.permitted & kept;
        // Dropping capabilities is always permitted.
        let _ = set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() });
    }
}
