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
    /// The amounts of some turns, with those of the subagents that ended during these turns. The
    /// requests of these subagents do not count.
    pub(crate) fn of(turns: &[TurnRecord]) -> Spending {
        let tokens = |usage: Usage| usage.input_tokens + usage.output_tokens;
        let of_turn = |turn: &TurnRecord| Spending {
            requests: turn.requests,
            tokens: tokens(turn.usage.unwrap_or_default()) + tokens(turn.children.0),
            nano_dollars: (turn.cost.unwrap_or_default() + turn.children.1).nano_dollars(),
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

    /// The amounts used since the total was `before`.
    pub(crate) fn since(self, before: Spending) -> Spending {
        Spending {
            requests: self.requests.saturating_sub(before.requests),
            tokens: self.tokens.saturating_sub(before.tokens),
            nano_dollars: self.nano_dollars.saturating_sub(before.nano_dollars),
        }
    }
}
