//! What may still be spent (RT-11).
//!
//! ```text
//!   turn ──► session ──► the agent above ──► … ──► tree        a call draws on all of these,
//!   tool                                                       and on its tool's
//! ```
//!
//! A call *reserves* before anything is started: from all or from none. A call that is started has spent it; one that
//! never is gives it back. So nothing is ever negative, and no more is started than there is.

mod spent;

#[cfg(test)]
mod tests;

pub(crate) use spent::{Spent, Unit, Whose};

use std::{
    iter,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolyard_core::Budget;

/// Makes the allowances of one session tree.
///
/// What is spent is written by one at a time: one that takes here and is then refused there would otherwise have others
/// refused here in between. Who only asks what is left asks nobody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    writing: Arc<Mutex<()>>,
}

/// Who has it writes into the accounts that a call draws on: those of its tree, and where a handler of another tree made
/// its agent, those of that.
type Pen<'a> = (MutexGuard<'a, ()>, Option<MutexGuard<'a, ()>>);

impl Books {
    /// An allowance of that much, whose calls also draw on `parent`, on what that draws on, and so forth: all of them are
    /// in the same books, though a parent may be of another tree. One that bounds nothing is its parent.
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
            books: parent.map_or(self, |parent| &parent.books).clone(),
        }))
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> *const Mutex<()> {
        Arc::as_ptr(&self.writing)
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
    /// Never more than the limit. Written by whoever has the pen, so that no step of it is locked once more.
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
    fn take(&self, wanted: u64, _: &Pen<'_>) -> Result<(), u64> {
        let used = self.used.load(Ordering::Relaxed);
        match used.checked_add(wanted).filter(|sum| *sum <= self.limit) {
            Some(sum) => self.used.store(sum, Ordering::Relaxed),
            None => return Err(self.limit - used),
        }
        Ok(())
    }

    fn give(&self, back: u64, _: &Pen<'_>) {
        self.used.store(self.used.load(Ordering::Relaxed) - back, Ordering::Relaxed);
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

    fn take(&self, cost: u64, pen: &Pen<'_>) -> Result<(), Spent> {
        let spent = |unit, limit, left| Spent { whose: self.whose, unit, limit, left };
        if let Some(calls) = &self.calls {
            calls.take(1, pen).map_err(|left| spent(Unit::Calls, calls.limit, left))?;
        }
        let Some(account) = &self.cost else { return Ok(()) };
        account.take(cost, pen).map_err(|left| {
            self.calls.iter().for_each(|calls| calls.give(1, pen));
            spent(Unit::Cost, account.limit, left)
        })
    }

    fn give(&self, cost: u64, pen: &Pen<'_>) {
        self.calls.iter().for_each(|calls| calls.give(1, pen));
        self.cost.iter().for_each(|account| account.give(cost, pen));
    }
}

/// What one call draws on: these allowances, and all that they draw on. No allowance may be in it twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn<'a> {
    /// Of its turn, and what that hangs under.
    pub(crate) turn: Option<&'a Allowance>,
    /// Of its tool.
    pub(crate) tool: Option<&'a Allowance>,
}

impl<'a> Drawn<'a> {
    /// Takes one call of that cost from all of them or from none. Where there is none, nothing is locked; `false` then:
    /// nothing was taken.
    ///
    /// # Errors
    /// The first that has not enough left.
    pub(crate) fn reserve(self, cost: u64) -> Result<bool, Spent> {
        let Some(pen) = self.pen() else { return Ok(false) };
        for (taken, allowance) in self.all().enumerate() {
            if let Err(spent) = allowance.take(cost, &pen) {
                self.all().take(taken).for_each(|allowance| allowance.give(cost, &pen));
                return Err(spent);
            }
        }
        Ok(true)
    }

    /// Gives back what a call of that cost has reserved that never started: it cost nothing.
    pub(crate) fn refund(self, cost: u64) {
        if let Some(pen) = self.pen() {
            self.all().for_each(|allowance| allowance.give(cost, &pen));
        }
    }

    fn pen(self) -> Option<Pen<'a>> {
        let books = |allowance: Option<&'a Allowance>| Some(&allowance?.books);
        let (one, other) = match (books(self.turn), books(self.tool)) {
            (Some(turn), Some(tool)) if turn.address() != tool.address() => (turn, tool),
            (turn, tool) => return Some((turn.or(tool)?.write(), None)),
        };
        // In this order for all: nobody waits for one who waits for him.
        let (first, second) = if one.address() < other.address() { (one, other) } else { (other, one) };
        Some((first.write(), Some(second.write())))
    }

    fn all(self) -> impl Iterator<Item = &'a Allowance> {
        self.turn.into_iter().chain(self.tool).flat_map(Allowance::chain)
    }
}
