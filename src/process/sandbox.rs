//! What a command may touch: files by Landlock, sockets and what leads around both by seccomp, and a few resources. A supervisor
//! restricts itself before it starts its command; whatever comes of that inherits it and cannot shed it. Linux only.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, make_bitflags,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities};

use super::syscalls;
use crate::limits;

/// Writing and the network are confined, reading is not. Modes, owners and times of files are not either (landlock(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Directories below which the command may write, free of symlinks. None: only in `temp`.
    pub writable: Vec<PathBuf>,
    /// A directory of its own, which its TMPDIR names. It has to exist.
    pub temp: PathBuf,
    /// TCP and UDP. Unix sockets stay shut: behind them are programs that act outside for whoever asks.
    pub network: bool,
    /// Without Landlock the command is refused, instead of run as if there were no sandbox.
    pub required: bool,
}

/// Whatever changes files; kernels that know less are asked for less.
const NEWEST: ABI = ABI::V9;

/// Not in directories: to make a device is to write to what it stands for.
const NEVER: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeBlock | MakeChar | IoctlDev});

/// Capabilities of root that are for files and for users. The others are for the machine, or lead around what is shut here.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP);

/// Devices that hold nothing. Terminals are not among them: what is written there reaches people.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What older kernels cannot keep a command from, and since when it can be.
const LACKS: [(ABI, &str); 3] =
    [(ABI::V3, "truncating files"), (ABI::V5, "control of devices"), (ABI::V6, "signals to other processes")];

impl Sandbox {
    /// Restricts this process, which has one thread, and all that it starts. Gives what this kernel cannot keep it from; an error says
    /// why nothing was restricted.
    pub(super) fn apply(&self) -> Result<Vec<&'static str>, String> {
        limit_resources();
        drop_capabilities();
        let abi = self.confine_files().map_err(|error| format!("Landlock: {error}"))?;
        let abi = abi.ok_or("this kernel has no Landlock, or it is turned off")?;
        let mut lacks: Vec<&str> = LACKS.iter().filter(|(since, _)| abi < *since).map(|(_, what)| *what).collect();
        if syscalls::confine(self.network).is_err() {
            lacks.push(if abi < ABI::V4 { "the network" } else { "sockets other than TCP" });
        }
        Ok(lacks)
    }

    /// None: there is no Landlock.
    fn confine_files(&self) -> Result<Option<ABI>, RulesetError> {
        let mut ruleset = Ruleset::default().handle_access(AccessFs::from_write(NEWEST))?.scope(Scope::from_all(NEWEST))?;
        if !self.network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let directory = AccessFs::from_write(NEWEST) & !NEVER;
        let device = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
        let beneath = |path: &Path, access| Some(Ok::<_, RulesetError>(PathBeneath::new(open(path)?, access)));
        let directories = self.writable.iter().chain([&self.temp]).filter_map(|path| beneath(path, directory));
        let devices = DEVICES.iter().filter_map(|path| beneath(Path::new(path), device));
        let status = ruleset.create()?.add_rules(directories)?.add_rules(devices)?.restrict_self()?;
        Ok(match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Some(effective_abi),
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
        })
    }
}

/// Not through symlinks: an earlier command may have put one in the place of a directory. What cannot be opened is not written to.
fn open(path: &Path) -> Option<OwnedFd> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

/// What root starts has the capabilities that are not taken away here; everybody else's commands have none.
fn drop_capabilities() {
    for capability in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        if !CAPABILITIES.contains(capability) {
            // It fails for who is not root, and for capabilities that do not exist.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    // No more for us than for the command, which otherwise could not reach what we hold for it (ptrace(2)): where its shell reports.
    let kept = if geteuid().is_root() { CAPABILITIES } else { CapabilitySet::empty() };
    if let Ok(own) = capabilities(None) {
        let kept = own.permitted & kept;
        // To have less is always allowed.
        let _ = set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() });
    }
}

/// They only ever go down; one that is lower already stays.
fn limit_resources() {
    let limits =
        [(Resource::Core, 0), (Resource::Fsize, limits::SANDBOX_FILE_BYTES_MAX), (Resource::Nproc, limits::SANDBOX_PROCESSES_MAX)];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        // Lowering one's own is always allowed.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}
