//! Budgets: what may still be spent (RT-11).
//!
//! ```text
//!   turn ──► session ──► the agent above ──► … ──► tree        a call draws on all of these,
//!   tool                                                       and on its tool's
//! ```
//!
//! A call *reserves* its cost before it starts, from all of these allowances or from none. A call that starts has
//! spent it; a call that never starts gives it back. So no allowance becomes negative, and nothing starts that is not
//! covered.

mod spent;

#[cfg(test)]
mod tests;

pub(crate) use spent::{BudgetOwner, Spent, Unit};

use smallvec::SmallVec;
use std::{
    iter,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolyard_core::Budget;

/// Opens the allowances of one session tree.
///
/// All writes happen under one lock. Otherwise a call that takes from one allowance and is then refused by another
/// could cause other calls to be refused in between. Reading what is left takes no lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    writing: Arc<Mutex<()>>,
}

/// The right to write to the accounts that a call draws on: the lock of its tree and, if handlers of other trees made
/// its agent or those above it, those of the other trees.
type AccountLock<'a> = SmallVec<[MutexGuard<'a, ()>; 1]>;

impl Books {
    /// Opens an allowance for `budget` whose calls also draw on its `parents` and everything above them, on each once.
    /// It is written under the locks of all their books. Without a bound of its own and with one parent, that parent is
    /// returned.
    pub(crate) fn open<'a>(
        &self,
        owner: BudgetOwner,
        budget: Budget,
        parents: impl IntoIterator<Item = &'a Arc<Allowance>>,
    ) -> Option<Arc<Allowance>> {
        let mut above: Vec<Arc<Allowance>> = Vec::new();
        let mut books: SmallVec<[Self; 1]> = SmallVec::new();
        for parent in parents {
            let chain = iter::once(parent).chain(&parent.above);
            above.extend(
                chain
                    .filter(|one| !above.iter().any(|known| Arc::ptr_eq(known, one)))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            books.extend(parent.books.iter().cloned());
        }
        if budget.is_unlimited() {
            // The first one, if everything else is above it.
            let first = above.first()?;
            if above.len() == 1 + first.above.len() {
                return Some(first.clone());
            }
        }
        if books.is_empty() {
            books.push(self.clone());
        }
        books.sort_unstable_by_key(Self::address);
        books.dedup_by_key(|books| books.address());
        let (calls, cost) = (budget.calls.map(Account::new), budget.cost.map(Account::new));
        Some(Arc::new(Allowance { owner, calls, cost, above: above.into(), books }))
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> *const Mutex<()> {
        Arc::as_ptr(&self.writing)
    }
}

/// What a turn, an agent, a tree or a tool may spend, and how much of it is spent.
#[derive(Debug)]
pub(crate) struct Allowance {
    owner: BudgetOwner,
    calls: Option<Account>,
    cost: Option<Account>,
    /// Everything that its calls draw on besides, each once, and after its own parents.
    above: Box<[Arc<Allowance>]>,
    /// The locks under which it and everything above it are written, by address.
    books: SmallVec<[Books; 1]>,
}

/// A limit on one quantity, and how much of it is used.
#[derive(Debug)]
struct Account {
    limit: u64,
    /// Never above the limit. Written only under the [`AccountLock`], so that no single step needs a lock of its own.
    used: AtomicU64,
}

impl Account {
    fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    fn left(&self) -> u64 {
        self.limit - self.used.load(Ordering::Relaxed)
    }

    /// Takes that much, or returns how much is left.
    fn take(&self, wanted: u64, _: &AccountLock<'_>) -> Result<(), u64> {
        let used = self.used.load(Ordering::Relaxed);
        match used.checked_add(wanted).filter(|sum| *sum <= self.limit) {
            Some(sum) => self.used.store(sum, Ordering::Relaxed),
            None => return Err(self.limit - used),
        }
        Ok(())
    }

    fn give(&self, back: u64, _: &AccountLock<'_>) {
        self.used.store(self.used.load(Ordering::Relaxed) - back, Ordering::Relaxed);
    }
}

impl Allowance {
    /// What is left; `None` for what is unbounded.
    pub(crate) fn left(&self) -> Budget {
        let left = |account: &Option<Account>| account.as_ref().map(Account::left);
        let mut budget = Budget::UNLIMITED;
        (budget.calls, budget.cost) = (left(&self.calls), left(&self.cost));
        budget
    }

    /// What is left here and in everything it draws on: the least of each.
    pub(crate) fn remaining(&self) -> Budget {
        let smaller = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.chain().map(Self::left).fold(Budget::UNLIMITED, |all, one| {
            let mut both = Budget::UNLIMITED;
            (both.calls, both.cost) = (smaller(all.calls, one.calls), smaller(all.cost, one.cost));
            both
        })
    }

    /// This allowance and everything it draws on.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::once(self).chain(self.above.iter().map(Arc::as_ref))
    }

    fn take(&self, cost: u64, lock: &AccountLock<'_>) -> Result<(), Spent> {
        let spent = |unit, limit, left| Spent { owner: self.owner, unit, limit, left };
        if let Some(calls) = &self.calls {
            calls.take(1, lock).map_err(|left| spent(Unit::Calls, calls.limit, left))?;
        }
        let Some(account) = &self.cost else { return Ok(()) };
        account.take(cost, lock).map_err(|left| {
            self.calls.iter().for_each(|calls| calls.give(1, lock));
            spent(Unit::Cost, account.limit, left)
        })
    }

    fn give(&self, cost: u64, lock: &AccountLock<'_>) {
        self.calls.iter().for_each(|calls| calls.give(1, lock));
        self.cost.iter().for_each(|account| account.give(cost, lock));
    }
}

/// The allowances that one call draws on, with everything above them. None may occur twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallAllowances<'a> {
    /// That of its turn.
    pub(crate) turn: Option<&'a Allowance>,
    /// That of its tool.
    pub(crate) tool: Option<&'a Allowance>,
}

impl<'a> CallAllowances<'a> {
    /// Takes one call of that cost from all allowances, or from none. Returns `false`, without locking, if there are
    /// no allowances and so nothing was taken.
    ///
    /// # Errors
    /// The first allowance that has not enough left.
    pub(crate) fn reserve(self, cost: u64) -> Result<bool, Spent> {
        let Some(lock) = self.lock() else { return Ok(false) };
        for (taken, allowance) in self.all().enumerate() {
            if let Err(spent) = allowance.take(cost, &lock) {
                self.all().take(taken).for_each(|allowance| allowance.give(cost, &lock));
                return Err(spent);
            }
        }
        Ok(true)
    }

    /// Gives back the reservation of a call of that cost that never started.
    pub(crate) fn refund(self, cost: u64) {
        if let Some(lock) = self.lock() {
            self.all().for_each(|allowance| allowance.give(cost, &lock));
        }
    }

    fn lock(self) -> Option<AccountLock<'a>> {
        let books = |allowance: Option<&'a Allowance>| allowance.map_or(&[][..], |of| &of.books);
        let (turn, tool) = (books(self.turn), books(self.tool));
        let mut all: SmallVec<[&Books; 2]> = turn.iter().chain(tool).collect();
        // All callers lock in this order, so that no two of them wait for each other.
        all.sort_unstable_by_key(|books| books.address());
        all.dedup_by_key(|books| books.address());
        (!all.is_empty()).then(|| all.into_iter().map(Books::write).collect())
    }

    fn all(self) -> impl Iterator<Item = &'a Allowance> {
        self.turn.into_iter().chain(self.tool).flat_map(Allowance::chain)
    }
}
