//! What the calls of a batch draw on (RT-11).
//!
//! Looked up once for all of them: a call takes its part and gives it back with nothing of its own but a mark in its slot.

use super::ledger::Slot;
use super::state::BatchState;
use crate::{
    budget::{Allowance, Drawn, Spent},
    registry::ToolEntry,
    session::SessionCore,
};
use smallvec::SmallVec;
use std::sync::Arc;
use toolyard_core::{CallError, ErrorKind};

/// The allowances of a batch.
pub(super) struct Draws {
    /// Of its turn, and what that hangs under; `None` where there is no bound.
    turn: Option<Arc<Allowance>>,
    /// Of its tools that have one, in the order of their addresses.
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
    pub(super) fn of(session: &SessionCore, turn: Option<Arc<Allowance>>, slots: &[Slot]) -> Self {
        let mut tools: SmallVec<[OfTool; 1]> = SmallVec::new();
        for entry in slots.iter().filter_map(|slot| Some(&slot.work.as_ref()?.entry)) {
            let is_bounded = !entry.spec().budget.is_unlimited();
            // Neighbours are often calls of one tool; what still comes twice goes below.
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

    /// What a call of this tool draws on.
    fn of_tool(&self, entry: &Arc<ToolEntry>) -> Drawn<'_> {
        let at = self.tools.binary_search_by_key(&Arc::as_ptr(entry), OfTool::address);
        let tool = at.ok().map(|at| self.tools[at].allowance.as_ref());
        Drawn { turn: self.turn.as_deref(), tool }
    }
}

impl BatchState {
    /// What its turn draws on; `None` where that has no bound.
    pub(crate) fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.draws.turn.as_ref()
    }

    /// Reserves what a call needs of its budgets that leads to an attempt for the first time.
    pub(super) fn reserve(&self, index: u32) -> Result<(), Box<CallError>> {
        let entry = &self.work(index).entry;
        if self.draws.of_tool(entry).reserve(entry.spec().cost).map_err(spent)? {
            self.slots[index as usize].reserve();
        }
        Ok(())
    }

    /// A call ends: what it reserved is spent if its handler has started, and comes back if not.
    pub(super) fn settle(&self, index: u32, has_run: bool) {
        let has_reserved = self.slots[index as usize].settle();
        if has_reserved && !has_run && !faulty!(RefundLost) {
            let entry = &self.work(index).entry;
            self.draws.of_tool(entry).refund(entry.spec().cost);
        }
    }
}

fn spent(spent: Spent) -> Box<CallError> {
    Box::new(CallError::new(ErrorKind::BudgetExceeded, spent.to_string()))
}
