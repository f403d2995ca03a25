//! What a command may touch: files by Landlock, sockets and what leads around both by seccomp, and a few resources. A supervisor
//! restricts itself before it starts its command; whatever comes of that inherits it and cannot shed it. Linux only.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, make_bitflags,
};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities};

use super::masked::mask;
use super::private::{Split, open};
use super::syscalls;
use crate::limits;

/// Writing and the network are confined, and reading of what is private. Modes, owners and times of files are not, nor extended
/// attributes, access lists, file capabilities and flags (landlock(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// Directories below which the command may write, free of symlinks. None: only in `temp`.
    pub writable: Vec<PathBuf>,
    /// Nuncio's own directories, free of symlinks: what is in them is neither read nor locked, whatever else is allowed, except what is
    /// `readable`, `temp`, or a writable directory below them.
    pub private: Vec<PathBuf>,
    /// Directories that are readable although they may be private.
    pub readable: Vec<PathBuf>,
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
        let split = Split::new(&self.private);
        let masked = self.mask(&split);
        drop_capabilities();
        let abi = self.confine_files(if masked { Split::new(&[]) } else { split }).map_err(|error| format!("Landlock: {error}"))?;
        let abi = abi.ok_or("this kernel has no Landlock, or it is turned off")?;
        let mut lacks: Vec<&str> = LACKS.iter().filter(|(since, _)| abi < *since).map(|(_, what)| *what).collect();
        if syscalls::confine(self.network).is_err() {
            lacks.push(if abi < ABI::V4 { "the network" } else { "sockets other than TCP" });
        }
        Ok(lacks)
    }

    /// Covers what is private, where a writable directory contains it. False: Landlock has to keep the command from it.
    fn mask(&self, split: &Split) -> bool {
        let tops: Vec<PathBuf> = self.writable.iter().filter(|top| split.is_in(top)).cloned().collect();
        let kept: Vec<&Path> = self.writable.iter().chain(&self.readable).chain([&self.temp]).map(PathBuf::as_path).collect();
        let kept: Vec<&Path> = kept.into_iter().filter(|path| !split.is_in(path)).collect();
        !tops.is_empty() && mask(split, &tops, &kept)
    }

    /// None: there is no Landlock. Reading is confined only where something is private and not covered.
    fn confine_files(&self, split: Split) -> Result<Option<ABI>, RulesetError> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let read = if split.private.is_empty() { BitFlags::EMPTY } else { read };
        let mut ruleset = Ruleset::default().handle_access(AccessFs::from_write(NEWEST) | read)?.scope(Scope::from_all(NEWEST))?;
        if !self.network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let write = AccessFs::from_write(NEWEST) & !NEVER;
        let device = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
        let mut rules: Vec<Result<PathBeneath<_>, RulesetError>> = Vec::new();
        let mut allow = |top: &Path, access: BitFlags<AccessFs>| {
            if access.is_empty() {
                return;
            }
            split.allow(top, &mut |opened, is_directory| {
                let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
                rules.push(Ok(PathBeneath::new(opened, access)));
            });
        };
        self.writable.iter().chain([&self.temp]).for_each(|path| allow(path, write | read));
        self.readable.iter().map(PathBuf::as_path).chain([Path::new("/")]).for_each(|path| allow(path, read));
        rules.extend(DEVICES.iter().filter_map(|path| open(Path::new(path))).map(|opened| Ok(PathBeneath::new(opened, device))));
        let status = ruleset.create()?.add_rules(rules)?.restrict_self()?;
        Ok(match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Some(effective_abi),
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
        })
    }
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
