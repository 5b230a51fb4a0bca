//! `[budget]`, and `budget` of a tool: how many calls may run, and at what cost.

use super::section::{Section, TableOrNumber};
use toolyard::{Budget, Budgets};

/// The budgets; a budget that is not set is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BudgetSettings {
    /// For each turn.
    pub(crate) turn: Budget,
    /// For each agent.
    pub(crate) session: Budget,
    /// For a session and all its sub-agents.
    pub(crate) tree: Budget,
}

impl From<BudgetSettings> for Budgets {
    fn from(BudgetSettings { turn, session, tree }: BudgetSettings) -> Self {
        Self::default().turn(turn).session(session).tree(tree)
    }
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> BudgetSettings {
    let mut of = |key| take(&mut section, key).unwrap_or_default();
    let settings = BudgetSettings { turn: of("turn"), session: of("session"), tree: of("tree") };
    section.finish();
    settings
}

/// Takes one budget: a number of calls, or a table.
pub(super) fn take(section: &mut Section<'_>, key: &'static str) -> Option<Budget> {
    let mut table = match section.table_or_number(key)? {
        TableOrNumber::Number(calls) => return Some(Budget::calls(calls)),
        TableOrNumber::Table(table) => table,
    };
    let mut budget = Budget::UNLIMITED;
    budget.calls = table.integer("calls", 0, u64::MAX);
    budget.cost = table.integer("cost", 0, u64::MAX);
    table.finish();
    Some(budget)
}
