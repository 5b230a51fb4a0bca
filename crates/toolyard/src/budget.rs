//! What may still be spent (RT-11).
//!
//! ```text
//!   turn ──► session ──► the agent above ──► … ──► tree        a call draws on all of these,
//!   tool                                                       and on its tool's
//! ```
//!
//! A call *reserves* before anything is started: from all or from none. What it reserved comes back when it is
//! dropped, unless it was *settled*. So nothing is ever negative, and no more is started than there is.

mod spent;

#[cfg(test)]
mod tests;

pub(crate) use spent::{Spent, Unit, Whose};

use smallvec::SmallVec;
use std::{
    iter, mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolyard_core::Budget;

/// Makes the allowances of one session tree.
///
/// What is left is atomic, but to take from several is done by one at a time: without that, one that takes here and
/// is then refused there would have others refused here in between.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    taking: Arc<Mutex<()>>,
}

impl Books {
    /// An allowance of that much, whose calls also draw on `parent`, on what that draws on, and so forth. One that
    /// bounds nothing is its parent.
    pub(crate) fn open(
        &self,
        whose: Whose,
        budget: Budget,
        parent: Option<&Arc<Allowance>>,
    ) -> Option<Arc<Allowance>> {
        if budget.is_unlimited() {
            return parent.cloned();
        }
        Some(Arc::new(Allowance {
            whose,
            calls: budget.calls.map(Account::new),
            cost: budget.cost.map(Account::new),
            parent: parent.cloned(),
            books: self.clone(),
        }))
    }
}

/// What one of a turn, an agent, a tree or a tool may spend, and what of it is spent.
#[derive(Debug)]
pub(crate) struct Allowance {
    whose: Whose,
    calls: Option<Account>,
    cost: Option<Account>,
    parent: Option<Arc<Allowance>>,
    books: Books,
}

/// So much of one thing.
#[derive(Debug)]
struct Account {
    limit: u64,
    /// Never more than the limit.
    used: AtomicU64,
}

impl Account {
    fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    fn left(&self) -> u64 {
        self.limit - self.used.load(Ordering::Relaxed)
    }

    /// Takes so much, or says how much there is.
    fn take(&self, wanted: u64) -> Result<(), u64> {
        let more = |used: u64| used.checked_add(wanted).filter(|sum| *sum <= self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|used| self.limit - used)
    }

    fn give(&self, back: u64) {
        self.used.fetch_sub(back, Ordering::Relaxed);
    }
}

impl Allowance {
    /// What is left: `None` where there is no bound.
    pub(crate) fn left(&self) -> Budget {
        let left = |account: &Option<Account>| account.as_ref().map(Account::left);
        let mut budget = Budget::UNLIMITED;
        (budget.calls, budget.cost) = (left(&self.calls), left(&self.cost));
        budget
    }

    /// What is left here and in all that it draws on: the least of each.
    pub(crate) fn left_in_all(&self) -> Budget {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.chain().map(Self::left).fold(Budget::UNLIMITED, |all, one| {
            let mut both = Budget::UNLIMITED;
            (both.calls, both.cost) = (least(all.calls, one.calls), least(all.cost, one.cost));
            both
        })
    }

    /// This one and all that it draws on.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |allowance| allowance.parent.as_deref())
    }

    fn take(&self, cost: u64) -> Result<(), Spent> {
        let spent = |unit, limit, left| Spent { whose: self.whose, unit, limit, left };
        if let Some(calls) = &self.calls {
            calls.take(1).map_err(|left| spent(Unit::Calls, calls.limit, left))?;
        }
        let Some(account) = &self.cost else { return Ok(()) };
        account.take(cost).map_err(|left| {
            self.calls.iter().for_each(|calls| calls.give(1));
            spent(Unit::Cost, account.limit, left)
        })
    }

    fn give(&self, cost: u64) {
        self.calls.iter().for_each(|calls| calls.give(1));
        self.cost.iter().for_each(|account| account.give(cost));
    }
}

/// Takes one call of that cost from these allowances and all that they draw on: from all of them or from none.
///
/// No allowance may be in it twice. Where there is none, nothing is locked.
///
/// # Errors
/// The first that has not enough left.
pub(crate) fn reserve<'a>(
    from: impl IntoIterator<Item = &'a Arc<Allowance>>,
    cost: u64,
) -> Result<Reserved, Spent> {
    let from: SmallVec<[_; 2]> = from.into_iter().cloned().collect();
    take_all(&from, cost)?;
    Ok(Reserved { from, cost })
}

fn take_all(from: &[Arc<Allowance>], cost: u64) -> Result<(), Spent> {
    let Some(first) = from.first() else { return Ok(()) };
    let _one_at_a_time = first.books.taking.lock().unwrap_or_else(PoisonError::into_inner);
    for (taken, allowance) in all(from).enumerate() {
        if let Err(spent) = allowance.take(cost) {
            all(from).take(taken).for_each(|allowance| allowance.give(cost));
            return Err(spent);
        }
    }
    Ok(())
}

/// These and all that they draw on.
fn all(from: &[Arc<Allowance>]) -> impl Iterator<Item = &Allowance> {
    from.iter().flat_map(|allowance| allowance.chain())
}

/// One call's part of every allowance it draws on. Dropped, it gives all of it back.
#[derive(Debug)]
#[must_use = "what is reserved comes back when this is dropped"]
pub(crate) struct Reserved {
    from: SmallVec<[Arc<Allowance>; 2]>,
    cost: u64,
}

impl Reserved {
    /// The call was started: what it reserved is spent.
    pub(crate) fn settle(mut self) {
        mem::take(&mut self.from);
    }

    /// The call never started: it cost nothing. The same as to drop it.
    pub(crate) fn refund(self) {}
}

impl Drop for Reserved {
    fn drop(&mut self) {
        all(&self.from).for_each(|allowance| allowance.give(self.cost));
    }
}
