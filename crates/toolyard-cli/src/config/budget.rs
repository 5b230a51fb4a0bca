//! `[budget]`, and `budget` of a tool: how many calls may run, and at what cost.

use super::{
    ConfigError,
    section::{Counted, Section},
};
use toolyard::{Budget, Budgets};

/// The budgets; a budget that is not set is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    /// For each turn.
    pub(crate) turn: Budget,
    /// For each agent.
    pub(crate) session: Budget,
    /// For a session and all its sub-agents.
    pub(crate) tree: Budget,
}

impl From<Spending> for Budgets {
    fn from(Spending { turn, session, tree }: Spending) -> Self {
        Self::default().turn(turn).session(session).tree(tree)
    }
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> Result<Spending, ConfigError> {
    let mut of = |key| take(&mut section, key).map(Option::unwrap_or_default);
    let spending = Spending { turn: of("turn")?, session: of("session")?, tree: of("tree")? };
    section.finish()?;
    Ok(spending)
}

/// Takes one budget: a number of calls, or a table.
pub(super) fn take(section: &mut Section<'_>, key: &'static str) -> Result<Option<Budget>, ConfigError> {
    let mut table = match section.section_or_number(key)? {
        None => return Ok(None),
        Some(Counted::Number(calls)) => return Ok(Some(Budget::calls(calls))),
        Some(Counted::Table(table)) => table,
    };
    let mut budget = Budget::UNLIMITED;
    budget.calls = table.whole("calls", 0, u64::MAX)?;
    budget.cost = table.whole("cost", 0, u64::MAX)?;
    table.finish()?;
    Ok(Some(budget))
}
