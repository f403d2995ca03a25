//! The configuration of a command's sandbox. `os` applies it.

use std::path::PathBuf;

/// The configuration of a sandbox. It restricts writing, the network, and reading of private
/// directories. It does not restrict changes to file modes, owners, times, extended attributes,
/// access lists, file capabilities and flags (landlock(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// Directories below which the command may write, free of symlinks. If empty, the command may
    /// write only in `temp`.
    pub writable: Vec<PathBuf>,
    /// nuncio's own directories, free of symlinks. Their contents can be neither read nor locked,
    /// except for `readable`, `temp` and writable directories below them.
    pub private: Vec<PathBuf>,
    /// Directories that are readable even if they are private.
    pub readable: Vec<PathBuf>,
    /// The command's own temporary directory, to which TMPDIR is set. It must exist, unless
    /// `new_temp` is set.
    pub temp: PathBuf,
    /// Each process has a new temporary directory in `temp`, which it cannot write to otherwise.
    pub new_temp: bool,
    /// Allows changes of git's control files: configuration, hooks, references between git
    /// directories and working trees.
    pub git_config: bool,
    /// Allows changes of the directories `.nuncio`.
    pub settings: bool,
    /// Allows TCP and UDP. Unix sockets stay blocked: the programs behind them act outside the
    /// sandbox on request.
    pub network: bool,
    /// Refuses the command on a system without Landlock, instead of running it without a sandbox.
    pub required: bool,
}
