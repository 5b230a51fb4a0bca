//! A whole batch whose results are given as its calls end (KT-5).
//!
//! ```text
//!   all calls ─► an open batch, closed at once ─► ends, one by one ─► (place, result)
//!                                              └─ all ended ─► what no end has told of ─► the end of the stream
//! ```

use super::{super::intake::Order, CallEnds, OpenBatch, Owner, StreamCalls};
use crate::call::{SessionCore, TurnOf};
use futures::{
    Stream, StreamExt as _,
    future::{Either, select},
    stream::{BoxStream, unfold},
};
use std::{
    collections::VecDeque,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};
use toolyard_core::{Batch, Outcome};

/// The results of a batch, each as soon as its call has ended, with the call's place in the batch, from 0.
///
/// Every call of the batch is given exactly once; then the stream ends. The order is that of the ends, whatever the order
/// of the batch; the calls run as [`dispatch`](crate::Session::dispatch) runs them. They start at once and go on whether
/// the stream is polled or not. A result that has not been read is bounded like any other that is not taken (CC-4), and
/// lets go of what it holds when it is read. With a recorder, a call's end is durable when it is given, or its result says
/// that it is not (SM-4); the key of a [request](Batch::of_request) is not recorded, since the record is that of an open
/// batch.
///
/// In a handler, the last result comes once the handler holds its permits again (CC-6).
///
/// # Cancel safety
/// Dropping the future of `next` loses nothing. Dropping the stream cancels the batch: waiting calls end at once, running
/// calls keep their grace in the background, and their results go only to the event stream (CC-6b).
pub struct Outcomes {
    given: BoxStream<'static, (usize, Outcome)>,
    left: usize,
}

impl Outcomes {
    /// Runs a batch of this turn. `opened` is told of its calls before any of them starts.
    pub(crate) fn new(
        session: &Arc<SessionCore>,
        turn: TurnOf,
        owner: Owner,
        calls: Batch,
        opened: impl FnOnce(&Arc<StreamCalls>),
    ) -> Self {
        let (batch, playing) = OpenBatch::parts(session, Order::Runs, turn, owner);
        opened(batch.calls());
        let (ends, left) = (batch.take_ends(), calls.len());
        calls.into_iter().for_each(|call| batch.push(call));
        batch.stream.calls.end_input();
        session.engine.tasks.spawn(playing);
        let state =
            Giving { batch, ends, told: vec![false; left], left, untold: VecDeque::new(), is_over: false };
        let given = unfold(state, |mut state| async move { Some((state.next().await?, state)) });
        Self { given: given.fuse().boxed(), left }
    }
}

impl Stream for Outcomes {
    type Item = (usize, Outcome);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<(usize, Outcome)>> {
        let this = self.get_mut();
        let given = this.given.poll_next_unpin(cx);
        this.left -= usize::from(matches!(given, Poll::Ready(Some(_))));
        given
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes").field("left", &self.left).finish_non_exhaustive()
    }
}

/// What the stream has given, and what it still has to give. Its futures are dropped only with the whole.
struct Giving {
    batch: OpenBatch,
    ends: CallEnds,
    /// By place: whether the result has been given.
    told: Vec<bool>,
    left: usize,
    /// The results that no end has told of.
    untold: VecDeque<(usize, Outcome)>,
    is_over: bool,
}

impl Giving {
    async fn next(&mut self) -> Option<(usize, Outcome)> {
        let given = if self.left > 0 { self.ended().await } else { None };
        if let Some((at, _)) = &given {
            self.told[*at] = true;
            self.left -= 1;
        }
        // Before the last result is given, so that who reads no further does not cancel a batch that has ended.
        if (self.left == 0 || given.is_none()) && !self.is_over {
            self.batch.all_ended().await;
            drop(self.batch.stream.calls.collect()); // nothing is left in it, unless its turn keeps it
            self.batch.held_again().await;
            self.is_over = true;
        }
        given
    }

    /// Waits for the next call that ends.
    async fn ended(&mut self) -> Option<(usize, Outcome)> {
        if let Some(done) = &mut self.batch.done {
            // The ends first: they have all been told of when the batch is done.
            let is_lost = match select(pin!(self.ends.next()), done).await {
                Either::Left((end, _)) => return Some(end),
                Either::Right((done, _)) => done.is_err(),
            };
            if is_lost {
                self.batch.stream.calls.recover_from_loss().await;
            }
            self.batch.done = None;
        }
        if self.ends.has_next() {
            return Some(self.ends.next().await);
        }
        if self.untold.is_empty() {
            self.untold = self.batch.stream.calls.untold(|at| self.told[at]).into();
        }
        self.untold.pop_front()
    }
}
