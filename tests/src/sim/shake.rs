//! Shakes the order in which tasks progress: a poll may yield or sleep briefly first.

use super::{Dice, program::Chaos};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// The longest sleep of one poll, in milliseconds.
pub(crate) const NAP_MAX_MS: u64 = 4;
/// Polls without any progress of time after which nothing is polled any more: something spins, and the stuck detector
/// shall notice it.
const POLLS_MAX: u64 = 2_000_000;

/// The source of randomness that all parts of a run share.
#[derive(Debug, Clone)]
pub(crate) struct Shaker {
    chaos: Chaos,
    state: Arc<ShakerState>,
}

#[derive(Debug)]
struct ShakerState {
    dice: Mutex<Dice>,
    began_at: Instant,
    seen_us: AtomicU64,
    polls: AtomicU64,
}

/// What a poll does before it runs.
enum Shake {
    Nothing,
    Yield,
    Nap(Duration),
    /// Time has stood still for too long.
    Freeze,
}

impl Shaker {
    pub(crate) fn new(chaos: Chaos) -> Self {
        let dice = Mutex::new(Dice::new(chaos.seed, 2));
        let (seen_us, polls) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { chaos, state: Arc::new(ShakerState { dice, began_at: Instant::now(), seen_us, polls }) }
    }

    fn roll(&self) -> Shake {
        if self.is_spinning() {
            return Shake::Freeze;
        }
        let Chaos { yields, naps, .. } = self.chaos;
        if yields + naps == 0 {
            return Shake::Nothing;
        }
        let mut dice = self.state.dice.lock();
        match dice.range(0..=999) {
            roll if roll < yields => Shake::Yield,
            roll if roll < yields + naps => Shake::Nap(Duration::from_millis(dice.range(0..=NAP_MAX_MS))),
            _ => Shake::Nothing,
        }
    }

    fn is_spinning(&self) -> bool {
        let now = u64::try_from(self.state.began_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        if self.state.seen_us.swap(now, Ordering::Relaxed) != now {
            self.state.polls.store(0, Ordering::Relaxed);
        }
        self.state.polls.fetch_add(1, Ordering::Relaxed) > POLLS_MAX
    }

    /// A future whose polls are shaken.
    pub(crate) fn shake<F: Future + Unpin>(&self, future: F) -> Shaken<F> {
        Shaken { future, shaker: self.clone(), before: Before::Fresh }
    }

    /// A point at which other tasks may proceed first.
    pub(crate) async fn nudge(&self) {
        match self.roll() {
            Shake::Nothing => {}
            Shake::Yield => tokio::task::yield_now().await,
            Shake::Nap(nap) => sleep(nap).await,
            Shake::Freeze => std::future::pending().await,
        }
    }
}

/// The state of the shake before the next poll.
enum Before {
    /// The dice have not been thrown yet.
    Fresh,
    /// It has yielded.
    Yielded,
    /// It sleeps.
    Napping(Pin<Box<Sleep>>),
}

/// A future whose polls are shaken.
pub(crate) struct Shaken<F> {
    future: F,
    shaker: Shaker,
    before: Before,
}

impl<F: Future + Unpin> Future for Shaken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if let Before::Fresh = self.before {
            match self.shaker.roll() {
                Shake::Nothing => {}
                Shake::Yield => {
                    self.before = Before::Yielded;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Shake::Nap(nap) => self.before = Before::Napping(Box::pin(sleep(nap))),
                Shake::Freeze => return Poll::Pending,
            }
        }
        if let Before::Napping(nap) = &mut self.before
            && nap.as_mut().poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        self.before = Before::Fresh;
        pin!(&mut self.future).poll(cx)
    }
}

/// The threads of a run's blocking handlers: seeded tasks that ignore drop and cancel.
#[derive(Debug)]
pub(crate) struct Threads {
    pub(crate) shaker: Shaker,
    pub(crate) busy: Arc<AtomicU64>,
}

impl toolyard::Blocking for Threads {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        let busy = self.busy.clone();
        busy.fetch_add(1, Ordering::Relaxed);
        let job = self.shaker.shake(job);
        tokio::spawn(async move {
            job.await;
            busy.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Every task of the engine's data path, shaken.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) shaker: Shaker,
}

impl toolyard::Spawner for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(self.shaker.shake(task));
    }
}
