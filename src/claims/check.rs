//! Names and kinds of checks.

use std::fmt;

/// A set of kinds of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// Tests.
    pub const TEST: Kinds = Kinds(1);
    /// A build or a compilation.
    pub const BUILD: Kinds = Kinds(2);
    /// A linter.
    pub const LINT: Kinds = Kinds(4);
    /// A type checker.
    pub const TYPES: Kinds = Kinds(8);
    /// A formatter.
    pub const FORMAT: Kinds = Kinds(16);
    /// Every kind.
    pub const ALL: Kinds = Kinds(31);

    /// Returns the kinds of both sets.
    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns whether the sets share a kind.
    pub const fn intersects(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Kinds::TEST, "tests"),
            (Kinds::BUILD, "build"),
            (Kinds::LINT, "lint"),
            (Kinds::TYPES, "type check"),
            (Kinds::FORMAT, "format"),
        ];
        let named: Vec<&str> = names.into_iter().filter(|(kind, _)| self.intersects(*kind)).map(|(_, name)| name).collect();
        formatter.write_str(&named.join(", "))
    }
}

/// The check that a sentence names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckName {
    /// A program, for example `["cargo", "test"]`, and the kinds of checks that it makes.
    Program { words: Vec<String>, kinds: Kinds },
    /// A kind that a word names, for example "tests".
    Kind(Kinds),
}

impl CheckName {
    /// Returns the kinds of checks that the name stands for.
    pub fn kinds(&self) -> Kinds {
        match self {
            CheckName::Program { kinds, .. } | CheckName::Kind(kinds) => *kinds,
        }
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckName::Program { words, .. } => formatter.write_str(&words.join(" ")),
            CheckName::Kind(kinds) => kinds.fmt(formatter),
        }
    }
}
