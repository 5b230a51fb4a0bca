//! A batch whose calls arrive while the model still writes them (CL-5).
//!
//! ```text
//!   push ─► waiting ─► intake: gate, first events, questions ─► player: runs, one after another ─► results
//!                      a piece of the batch at a time            a run may go on over several pieces
//! ```
//!
//! Each piece is a [`BatchState`] of its own. The pieces share one batch number and count their calls and runs as one
//! batch, so that the results do not show that the calls arrived one by one. A call starts as soon as no earlier call
//! of another run is unfinished, whatever is still to come.

mod answers;
mod calls;
mod driven;
mod ends;
mod feed;
mod outcomes;
mod player;

pub(crate) use answers::StreamAnswers;
pub(crate) use calls::StreamCalls;
pub use driven::DrivenBatch;
pub use ends::CallEnds;
pub use outcomes::Outcomes;

use super::intake::Order;
use crate::{
    call::{SessionCore, Stop, TurnOf, span},
    record::Cancelled,
};
use feed::Stream;
use futures::channel::mpsc;
use parking_lot::Mutex;
use std::{fmt, sync::Arc};
use tokio::sync::oneshot;
use toolyard_core::{Call, Outcome};

/// A batch that is still being written.
///
/// Calls are pushed as they are decoded and start as soon as the order of the batch allows. The results are those of
/// the same batch given at once (CL-5).
///
/// A handler that opens one is parked while its calls are in flight, and [`finish`](Self::finish) returns once the
/// handler holds its permits again (CC-6).
///
/// Dropping it cancels the batch: waiting calls end at once, running calls have their grace in the background
/// (CC-6b).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
/// let engine = Engine::builder().tool(echo).build().await.unwrap();
/// let batch = engine.session("demo").open_batch();
/// batch.push(Call::new("a", "echo", "{}")); // runs while the next one is being decoded
/// batch.push(Call::new("b", "echo", "{}"));
/// let outcomes = batch.finish().await;
/// assert_eq!(outcomes.len(), 2);
/// assert_eq!(outcomes[1].call_id.as_str(), "b");
/// # }
/// ```
pub struct OpenBatch {
    stream: Arc<Stream>,
    owner: Owner,
    /// `None` once it is finished.
    done: Option<oneshot::Receiver<()>>,
}

/// Whose an open batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody's: it is a turn of its own.
    Nobody,
    /// A turn's, which keeps its results or does not.
    Turn { keeps: bool },
    /// A handler's: it belongs to the turn of the handler's call.
    Handler,
}

impl OpenBatch {
    /// Opens a batch of this turn, with a task of its own.
    pub(crate) fn new(session: &Arc<SessionCore>, order: Order, turn: TurnOf, owner: Owner) -> Self {
        let (batch, playing) = Self::parts(session, order, turn, owner);
        session.engine.tasks.spawn(playing);
        batch
    }

    /// A batch of this turn, and what takes its calls in and runs them, to the end of the batch.
    fn parts(
        session: &Arc<SessionCore>,
        order: Order,
        turn: TurnOf,
        owner: Owner,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let caller = session.caller_call();
        let number = session.next_batch();
        let is_sequential = order == Order::OneByOne;
        let foundation = session.record_stream(turn.number, number, is_sequential, caller.as_ref().ok());
        let stream = Arc::new(Stream {
            calls: StreamCalls::new(session.clone(), turn.number, number, owner, foundation),
            may_be_resumed: matches!(caller, Ok(None)) && session.may_be_resumed(),
            ends: Mutex::default(),
            turn,
            order,
            span: span::here(caller.as_ref().ok().and_then(Option::as_ref)),
            caller,
        });
        let (done_sender, done) = oneshot::channel();
        stream.calls.announce_start();
        let playing = feed::play(stream.clone());
        let playing = async move {
            playing.await;
            let _ = done_sender.send(()); // the holder may be gone
        };
        (Self { stream, owner, done: Some(done) }, playing)
    }

    /// Its calls, as its turn knows them.
    pub(crate) fn calls(&self) -> &Arc<StreamCalls> {
        &self.stream.calls
    }

    /// The number of its turn in the session, from 1.
    pub fn turn(&self) -> u64 {
        self.stream.turn.number
    }

    /// Its number in the session, from 1, as events have it.
    pub fn number(&self) -> u64 {
        self.stream.calls.number()
    }

    /// Adds a call, which may start before the caller's next await.
    ///
    /// A call whose arguments are cut off, because the stream broke, is answered `invalid_input`. Calls over the
    /// bound of a batch are answered `overloaded` (CC-4).
    pub fn push(&self, call: Call) {
        // From here on the handler has dispatched calls, even if they are taken in after its end (RT-7).
        let ahead = self.stream.enter_ahead();
        let surplus = self.stream.calls.push(call, ahead); // if the task is gone, `collect` answers it
        drop(surplus); // outside of the lock
    }

    /// How many calls have been pushed.
    pub fn len(&self) -> usize {
        self.stream.calls.len()
    }

    /// Whether no call has been pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The results so far, one place per call.
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        self.stream.calls.finished()
    }

    /// Tells of each call that is pushed from now on when it has ended, whatever the order of the batch (CL-4). Only the
    /// latest [`CallEnds`] is told.
    pub fn ends(&self) -> CallEnds {
        self.told(false)
    }

    fn told(&self, takes: bool) -> CallEnds {
        let (tell, told) = mpsc::unbounded();
        *self.stream.ends.lock() = Some(tell);
        CallEnds::new(told, takes)
    }

    /// The same, and gives the outputs away: what each holds (CC-4) is let go of, and [`finish`](Self::finish) returns no results. A batch whose turn keeps results keeps copies.
    pub fn take_ends(&self) -> CallEnds {
        self.told(self.stream.calls.gives_away())
    }

    /// Cancels its calls, those still to come included. [`finish`](Self::finish) still returns their results. What else
    /// its turn has goes on.
    pub fn cancel(&self) {
        self.stream.calls.session.record_cancel(match self.owner {
            Owner::Nobody => Cancelled::Turn(self.turn()),
            Owner::Turn { .. } | Owner::Handler => Cancelled::Batch(self.stream.calls.number()),
        });
        self.stream.calls.stop(Stop::Cancelled);
    }

    /// Says by which key its caller knows the request that has brought it, now that it has come whole: as
    /// [`Batch::of_request`](toolyard_core::Batch::of_request) does for a batch that comes at once. A recorder is given the key
    /// with the end of the input; a batch without one may lack calls.
    pub fn of_request(&self, key: impl Into<Arc<str>>) {
        self.stream.calls.set_request(key.into());
    }

    /// Ends the input and waits for the results, one per call, in the order in which the calls were pushed (CL-4).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch.
    pub async fn finish(mut self) -> Vec<Outcome> {
        self.stream.calls.end_input();
        self.all_ended().await;
        let outcomes = self.stream.calls.collect();
        self.held_again().await;
        outcomes
    }

    /// Waits until every call has its result.
    async fn all_ended(&mut self) {
        if let Some(done) = &mut self.done
            && done.await.is_err()
        {
            self.stream.calls.recover_from_loss().await;
        }
        self.done = None;
    }

    /// Whether every call has its result, as far as is known without waiting.
    fn is_done(&mut self) -> bool {
        self.done.as_mut().is_none_or(|done| done.try_recv().is_ok())
    }

    /// Whether what runs it has gone before its end.
    fn is_lost(&mut self) -> bool {
        match self.done.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Ok(())) => {
                self.done = None;
                false
            }
            Some(Err(error)) => error == oneshot::error::TryRecvError::Closed,
            None => false,
        }
    }

    /// Waits until the handler that has opened it, if one has, holds its permits again.
    async fn held_again(&self) {
        if let Ok(Some(call)) = &self.stream.caller
            && let Some(parking) = call.at().parking()
        {
            parking.until_held().await;
        }
    }
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        if self.done.is_some() {
            let calls = &self.stream.calls;
            calls.session.record_cancel(Cancelled::Batch(calls.number()));
            calls.stop(Stop::Cancelled);
            calls.leave();
            calls.end_input();
        }
    }
}

impl fmt::Debug for OpenBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenBatch").field("calls", &self.len()).finish_non_exhaustive()
    }
}
