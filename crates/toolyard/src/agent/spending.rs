//! The budgets of a session tree (RT-11).

use crate::{
    budget::{Allowance, Books, BudgetOwner},
    config::Budgets,
    tool::ToolEntry,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use toolyard_core::Budget;

/// The allowances of a tree: that of the tree itself, those of its tools, and the budgets that agents and turns get.
pub(super) struct Spending {
    books: Books,
    budgets: Budgets,
    tree: Option<Arc<Allowance>>,
    /// Only tools with a budget, each added by its first call.
    tools: Mutex<BTreeMap<Arc<str>, OfTool>>,
}

/// The allowance of one tool, and the budget it was made from.
struct OfTool {
    budget: Budget,
    allowance: Option<Arc<Allowance>>,
}

impl Spending {
    pub(super) fn new(budgets: Budgets) -> Self {
        let books = Books::default();
        Self {
            tree: books.open(BudgetOwner::Tree, budgets.tree, None),
            books,
            budgets,
            tools: Mutex::default(),
        }
    }

    /// The allowance of an agent. `above` is what it draws on besides: that of the agent above it, and that of the
    /// handler's call that made it. The root session has nothing above it but the tree.
    pub(super) fn agent<'a>(
        &'a self,
        above: impl IntoIterator<Item = &'a Arc<Allowance>>,
    ) -> Option<Arc<Allowance>> {
        let mut above = above.into_iter().chain(&self.tree);
        self.books.open(BudgetOwner::Session, self.budgets.session, above.by_ref())
    }

    /// The allowance of a turn of this agent.
    pub(super) fn turn(&self, agent: Option<&Arc<Allowance>>) -> Option<Arc<Allowance>> {
        self.books.open(BudgetOwner::Turn, self.budgets.turn, agent)
    }

    /// The allowances of the tools that were called, by name.
    pub(super) fn tools(&self) -> Vec<(Arc<str>, Arc<Allowance>)> {
        let tools = self.tools.lock();
        tools.iter().filter_map(|(name, of)| Some((name.clone(), of.allowance.clone()?))).collect()
    }

    /// The allowance of a tool's calls. If the tool is replaced by one with another budget, the old allowance is
    /// discarded.
    pub(super) fn tool(&self, entry: &ToolEntry) -> Option<Arc<Allowance>> {
        let budget = entry.spec().settings.budget.unwrap_or_default();
        if budget.is_unlimited() {
            return None;
        }
        let mut tools = self.tools.lock();
        let open = || OfTool { budget, allowance: self.books.open(BudgetOwner::Tool, budget, None) };
        if let Some(tool) = tools.get_mut(entry.name()) {
            if tool.budget != budget {
                *tool = open();
            }
            return tool.allowance.clone();
        }
        tools.entry(entry.shared_name()).or_insert_with(open).allowance.clone()
    }
}
