//! A life of the engine in a run that has several: when it ends, what it leaves, and what its callers remember of it.
//!
//! ```text
//!   facts ─► Life ─ it is over: nothing is observed any more, records are cut ─► Remains ─► the next life's Ledger
//!              └─► Callers: which batches they have sent, what the world has seen done ─► the next life's callers
//! ```

use crate::{
    Ledger, Remains,
    sim::{
        Dice,
        journal::{Fact, HandlerEnd, HandlerStep},
        program::{End, LifeEnd, LifeEndAt, LifeEnding, LivesPlan, Order},
    },
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// What outlives every engine: its callers' memory, and what its tools have done to the world.
#[derive(Default)]
pub(in crate::sim) struct Callers(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The batches that were sent.
    sent: BTreeSet<u32>,
    /// What operators have done.
    orders: Vec<Order>,
    /// How often each call has had an effect.
    effects: BTreeMap<u32, u32>,
}

/// A life of the engine. Clones are the same.
#[derive(Clone)]
pub(in crate::sim) struct Life(Arc<State>);

struct State {
    plan: LivesPlan,
    end: Option<LifeEnd>,
    is_over: AtomicBool,
    over: Notify,
    ledger: Ledger,
    next_pace_ms: Arc<AtomicU64>,
    remains: Mutex<Option<Remains>>,
    seen: Mutex<Seen>,
    dice: Mutex<Dice>,
    callers: Arc<Callers>,
}

/// How often what may end a life has happened.
#[derive(Default)]
struct Seen {
    records: usize,
    answers: usize,
    cancels: usize,
    taken_up: usize,
}

impl Callers {
    /// Whether an operator has done this.
    pub(in crate::sim) fn has_done(&self, order: Order) -> bool {
        self.0.lock().orders.contains(&order)
    }
}

impl Life {
    /// The life with this number, from 0. To be called on its runtime.
    pub(in crate::sim) fn new(
        number: usize,
        plan: &LivesPlan,
        before: &Remains,
        callers: &Arc<Callers>,
    ) -> Self {
        let next_pace_ms = Arc::new(AtomicU64::new(0));
        let pace = next_pace_ms.clone();
        Self(Arc::new(State {
            plan: plan.clone(),
            end: plan.ends.get(number).copied(),
            is_over: AtomicBool::new(false),
            over: Notify::new(),
            ledger: Ledger::of(before, move || Duration::from_millis(pace.load(Ordering::Relaxed))),
            next_pace_ms,
            remains: Mutex::default(),
            seen: Mutex::default(),
            dice: Mutex::new(Dice::new(plan.seed, 20 + number as u64)),
            callers: callers.clone(),
        }))
    }

    pub(in crate::sim) fn plan(&self) -> &LivesPlan {
        &self.0.plan
    }

    pub(in crate::sim) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Decides how long the next record takes.
    pub(super) fn next_pace(&self) -> Duration {
        let ms = self.0.dice.lock().range(0..=self.0.plan.most_ms);
        self.0.next_pace_ms.store(ms, Ordering::Relaxed);
        Duration::from_millis(ms)
    }

    /// Whether it is over: then nothing that still happens in it is observed.
    pub(in crate::sim) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Completes when it is over.
    pub(in crate::sim) async fn until_over(&self) {
        let after = match self.0.end {
            Some(LifeEnd { at: LifeEndAt::Ms(ms), how: LifeEnding::Crash }) => Duration::from_millis(ms),
            _ => return self.0.over.notified().await,
        };
        tokio::time::sleep(after).await;
    }

    /// Ends it: only what is durable by now is left, and of the rest some.
    pub(in crate::sim) fn end(&self) {
        if !self.0.is_over.swap(true, Ordering::Relaxed) {
            let lost = |unsure: usize| self.0.dice.lock().range(0..=unsure as u64) as usize;
            *self.0.remains.lock() = Some(self.0.ledger.remains(lost));
            self.0.over.notify_one();
        }
    }

    /// What it has left.
    pub(in crate::sim) fn remains(&self) -> Remains {
        self.0.remains.lock().take().unwrap_or_default()
    }

    /// Marks that a batch is sent. Returns whether it was sent before.
    pub(super) fn sends(&self, batch: u32) -> bool {
        !self.is_over() && !self.0.callers.0.lock().sent.insert(batch)
    }

    /// Marks what an operator does.
    pub(super) fn does(&self, order: Order) {
        if !self.is_over() {
            self.0.callers.0.lock().orders.push(order);
        }
    }

    /// How often a call has had an effect, in all lives.
    pub(super) fn effects_of(&self, node: u32) -> u32 {
        self.0.callers.0.lock().effects.get(&node).copied().unwrap_or(0)
    }

    /// Takes a fact in. Returns whether the life ends with it.
    pub(in crate::sim) fn sees(&self, fact: &Fact) -> bool {
        if let Some((node, change)) = effect(fact) {
            let mut known = self.0.callers.0.lock();
            let effects = known.effects.entry(node).or_default();
            *effects = effects.saturating_add_signed(change);
        }
        let Some(LifeEnd { at, how: LifeEnding::Crash }) = self.0.end else { return false };
        let mut seen = self.0.seen.lock();
        let count = match (at, fact) {
            (LifeEndAt::Record(_), Fact::Recorded(..) | Fact::TakingUp(..)) => &mut seen.records,
            (LifeEndAt::Answer(_), Fact::Results(..) | Fact::TakenUp(..)) => &mut seen.answers,
            (LifeEndAt::Cancel(_), Fact::Held(_)) => &mut seen.cancels,
            (LifeEndAt::TakingUp(_), Fact::TakingUp(..)) => &mut seen.taken_up,
            _ => return false,
        };
        *count += 1;
        match at {
            LifeEndAt::Record(last)
            | LifeEndAt::Answer(last)
            | LifeEndAt::Cancel(last)
            | LifeEndAt::TakingUp(last) => *count == last,
            LifeEndAt::Ms(_) => false,
        }
    }
}

/// The call whose handler has an effect here, or says that it has had none after all.
pub(in crate::sim) fn effect(fact: &Fact) -> Option<(u32, i32)> {
    match fact {
        Fact::Handler(node, HandlerStep::Wrote) => Some((*node, 1)),
        Fact::HandlerEnd(node, HandlerEnd::Scripted(End::Harmless)) => Some((*node, -1)),
        _ => None,
    }
}
