//! Bounds on the number of calls and on their cost.

use serde::{Deserialize, Serialize};

/// How many calls a turn, a session, a tree or a tool may start, and at what total cost (RT-11).
///
/// A call counts once, however often it is retried. Its tool declares what it costs, in units that the embedder
/// chooses. `None` is unlimited; with zero, nothing starts.
///
/// # Examples
/// ```
/// use toolyard_core::Budget;
/// let budget = Budget::calls(10).with_cost(500);
/// assert_eq!((budget.calls, budget.cost), (Some(10), Some(500)));
/// assert!(Budget::UNLIMITED.is_unlimited());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// The number of calls that may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The units of cost they may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

impl Budget {
    /// No limit. The default.
    pub const UNLIMITED: Self = Self { calls: None, cost: None };

    /// At most this many calls.
    pub const fn calls(max: u64) -> Self {
        Self { calls: Some(max), cost: None }
    }

    /// At most this many units of cost.
    pub const fn cost(max: u64) -> Self {
        Self { calls: None, cost: Some(max) }
    }

    /// Sets the maximum number of calls.
    #[must_use]
    pub const fn with_calls(mut self, max: u64) -> Self {
        self.calls = Some(max);
        self
    }

    /// Sets the maximum units of cost.
    #[must_use]
    pub const fn with_cost(mut self, max: u64) -> Self {
        self.cost = Some(max);
        self
    }

    /// Whether the budget limits nothing.
    pub const fn is_unlimited(&self) -> bool {
        self.calls.is_none() && self.cost.is_none()
    }

    /// What both budgets allow: the smaller number of calls, and the smaller cost (SM-8).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::Budget;
    /// let both = Budget::calls(5).with_cost(70).min(Budget::calls(9));
    /// assert_eq!(both, Budget::calls(5).with_cost(70));
    /// ```
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self { calls: least(self.calls, other.calls), cost: least(self.cost, other.cost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    /// RT-11: a budget reads back as written, and anything else is refused.
    #[test]
    fn a_budget_reads_back_as_it_was_written() {
        for budget in [Budget::UNLIMITED, Budget::calls(0), Budget::cost(7), Budget::calls(1).with_cost(2)] {
            assert_eq!(from_value::<Budget>(json!(budget)).unwrap(), budget);
        }
        assert_eq!(json!(Budget::calls(3)), json!({"calls": 3}));
        for bad in [json!({"calls": -1}), json!({"calls": 1.5}), json!({"cals": 1}), json!({"cost": "many"})]
        {
            assert!(from_value::<Budget>(bad.clone()).is_err(), "{bad}");
        }
    }

    /// SM-8: the least of two budgets allows what both allow; no bound is more than any bound.
    #[test]
    fn the_least_of_two_budgets_is_what_both_allow() {
        let cases = [
            (Budget::UNLIMITED, Budget::UNLIMITED, Budget::UNLIMITED),
            (Budget::UNLIMITED, Budget::calls(0), Budget::calls(0)),
            (Budget::calls(3), Budget::cost(7), Budget::calls(3).with_cost(7)),
            (Budget::calls(3).with_cost(1), Budget::calls(2).with_cost(9), Budget::calls(2).with_cost(1)),
        ];
        for (one, other, least) in cases {
            assert_eq!((one.min(other), other.min(one)), (least, least));
        }
    }
}
