//! A refusal, and the list to which the rules add.

/// A part of a request that a provider refuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Number of the rule in [`RULES`](super::RULES).
    pub rule: u8,
    /// The provider's path to the part, such as `tools.0.custom.name` or `messages[3].content[1]`.
    pub place: String,
    /// The provider's words.
    pub message: String,
    /// The provider's code for the error, if it has one.
    pub code: Option<&'static str>,
    pub status: u16,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "rule {}, {}: {}", self.rule, self.place, self.message)
    }
}

#[derive(Default)]
pub struct Refusals(Vec<Refusal>);

impl Refusals {
    pub fn add(&mut self, rule: u8, place: impl Into<String>, message: impl Into<String>) {
        let refusal = Refusal { rule, place: place.into(), message: message.into(), code: None, status: 400 };
        self.0.push(refusal);
    }

    /// Adds a refusal with the provider's code.
    pub fn add_code(&mut self, rule: u8, code: &'static str, place: impl Into<String>, message: impl Into<String>) {
        self.add_status(rule, 400, Some(code), place, message);
    }

    /// Adds a refusal with another status than 400.
    pub fn add_status(
        &mut self,
        rule: u8,
        status: u16,
        code: Option<&'static str>,
        place: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.0.push(Refusal { rule, place: place.into(), message: message.into(), code, status });
    }

    pub fn into_sorted(mut self) -> Vec<Refusal> {
        self.0.sort_by_key(|refusal| refusal.rule);
        self.0
    }
}
