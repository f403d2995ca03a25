//! The amounts that model requests have used, of which budgets limit the sum.

use super::turns::TurnRecord;
use crate::content::Usage;

/// The amounts that model requests have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spending {
    pub requests: u64,
    pub tokens: u64,
    pub nano_dollars: u64,
}

impl Spending {
    /// Adds the amounts of some turns, with those of their subagents that have ended.
    pub(crate) fn from_turns(turns: &[TurnRecord]) -> Spending {
        let tokens = |usage: Usage| usage.input_tokens + usage.output_tokens;
        let of_turn = |turn: &TurnRecord| {
            let (usage, cost) = turn.total();
            Spending {
                requests: turn.requests + turn.children.requests,
                tokens: tokens(usage.unwrap_or_default()),
                nano_dollars: cost.unwrap_or_default().nano_dollars(),
            }
        };
        turns.iter().map(of_turn).fold(Spending::default(), Spending::plus)
    }

    pub(crate) fn plus(self, other: Spending) -> Spending {
        Spending {
            requests: self.requests + other.requests,
            tokens: self.tokens + other.tokens,
            nano_dollars: self.nano_dollars.saturating_add(other.nano_dollars),
        }
    }
}
