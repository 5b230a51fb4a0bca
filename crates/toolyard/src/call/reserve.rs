//! The budgets that the calls of a batch draw on (RT-11).
//!
//! Looked up once for the whole batch: a call reserves and refunds its part with nothing of its own but a mark in its
//! slot.

use super::batch::BatchState;
use super::in_flight::InFlight;
use super::refusals::Refusal;
use super::session::SessionCore;
use super::slot::Slot;
use crate::{
    budget::{Allowance, CallAllowances},
    tool::ToolEntry,
};
use smallvec::SmallVec;
use std::sync::Arc;
use toolyard_core::CallError;

/// The allowances of a batch.
pub(crate) struct Draws {
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

impl Draws {
    pub(crate) fn of(session: &SessionCore, turn: Option<Arc<Allowance>>, slots: &[Slot]) -> Self {
        let mut tools: SmallVec<[OfTool; 1]> = SmallVec::new();
        for entry in slots.iter().filter_map(|slot| Some(&slot.work.as_ref()?.entry)) {
            let is_bounded = !entry.spec().budget.is_unlimited();
            // Neighbours are often calls of one tool; the remaining duplicates are removed below.
            if is_bounded && tools.last().is_none_or(|last| !Arc::ptr_eq(&last.entry, entry)) {
                let allowance = session.tool_allowance(entry);
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
    fn of_tool(&self, entry: &Arc<ToolEntry>) -> CallAllowances<'_> {
        let at = self.tools.binary_search_by_key(&Arc::as_ptr(entry), OfTool::address);
        let tool = at.ok().map(|at| self.tools[at].allowance.as_ref());
        CallAllowances { turn: self.turn.as_deref(), tool }
    }
}

impl BatchState {
    /// The allowance of its turn; `None` if there is no bound.
    pub(crate) fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.draws.turn.as_ref()
    }
}

impl InFlight<'_> {
    /// Reserves what a call needs of its budgets. Done once, before its first attempt.
    #[inline(always)]
    pub(crate) fn reserve(self) -> Result<(), Box<CallError>> {
        if self.batch.draws.turn.is_none() && self.batch.draws.tools.is_empty() {
            return Ok(()); // nothing is bounded
        }
        self.reserve_all()
    }

    fn reserve_all(self) -> Result<(), Box<CallError>> {
        let entry = &self.work().entry;
        if self
            .batch
            .draws
            .of_tool(entry)
            .reserve(entry.spec().cost)
            .map_err(|spent| Refusal::BudgetSpent(spent).boxed())?
        {
            self.slot().reserve();
        }
        Ok(())
    }

    /// Settles the reservation of a call that ends: it is spent if the handler has started, and refunded otherwise.
    #[inline(always)]
    pub(crate) fn settle(self, has_run: bool) {
        let has_reserved = self.slot().settle();
        if has_reserved && !has_run {
            let entry = &self.work().entry;
            self.batch.draws.of_tool(entry).refund(entry.spec().cost);
        }
    }
}
