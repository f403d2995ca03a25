//! Programs that a project's settings name, or that the user's settings start inside a project:
//! what they may do, and the trust that each start requires.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data_paths::DataPaths;
use super::trust::{Trust, TrustStatus};
use crate::error::{Error, Kind, Result};
use crate::workspace::{leads_out, real_path};

/// Rights of the programs of a trusted project outside of it. Only the user's settings grant them,
/// by the project's directory: `[trust."/home/me/project".mcp.NAME]`. `~` is the home directory.
/// The grants of a directory also hold below it, in addition to those that are named there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectGrants {
    /// All hooks that run in the project.
    pub hooks: Grant,
    /// The check commands of the project.
    pub checks: Grant,
    /// The commands of `[worktree] setup`.
    pub setup: Grant,
    /// The commands that print API keys and tokens.
    pub tokens: Grant,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, Grant>,
    /// Language servers, by name.
    pub lsp: BTreeMap<String, Grant>,
}

/// The rights of a confined program, in addition to writing inside the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// TCP and UDP.
    pub network: bool,
    /// Directories below which the program may write. `~` is the home directory; a relative path
    /// is relative to the project.
    pub writable: Vec<PathBuf>,
}

/// The kind of a program, which selects its grant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramKind<'a> {
    Hook,
    Check,
    Setup,
    Token,
    Mcp(&'a str),
    Lsp(&'a str),
}

impl ProgramKind<'_> {
    /// Returns the name of the grant in [`ProjectGrants`].
    fn grant_name(self) -> String {
        match self {
            ProgramKind::Hook => "hooks".into(),
            ProgramKind::Check => "checks".into(),
            ProgramKind::Setup => "setup".into(),
            ProgramKind::Token => "tokens".into(),
            ProgramKind::Mcp(name) => format!("mcp.{name}"),
            ProgramKind::Lsp(name) => format!("lsp.{name}"),
        }
    }

    /// Returns the grant for programs of this kind, if there is one.
    fn grant(self, grants: &ProjectGrants) -> Option<&Grant> {
        match self {
            ProgramKind::Hook => Some(&grants.hooks),
            ProgramKind::Check => Some(&grants.checks),
            ProgramKind::Setup => Some(&grants.setup),
            ProgramKind::Token => Some(&grants.tokens),
            ProgramKind::Mcp(name) => grants.mcp.get(name),
            ProgramKind::Lsp(name) => grants.lsp.get(name),
        }
    }
}

/// A program that runs confined in a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectProgram {
    /// The directory of the project's settings, without symlinks.
    pub directory: PathBuf,
    pub grant: Grant,
    /// Name of the grant in the user's settings.
    pub grant_name: String,
    /// Directories of the grant that are not used, because a symlink of the project leads to them.
    dropped: Vec<PathBuf>,
    /// nuncio's own directories, which the program cannot read.
    pub private: Vec<PathBuf>,
    /// The data directory, which has the list of trusted directories.
    data: PathBuf,
    /// The project's settings name the program, so that they must be the trusted ones. Else the
    /// directory must be trusted.
    named_by_project: bool,
}

impl ProjectProgram {
    /// Describes a program in `directory`. `grants` are those of the user's settings.
    pub(crate) fn new(
        places: &DataPaths,
        grants: &BTreeMap<PathBuf, ProjectGrants>,
        directory: &Path,
        kind: ProgramKind<'_>,
        named_by_project: bool,
    ) -> ProjectProgram {
        let directory = real_path(directory);
        let trust = Trust::load(places);
        let place = trust.place(&directory);
        let home = places.home.as_deref().unwrap_or(Path::new("/"));
        let above = grants.iter().filter(|(named, _)| place.starts_with(real_path(&below_home(named, home))));
        let mut grant = Grant::default();
        for given in above.filter_map(|(_, grants)| kind.grant(grants)) {
            grant.network |= given.network;
            grant.writable.extend(given.writable.iter().map(|path| directory.join(below_home(path, home))));
        }
        let (dropped, writable): (Vec<_>, Vec<_>) =
            grant.writable.into_iter().partition(|path| leads_out(path, std::slice::from_ref(&directory)));
        grant.writable = writable.iter().map(|path| real_path(path)).collect();
        let grant_name = format!("[trust.\"{}\".{}]", place.display(), kind.grant_name());
        let (private, data) = (places.private(), places.data.clone());
        ProjectProgram { directory, grant, grant_name, dropped, private, data, named_by_project }
    }

    /// Fails if the project is not trusted, or if its settings or a file that they name differ from
    /// what was trusted.
    pub(crate) fn check_trust(&self) -> Result<()> {
        let trust = Trust::load_from(&self.data);
        let shown = self.directory.display();
        let status = match self.named_by_project {
            true => trust.status(&self.directory),
            false if trust.covers(&self.directory) => TrustStatus::Yes,
            false => trust.status(&self.directory),
        };
        let message = match status {
            TrustStatus::Yes => return Ok(()),
            TrustStatus::No => format!("not started: {shown} is not trusted"),
            TrustStatus::Changed | TrustStatus::NoDigest => {
                format!("not started: files that the settings of {shown} name changed since they were trusted")
            }
        };
        let command =
            if status == TrustStatus::Changed { "to see the changes: nuncio trust --diff" } else { "to trust it: nuncio trust" };
        Err(Error::new(Kind::Forbidden, format!("{message} ({command} {shown})")))
    }

    /// Returns the directory of the program's own files. Programs with other rights have another
    /// one: what a program without network writes must not decide what one with network runs.
    pub(crate) fn own_directory(&self) -> PathBuf {
        let name = format!("{}{}", self.grant_name, if self.grant.network { " network" } else { "" });
        super::trusted_content::entry(&self.data.join("caches"), Path::new(&name))
    }

    /// Adds the sentence about the confinement to the reason of a failure, unless the program did
    /// not start because the project is not trusted.
    pub(crate) fn with_hint(&self, why: String) -> String {
        if self.check_trust().is_ok() { format!("{why} ({})", self.hint()) } else { why }
    }

    /// Describes the confinement in one sentence, for messages about failures.
    pub(crate) fn hint(&self) -> String {
        let network = if self.grant.network { "" } else { " and has no network" };
        let dropped: String = self
            .dropped
            .iter()
            .map(|path| format!("; {} is not writable: a symlink of the project leads to it", path.display()))
            .collect();
        format!(
            "it runs confined: it writes only inside the project{network}; to allow more, set network or writable in {} of your settings{dropped}",
            self.grant_name
        )
    }
}

/// Replaces `~` at the start of a path by the home directory.
pub(crate) fn below_home(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~").map_or_else(|_| path.into(), |rest| home.join(rest))
}
