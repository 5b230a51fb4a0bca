//! What the agents of a session tree may spend (RT-11).

use crate::{
    budget::{Allowance, Books, Whose},
    config::Budgets,
    registry::ToolEntry,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use toolyard_core::Budget;

/// The allowances of a tree: what all draw on, what each tool has, and how those of agents and turns are made.
pub(super) struct Spending {
    books: Books,
    budgets: Budgets,
    tree: Option<Arc<Allowance>>,
    /// Of tools with a budget; made with the first call.
    tools: Mutex<BTreeMap<Arc<str>, OfTool>>,
}

/// What the calls of one tool draw on, and the budget that says so.
struct OfTool {
    budget: Budget,
    allowance: Option<Arc<Allowance>>,
}

impl Spending {
    pub(super) fn new(budgets: Budgets) -> Self {
        let books = Books::default();
        Self { tree: books.open(Whose::Tree, budgets.tree, None), books, budgets, tools: Mutex::default() }
    }

    /// What an agent draws on that is a fork of one which draws on `above`; the root session of none.
    pub(super) fn agent(&self, above: Option<&Arc<Allowance>>) -> Option<Arc<Allowance>> {
        self.books.open(Whose::Session, self.budgets.session, above.or(self.tree.as_ref()))
    }

    /// What a turn of this agent draws on.
    pub(super) fn turn(&self, agent: Option<&Arc<Allowance>>) -> Option<Arc<Allowance>> {
        self.books.open(Whose::Turn, self.budgets.turn, agent)
    }

    /// What the calls of a tool draw on. A tool that was replaced by one with another budget leaves nothing.
    pub(super) fn tool(&self, entry: &ToolEntry) -> Option<Arc<Allowance>> {
        let budget = entry.spec().budget;
        if budget.is_unlimited() {
            return None;
        }
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || OfTool { budget, allowance: self.books.open(Whose::Tool, budget, None) };
        if let Some(tool) = tools.get_mut(entry.name()) {
            if tool.budget != budget {
                *tool = open();
            }
            return tool.allowance.clone();
        }
        tools.entry(entry.shared_name()).or_insert_with(open).allowance.clone()
    }
}
