//! Plays the runs of an open batch, piece by piece.

use super::{
    super::{
        driver::{begin, skips_rest, wait_for_zombies, zombies_until},
        intake::Order,
        router,
    },
    feed::Stream,
};
use crate::call::{BatchState, Stop};
use futures::{
    StreamExt as _,
    channel::mpsc,
    future::{Either, select},
};
use std::{pin::pin, sync::Arc};
use toolyard_core::Routing;

/// A run of a piece, which may be part of a run over several pieces.
type Part = (Arc<BatchState>, usize);

/// The runs that have begun and may still be waited for.
#[derive(Default)]
struct Begun {
    /// The runs before the latest one, unless they are known to be quiescent. The latest one has begun beside them only
    /// as far as nothing of it had to start.
    ahead: Vec<Part>,
    /// The latest run.
    parts: Vec<Part>,
    /// Its routing.
    routing: Option<Routing>,
}

pub(super) async fn play_runs(stream: &Stream, mut pieces: mpsc::UnboundedReceiver<Arc<BatchState>>) {
    let mut begun = Begun::default();
    while let Some(batch) = pieces.next().await {
        for run in 0..batch.runs() {
            begun.make_way(stream, &batch, run).await;
            begin(&batch, run);
            begun.parts.push((batch.clone(), run));
        }
    }
    let last = begun.ahead.iter().chain(&begun.parts);
    for (batch, run) in last {
        batch.run_ended(*run).await;
    }
}

impl Begun {
    fn continues_with(&self, routing: Routing, order: Order) -> bool {
        order == Order::Runs && self.routing.is_some_and(|last| router::continues_run(last, Some(routing)))
    }

    /// Waits until the next part may begin: until the runs before its own are quiescent, or it has its results without,
    /// because its calls were refused or end while they wait here.
    async fn make_way(&mut self, stream: &Stream, next: &BatchState, run: usize) {
        let routing = next.routing_of(run);
        if !self.continues_with(routing, stream.order) {
            self.ahead.append(&mut self.parts);
            self.routing = Some(routing);
        } else if self.ahead.is_empty() {
            return;
        }
        // On one task, whose waker they share: they may wait for the same piece, which has one.
        let is_clear = match select(pin!(next.run_ended(run)), pin!(quiescence(&self.ahead))).await {
            Either::Left(_) => false,
            Either::Right((why, _)) => {
                why.into_iter().for_each(|why| stream.calls.stop(why));
                true
            }
        };
        if is_clear {
            self.ahead.clear();
        }
        if let Some(why) = stream.calls.stopped() {
            // The stop goes from piece to piece, and may not have reached this one.
            next.stop(why);
        }
    }
}

/// Waits until runs are quiescent. Returns the reason if what is behind them must not start.
async fn quiescence(runs: &[Part]) -> Option<Stop> {
    for (batch, run) in runs {
        batch.run_ended(*run).await;
    }
    // One for all: each may have to wait for zombies.
    let mut until = None;
    for (batch, run) in runs.iter().filter(|(batch, run)| !batch.is_quiescent(*run)) {
        if wait_for_zombies(batch, *run, *until.get_or_insert_with(zombies_until)).await {
            return Some(Stop::Zombie);
        }
    }
    runs.iter().find_map(|(batch, run)| skips_rest(batch, *run))
}
