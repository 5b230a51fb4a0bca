//! An open batch that has no task of its own: whoever waits for the ends of its calls drives it (CL-5).
//!
//! ```text
//!   holder's task ─► push ─► next_end ─┬─ takes calls in, begins runs ─► the tasks of their handlers ─┐
//!                              ▲       └─ the next end ◄──────────────────────────────────────────────┤
//!                              └───────── woken once for both ◄───────────────────────────────────────┘
//!
//!   let go of, or dropped: what is left of it goes on in the background
//! ```
//!
//! A task of the batch's own would be woken beside its holder at every end, and either of them wakes a thread for the other.

use super::{CallEnds, OpenBatch, Owner, StreamCalls};
use crate::{
    batch::intake::Order,
    call::{SessionCore, TurnOf},
    tasks::{Outside, Tasks, caught, outside},
};
use futures::{FutureExt as _, future::BoxFuture};
use std::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};
use toolyard_core::{Call, Outcome};

/// An [open batch](OpenBatch) that its holder drives: it takes its calls in and begins its runs while
/// [`next_end`](Self::next_end) is awaited. Results are those of the same batch with a task of its own. What has begun to
/// run goes on by itself.
///
/// For a holder that does little else than wait for the ends, and is a task of its own. Outputs are given away, as
/// [`OpenBatch::take_ends`] does.
///
/// Dropping it cancels the batch, like an [`OpenBatch`].
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
/// let engine = Engine::builder().tool(echo).build().await.unwrap();
/// let turn = engine.session("demo").turn().without_resend();
/// let mut batch = turn.open_driven();
/// batch.push(Call::new("a", "echo", "{}"));
/// let (at, outcome) = batch.next_end().await; // begins it, and waits for it
/// assert_eq!((at, outcome.call_id.as_str()), (0, "a"));
/// batch.let_go();
/// # }
/// ```
pub struct DrivenBatch {
    // In the order in which they are dropped: the batch is cancelled before what is left of it goes on elsewhere.
    batch: OpenBatch,
    ends: CallEnds,
    playing: Playing,
    /// By place: whether the end of a call has been told.
    told: Vec<bool>,
    /// Whether what drives it has failed: no end is told of any more, and each call has an error.
    is_lost: bool,
}

impl DrivenBatch {
    pub(crate) fn new(session: &Arc<SessionCore>, turn: TurnOf, owner: Owner) -> Self {
        let (batch, playing) = OpenBatch::parts(session, Order::Runs, turn, owner);
        let playing = Playing {
            tasks: session.engine.tasks.clone(),
            rest: Some(outside(playing.boxed())),
            holder_waits: false,
        };
        let ends = batch.take_ends();
        Self { batch, ends, playing, told: Vec::new(), is_lost: false }
    }

    pub(crate) fn calls(&self) -> &Arc<StreamCalls> {
        self.batch.calls()
    }

    /// Its number in the session, from 1, as events have it.
    pub fn number(&self) -> u64 {
        self.batch.number()
    }

    /// How many calls have been pushed.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether no call has been pushed.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Adds a call, which may start once [`next_end`](Self::next_end) is awaited; else like [`OpenBatch::push`].
    pub fn push(&mut self, call: Call) {
        self.playing.forget_holder();
        self.batch.push(call);
    }

    /// Drives the batch until the next of its calls ends; gives its place in the batch and its result, as
    /// [`CallEnds::next`] does. Waits for as long as no call ends, also when there is none.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing. Until it is awaited again, calls that have not begun do not begin.
    pub async fn next_end(&mut self) -> (usize, Outcome) {
        let (at, outcome) = match self.driven().await {
            Some(end) => end,
            None => self.end_after_loss().await,
        };
        self.told.resize(self.told.len().max(at + 1), false);
        self.told[at] = true;
        (at, outcome)
    }

    /// Drives the batch until a call ends; `None` if it cannot be driven any more.
    async fn driven(&mut self) -> Option<(usize, Outcome)> {
        let Self { batch, ends, playing, is_lost, .. } = self;
        if *is_lost {
            return None;
        }
        let mut next = pin!(ends.next());
        poll_fn(|cx| {
            playing.holder_waits = true;
            // First, as calls that are done in place end here. It has no end before that of its input, unless it fails.
            let is_over = playing.poll(cx).is_ready();
            match next.as_mut().poll(cx) {
                Poll::Pending if is_over && batch.is_lost() => Poll::Ready(None),
                polled => polled.map(Some),
            }
        })
        .await
    }

    /// The errors of calls that were lost with what drives the batch, one by one.
    async fn end_after_loss(&mut self) -> (usize, Outcome) {
        if !self.is_lost {
            self.batch.stream.calls.recover_from_loss().await;
            (self.is_lost, self.batch.done) = (true, None);
        }
        if self.ends.has_next() {
            return self.ends.next().await;
        }
        let told = &self.told;
        let untold = self.batch.stream.calls.untold(|at| told.get(at).copied().unwrap_or_default());
        match untold.into_iter().next() {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Ends the input, and wants no more of the batch: calls without a result go on, what is left to do for its end is
    /// done here if nothing has to be waited for, and in the background otherwise. No result is kept, unless the turn keeps
    /// them.
    pub fn let_go(self) {
        let Self { mut batch, ends, mut playing, .. } = self;
        playing.forget_holder();
        batch.calls().end_input();
        drop(ends);
        let is_over = playing.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        // A handler's batch may have to wait until the handler holds its permits again.
        if is_over && matches!(batch.stream.caller, Ok(None)) && batch.is_done() {
            batch.done = None;
            drop(batch.stream.calls.collect());
            return;
        }
        let tasks = playing.tasks.clone();
        tasks.spawn(async move {
            poll_fn(|cx| playing.poll(cx)).await;
            batch.finish().await;
        });
    }
}

/// What takes calls in and runs them. What is left of it when it is dropped goes on in the background.
struct Playing {
    tasks: Tasks,
    /// `None` once it is over.
    rest: Option<Outside<BoxFuture<'static, ()>>>,
    /// Whether it may wake the holder's task.
    holder_waits: bool,
}

impl Playing {
    /// Drives it within the engine's runtime. A panic ends it, as it would end a task.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(()) };
        let polled = {
            let _runtime = self.tasks.enter();
            caught(|| Pin::new(rest).poll(cx))
        };
        match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => {}
            Err(panic) => tracing::error!(?panic, "an open batch has failed"),
        }
        if let Err(panic) = caught(|| self.rest = None) {
            panic.log_drop();
        }
        Poll::Ready(())
    }

    /// The holder is about to give it something, and looks again before it waits. Were it woken for that while it runs, its
    /// task would run once more for nothing, and wake a thread for it.
    fn forget_holder(&mut self) {
        if std::mem::take(&mut self.holder_waits) {
            let _ = self.poll(&mut Context::from_waker(Waker::noop())); // its end is not lost: `rest` is `None` then
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.tasks.spawn(rest);
        }
    }
}

impl fmt::Debug for DrivenBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrivenBatch").field("calls", &self.len()).finish_non_exhaustive()
    }
}
