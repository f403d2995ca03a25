//! Options of a session that clients choose: the permission mode and the thinking level.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::error::Error;

/// Permission mode of a session: what the session may do without asking the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SerializeDisplay, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Mode {
    /// Reads files; asks before it changes or runs anything.
    #[default]
    Ask,
    /// Changes files of the project; asks before it runs anything.
    AcceptEdits,
    /// Only reads; changes and runs nothing.
    Plan,
    /// Works inside the project without asking.
    Auto,
}

/// A row of [`MODES`].
pub(crate) struct ModeRow {
    pub mode: Mode,
    /// The name in events, methods and flags.
    pub id: &'static str,
    /// The name for display.
    pub name: &'static str,
    pub description: &'static str,
}

/// The modes, in the order of [`Mode`].
pub(crate) const MODES: &[ModeRow] = &[
    ModeRow { mode: Mode::Ask, id: "ask", name: "Ask", description: "Reads freely; asks before changing or running anything" },
    ModeRow {
        mode: Mode::AcceptEdits,
        id: "accept-edits",
        name: "Accept edits",
        description: "Edits project files; asks before running anything",
    },
    ModeRow { mode: Mode::Plan, id: "plan", name: "Plan", description: "Only reads; changes and runs nothing" },
    ModeRow { mode: Mode::Auto, id: "auto", name: "Auto", description: "Works inside the project without asking" },
];

impl Mode {
    /// Returns the name in events, methods and flags.
    pub(crate) fn id(self) -> &'static str {
        MODES[self as usize].id
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(id: &str) -> Result<Mode, Error> {
        MODES.iter().find(|row| row.id == id).map(|row| row.mode).ok_or_else(|| {
            let known: Vec<&str> = MODES.iter().map(|row| row.id).collect();
            Error::invalid_params(format!("unknown mode {id}")).hint(format!("modes: {}", known.join(", ")))
        })
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    /// Parses the serialized name. The error has no hint.
    fn try_from(id: String) -> Result<Mode, String> {
        id.parse().map_err(|error: Error| error.message)
    }
}

/// How much a model may think before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Thinking {
    /// No thinking, if the model can answer without it.
    #[default]
    #[cfg_attr(feature = "cli", value(alias = "none"))]
    Off,
    /// The least thinking.
    Minimal,
    /// Little thinking.
    Low,
    /// A medium amount of thinking.
    Medium,
    /// Much thinking.
    High,
    /// More thinking than `high`.
    #[cfg_attr(feature = "cli", value(name = "xhigh"))]
    XHigh,
    /// As much thinking as the model offers.
    Max,
}

impl Thinking {
    /// All levels, in ascending order.
    pub(crate) const ALL: [Thinking; 7] =
        [Thinking::Off, Thinking::Minimal, Thinking::Low, Thinking::Medium, Thinking::High, Thinking::XHigh, Thinking::Max];

    /// Returns the name for display.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Thinking::Off => "Off",
            Thinking::Minimal => "Minimal",
            Thinking::Low => "Low",
            Thinking::Medium => "Medium",
            Thinking::High => "High",
            Thinking::XHigh => "Extra high",
            Thinking::Max => "Maximum",
        }
    }

    /// Returns the name in events, methods and flags.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Minimal => "minimal",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
            Thinking::XHigh => "xhigh",
            Thinking::Max => "max",
        }
    }

    /// Returns the nearest of the levels `low`, `medium` and `high`, which all APIs with levels
    /// have.
    pub(crate) fn coarse(self) -> &'static str {
        match self {
            Thinking::Off | Thinking::Minimal | Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High | Thinking::XHigh | Thinking::Max => "high",
        }
    }
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Thinking {
    type Err = Error;

    fn from_str(name: &str) -> Result<Thinking, Error> {
        // `none` is the name of `off` in OpenAI's API.
        let name = if name == "none" { "off" } else { name };
        let level = Self::ALL.into_iter().find(|level| level.as_str() == name);
        level.ok_or_else(|| Error::invalid_params(format!("unknown thinking level {name}")))
    }
}

impl JsonSchema for Thinking {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Thinking".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "enum": Thinking::ALL.map(Thinking::as_str) })
    }
}

/// The stored value of an option. A value that `T` does not include, such as another agent's mode
/// or a newer version's thinking level, is kept as text. In JSON, both variants are strings.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, Deserialize)]
#[serde(from = "String", bound(deserialize = "T: FromStr"))]
pub enum OptionValue<T> {
    /// A value of this version of nuncio.
    Known(T),
    /// Any other value.
    Other(String),
}

impl<T: Copy> OptionValue<T> {
    /// Returns the value, or `None` if `T` does not include it.
    pub fn known(&self) -> Option<T> {
        match self {
            OptionValue::Known(value) => Some(*value),
            OptionValue::Other(_) => None,
        }
    }
}

impl<T: Default> Default for OptionValue<T> {
    fn default() -> Self {
        OptionValue::Known(T::default())
    }
}

impl<T: FromStr> From<String> for OptionValue<T> {
    fn from(text: String) -> Self {
        text.parse().map_or(OptionValue::Other(text), OptionValue::Known)
    }
}

impl<T: fmt::Display> fmt::Display for OptionValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Known(value) => value.fmt(f),
            OptionValue::Other(text) => f.write_str(text),
        }
    }
}

impl<T> JsonSchema for OptionValue<T> {
    fn inline_schema() -> bool {
        String::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
