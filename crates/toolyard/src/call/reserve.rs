//! The budgets that the calls of a batch draw on (RT-11).
//!
//! Looked up once for the whole batch: a call reserves and refunds its part with nothing of its own but a mark in its
//! slot.

use crate::{
    budget::Allowance,
    call::{batch::BatchState, in_flight::InFlight, refusals::Refusal},
};
use std::sync::Arc;
use toolyard_core::CallError;

impl BatchState {
    /// The allowance of its turn; `None` if there is no bound.
    pub(crate) fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.allowances.turn()
    }
}

impl InFlight<'_> {
    /// Reserves what a call needs of its budgets. Done once, before its first attempt.
    #[inline(always)]
    pub(crate) fn reserve(self) -> Result<(), Box<CallError>> {
        if self.batch.allowances.is_unbounded() {
            return Ok(()); // nothing is bounded
        }
        self.reserve_all()
    }

    fn reserve_all(self) -> Result<(), Box<CallError>> {
        let entry = &self.work().entry;
        if self
            .batch
            .allowances
            .of_tool(entry)
            .reserve(entry.spec().settings.cost.unwrap_or_default())
            .map_err(|spent| Refusal::BudgetSpent(spent).boxed())?
        {
            self.slot().reserve();
        }
        Ok(())
    }

    /// Settles the reservation of a call that ends: it is spent if the handler has started, and refunded otherwise.
    #[inline(always)]
    pub(crate) fn settle_reservation(self, has_run: bool) {
        let has_reserved = self.slot().take_reservation();
        if has_reserved && !has_run {
            let entry = &self.work().entry;
            self.batch.allowances.of_tool(entry).refund(entry.spec().settings.cost.unwrap_or_default());
        }
    }
}
