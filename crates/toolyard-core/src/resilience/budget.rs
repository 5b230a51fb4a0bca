//! How much may be spent.

use serde::{Deserialize, Serialize};

/// How many calls a turn, a session, a tree or a tool may start, and what they may cost together (RT-11).
///
/// A call is counted once, however often it is tried again; what it costs its tool declares, in units of the
/// embedder's choice. What is `None` has no bound; a bound of zero lets nothing start.
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
    /// Calls that may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Units of cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

impl Budget {
    /// No bound at all. The default.
    pub const UNLIMITED: Self = Self { calls: None, cost: None };

    /// At most so many calls.
    pub const fn calls(most: u64) -> Self {
        Self { calls: Some(most), cost: None }
    }

    /// At most so many units of cost.
    pub const fn cost(most: u64) -> Self {
        Self { calls: None, cost: Some(most) }
    }

    /// The same with at most so many calls.
    #[must_use]
    pub const fn with_calls(mut self, most: u64) -> Self {
        self.calls = Some(most);
        self
    }

    /// The same with at most so many units of cost.
    #[must_use]
    pub const fn with_cost(mut self, most: u64) -> Self {
        self.cost = Some(most);
        self
    }

    /// Whether it bounds nothing.
    pub const fn is_unlimited(&self) -> bool {
        self.calls.is_none() && self.cost.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    /// RT-11: a budget is read as it is written, and what is no budget is refused.
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
}
