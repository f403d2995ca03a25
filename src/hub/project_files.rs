//! Files of a project in which other agents find programs that they start.

use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::limits;
use crate::workspace::read_small_text;

/// A configuration of another agent in a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ForeignConfig {
    /// The file or directory, relative to the project.
    pub path: &'static str,
    /// The agent that reads it.
    pub agent: &'static str,
    /// The programs that it names, such as `3 hooks, 1 MCP server`.
    pub starts: String,
}

impl std::fmt::Display for ForeignConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.path, self.starts)
    }
}

/// A file or directory that an agent reads in each project.
struct Row {
    agent: &'static str,
    path: &'static str,
    names: Names,
}

/// How a file or directory names programs.
enum Names {
    /// JSON, by key.
    Json(&'static [(&'static str, Count)]),
    /// TOML, by key.
    Toml(&'static [(&'static str, Count)]),
    /// A directory of programs, with the noun for them.
    Programs(&'static str),
}

/// How the value of a key is counted, with the name of what is counted.
#[derive(Clone, Copy)]
enum Count {
    /// Members of an object or an array.
    Members(&'static str),
    /// Hooks in the groups of each event: `{EVENT: [{"hooks": [HOOK, …]}, …]}`.
    Hooks,
    /// The value is one program.
    One(&'static str),
}

const SERVER: Count = Count::Members("MCP server");
const CLAUDE: Names = Names::Json(&[
    ("hooks", Count::Hooks),
    ("apiKeyHelper", Count::One("API key helper")),
    ("statusLine", Count::One("status line")),
]);
const SERVERS: Names = Names::Json(&[("mcpServers", SERVER)]);
const OPENCODE: Names = Names::Json(&[
    ("plugin", Count::Members("plugin")),
    ("mcp", SERVER),
    ("lsp", Count::Members("language server")),
    ("formatter", Count::Members("formatter")),
]);

const ROWS: &[Row] = &[
    Row { agent: "Claude Code", path: ".claude/settings.json", names: CLAUDE },
    Row { agent: "Claude Code", path: ".claude/settings.local.json", names: CLAUDE },
    Row { agent: "Claude Code", path: ".mcp.json", names: SERVERS },
    Row {
        agent: "Codex",
        path: ".codex/config.toml",
        names: Names::Toml(&[("hooks", Count::Hooks), ("mcp_servers", SERVER), ("notify", Count::One("notification command"))]),
    },
    Row { agent: "Codex", path: ".codex/hooks.json", names: Names::Json(&[("hooks", Count::Hooks)]) },
    Row { agent: "Cursor", path: ".cursor/mcp.json", names: SERVERS },
    Row { agent: "GitHub Copilot", path: ".github/hooks", names: Names::Programs("hook file") },
    Row {
        agent: "Gemini CLI",
        path: ".gemini/settings.json",
        names: Names::Json(&[("hooks", Count::Hooks), ("mcpServers", SERVER)]),
    },
    Row { agent: "OpenCode", path: "opencode.json", names: OPENCODE },
    Row { agent: "OpenCode", path: "opencode.jsonc", names: OPENCODE },
    Row { agent: "OpenCode", path: ".opencode/opencode.json", names: OPENCODE },
    Row { agent: "OpenCode", path: ".opencode/opencode.jsonc", names: OPENCODE },
    Row { agent: "OpenCode", path: ".opencode/plugin", names: Names::Programs("plugin") },
    Row { agent: "OpenCode", path: ".opencode/plugins", names: Names::Programs("plugin") },
    Row { agent: "OpenCode", path: ".opencode/tool", names: Names::Programs("tool") },
    Row { agent: "OpenCode", path: ".opencode/tools", names: Names::Programs("tool") },
    Row { agent: "pi", path: ".pi/extensions", names: Names::Programs("extension") },
    Row { agent: "Qwen Code", path: ".qwen/settings.json", names: Names::Json(&[("hooks", Count::Hooks), ("mcpServers", SERVER)]) },
];

/// Returns the configuration of other agents in `directory`, with the programs that it names. Only
/// data of a bounded size is read.
pub(crate) fn project_files(directory: &Path) -> Vec<ForeignConfig> {
    let existing = ROWS.iter().filter_map(|row| {
        let starts = row.names.found(&directory.join(row.path))?;
        Some(ForeignConfig { path: row.path, agent: row.agent, starts })
    });
    existing.collect()
}

impl Names {
    /// Describes the programs that a file or directory names; `None` if it does not exist.
    fn found(&self, path: &Path) -> Option<String> {
        let (keys, value): (_, Option<Value>) = match self {
            Names::Programs(what) => {
                return match std::fs::read_dir(path) {
                    Ok(entries) => Some(counted(entries.take(limits::AGENT_ITEMS_MAX).count(), what)),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(_) => Some("unreadable, may name programs".into()),
                };
            }
            Names::Json(keys) => (keys, text(path)?.and_then(|text| crate::json::from_str(&text).ok())),
            Names::Toml(keys) => (keys, text(path)?.and_then(|text| toml::from_str(&text).ok())),
        };
        // Agents accept more than is parsed here, such as comments in JSON.
        let Some(value) = value else { return Some("unreadable, may name programs".into()) };
        let counts = keys.iter().map(|(key, count)| count.count(&value[*key])).filter(|(number, _)| *number > 0);
        let counts: Vec<String> = counts.map(|(number, what)| counted(number, what)).collect();
        Some(if counts.is_empty() { "no programs".into() } else { counts.join(", ") })
    }
}

impl Count {
    /// Returns the number of programs in a value, and the noun for them.
    fn count(self, value: &Value) -> (usize, &'static str) {
        match self {
            Count::Members(what) => (members(value).count(), what),
            Count::Hooks => {
                let groups = members(value).flat_map(members);
                (groups.map(|group| members(&group["hooks"]).count()).sum(), "hook")
            }
            Count::One(what) => (usize::from(!value.is_null()), what),
        }
    }
}

/// Reads a file. `None` if it does not exist, `Some(None)` if it cannot be read.
fn text(path: &Path) -> Option<Option<String>> {
    match read_small_text(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        read => Some(read.ok()),
    }
}

/// Returns the values of an object or an array.
fn members(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
