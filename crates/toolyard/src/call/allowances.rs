//! The allowances that the calls of a batch draw on, looked up once for the whole batch.

use crate::{
    agent::Agent,
    budget::{Allowance, CallAllowances},
    tool::ToolEntry,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The allowances of a batch.
pub(crate) struct BatchAllowances {
    /// That of its turn, chained to those above it; `None` if there is no bound.
    turn: Option<Arc<Allowance>>,
    /// Those of its tools that have a budget, ordered by address.
    tools: SmallVec<[OfTool; 1]>,
}

struct OfTool {
    entry: Arc<ToolEntry>,
    allowance: Arc<Allowance>,
}

impl OfTool {
    fn address(&self) -> *const ToolEntry {
        Arc::as_ptr(&self.entry)
    }
}

impl BatchAllowances {
    /// Those of the turn, and of the tools that the calls of the batch name.
    pub(crate) fn of<'a>(
        agent: &Agent,
        turn: Option<Arc<Allowance>>,
        entries: impl Iterator<Item = &'a Arc<ToolEntry>>,
    ) -> Self {
        let mut tools: SmallVec<[OfTool; 1]> = SmallVec::new();
        for entry in entries {
            let is_bounded = !entry.spec().settings.budget.unwrap_or_default().is_unlimited();
            // Neighbours are often calls of one tool; the remaining duplicates are removed below.
            if is_bounded && tools.last().is_none_or(|last| !Arc::ptr_eq(&last.entry, entry)) {
                let allowance = agent.tool_allowance(entry);
                tools.extend(allowance.map(|allowance| OfTool { entry: entry.clone(), allowance }));
            }
        }
        if tools.len() > 1 {
            tools.sort_unstable_by_key(OfTool::address);
            tools.dedup_by_key(|tool| tool.address());
            tools.shrink_to_fit();
        }
        Self { turn, tools }
    }

    /// The budgets that a call of this tool draws on.
    pub(super) fn of_tool(&self, entry: &Arc<ToolEntry>) -> CallAllowances<'_> {
        let at = self.tools.binary_search_by_key(&Arc::as_ptr(entry), OfTool::address);
        let tool = at.ok().map(|at| self.tools[at].allowance.as_ref());
        CallAllowances { turn: self.turn.as_deref(), tool }
    }

    /// The allowance of the turn; `None` if there is no bound.
    pub(super) fn turn(&self) -> Option<&Arc<Allowance>> {
        self.turn.as_ref()
    }

    /// Whether no call draws on anything.
    #[inline(always)]
    pub(super) fn is_unbounded(&self) -> bool {
        self.turn.is_none() && self.tools.is_empty()
    }
}
