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

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::{
    borrow::Borrow,
    iter,
    sync::{
        Arc,
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
struct AccountLock<'a> {
    _one: MutexGuard<'a, ()>,
    _others: Vec<MutexGuard<'a, ()>>,
}

impl<'a> AccountLock<'a> {
    /// Takes the locks of these books, of which there is at least one, in their order.
    fn of(books: impl IntoIterator<Item = &'a Books>) -> Self {
        let mut guards = books.into_iter().map(Books::write);
        let one = guards.next().expect("an allowance has books");
        Self { _one: one, _others: guards.collect() }
    }
}

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
        let above = Above::of(parents);
        if budget.is_unlimited() {
            match &above {
                Above::Nothing => return None,
                Above::One(parent) => return Some(parent.clone()),
                Above::All(_) => {}
            }
        }
        let books = match &above {
            Above::Nothing => SmallVec::from_buf([self.clone()]),
            Above::One(parent) => parent.books.clone(),
            Above::All(all) => in_order(all.iter().flat_map(|one| one.books.iter().cloned())).into(),
        };
        let (calls, cost) = (budget.calls.map(Account::new), budget.cost.map(Account::new));
        Some(Arc::new(Allowance { owner, calls, cost, above, books }))
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
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
    above: Above,
    /// The locks under which it and everything above it are written, by address.
    books: SmallVec<[Books; 1]>,
}

/// What the calls of an allowance draw on besides. Nearly always it is one other allowance, with what is above that, so
/// opening one does not copy the chain.
#[derive(Debug)]
enum Above {
    Nothing,
    One(Arc<Allowance>),
    /// Everything above, each once: an agent that another tree's handler made draws on two chains, which may meet.
    All(Box<[Arc<Allowance>]>),
}

impl Above {
    fn of<'a>(parents: impl IntoIterator<Item = &'a Arc<Allowance>>) -> Self {
        let chain = |one: &'a Arc<Allowance>| iter::once(one).chain(one.above.chain());
        let mut parents = parents.into_iter();
        let Some(first) = parents.next() else { return Self::Nothing };
        let mut all: Vec<&Arc<Allowance>> = Vec::new();
        for other in parents {
            if all.is_empty() {
                all.extend(chain(first));
            }
            let more = chain(other).filter(|one| !all.iter().any(|known| Arc::ptr_eq(known, one)));
            let more: Vec<_> = more.collect();
            all.extend(more);
        }
        if all.is_empty() || all.len() == chain(first).count() {
            return Self::One(first.clone());
        }
        Self::All(all.into_iter().cloned().collect())
    }

    /// Everything above, nearest first.
    fn chain(&self) -> impl Iterator<Item = &Arc<Allowance>> {
        let (mut above, mut all) = (self, [].iter());
        iter::from_fn(move || {
            match above {
                Self::Nothing => {}
                Self::One(parent) => {
                    above = &parent.above;
                    return Some(parent);
                }
                Self::All(several) => (above, all) = (&Self::Nothing, several.iter()),
            }
            all.next()
        })
    }
}

/// Each of the books once, in the order in which all callers lock them, so that no two callers wait for each other.
fn in_order<B: Borrow<Books>>(books: impl IntoIterator<Item = B>) -> Vec<B> {
    let address = |books: &B| books.borrow().address();
    let mut books: Vec<B> = books.into_iter().collect();
    books.sort_unstable_by_key(address);
    books.dedup_by(|one, other| address(one) == address(other));
    books
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

    /// Whose it is.
    pub(crate) fn owner(&self) -> BudgetOwner {
        self.owner
    }

    /// Its own bounds; `None` for what is unbounded.
    pub(crate) fn limit(&self) -> Budget {
        let mut budget = Budget::UNLIMITED;
        budget.calls = self.calls.as_ref().map(|account| account.limit);
        budget.cost = self.cost.as_ref().map(|account| account.limit);
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
    pub(crate) fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::once(self).chain(self.above.chain().map(Arc::as_ref))
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
        match (books(self.turn), books(self.tool)) {
            ([], []) => None,
            ([one], []) | ([], [one]) => Some(AccountLock::of([one])),
            ([turn], [tool]) if turn.address() == tool.address() => Some(AccountLock::of([turn])),
            (turn, tool) => Some(AccountLock::of(in_order(turn.iter().chain(tool)))),
        }
    }

    fn all(self) -> impl Iterator<Item = &'a Allowance> {
        self.turn.into_iter().chain(self.tool).flat_map(Allowance::chain)
    }
}
