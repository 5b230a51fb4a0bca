//! The ends of an open batch's calls, one by one, for whoever answers each as it ends (CL-4).
//!
//! ```text
//!   a call's one way out ─► its piece ─► told ─► recorded, with a recorder ─► its place and its result
//! ```

use crate::call::CallRef;
use futures::{FutureExt as _, StreamExt as _, channel::mpsc, future::BoxFuture};
use std::{
    fmt,
    future::pending,
    task::{Context, Poll, Waker},
};
use toolyard_core::Outcome;

/// The calls of an [open batch](super::OpenBatch), each when it has ended: for a caller that answers them one by one.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
/// let engine = Engine::builder().tool(echo).build().await.unwrap();
/// let batch = engine.session("demo").open_batch();
/// let mut ends = batch.ends();
/// batch.push(Call::new("a", "echo", "{}"));
/// let (at, outcome) = ends.next().await; // more may be pushed before and after
/// assert_eq!((at, outcome.call_id.as_str()), (0, "a"));
/// batch.finish().await;
/// # }
/// ```
pub struct CallEnds {
    told: mpsc::UnboundedReceiver<CallRef>,
    /// Whether it gives outputs away.
    takes: bool,
    /// The end that is next, and what is left to wait for until it may be told.
    next: Option<(CallRef, BoxFuture<'static, ()>)>,
}

impl CallEnds {
    pub(super) fn new(told: mpsc::UnboundedReceiver<CallRef>, takes: bool) -> Self {
        Self { told, takes, next: None }
    }

    /// Whether a call has ended that it has not told of.
    pub(super) fn has_next(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.told.try_recv().ok().map(CallRef::due);
        }
        self.next.is_some()
    }

    /// Waits for the next call that ends; gives its place in the batch and its result, which the batch keeps
    /// as well, unless outputs are [taken](super::OpenBatch::take_ends). Each
    /// call is told once, in the order of their ends. With a recorder, its end is durable by then, or its result says that
    /// it is not (SM-4). Waits for as long as no call ends, also when there is none.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> (usize, Outcome) {
        loop {
            if let Some((_, recorded)) = &mut self.next {
                recorded.await;
                let (call, _) = self.next.take().expect("nothing else takes it");
                // The results may have been taken meanwhile, by a `finish` that somebody else has called.
                match call.told(self.takes) {
                    Some(told) => return told,
                    None => continue,
                }
            }
            let Some(call) = self.told.next().await else { return pending().await };
            if call.batch.session.engine.recorder.is_none() {
                match call.told(self.takes) {
                    Some(told) => return told,
                    None => continue,
                }
            }
            self.next = Some(call.due());
        }
    }
}

impl CallRef {
    /// With what is left to wait for until it may be told of.
    fn due(self) -> (Self, BoxFuture<'static, ()>) {
        let recorded = self.clone().recorded().boxed();
        (self, recorded)
    }

    /// Waits until what its piece has left with the recorder may be told of.
    async fn recorded(self) {
        let until = self.batch.session.engine.reply_until(self.batch.nested.is_some());
        self.batch.ends_recorded(until).await;
    }

    /// Its place in its stream, and its result: moved out, if it is taken. A failure stays, as runs to come may be skipped
    /// for it.
    fn told(&self, takes: bool) -> Option<(usize, Outcome)> {
        let outcome = match takes {
            true => self.batch.taken_at(self.index)?,
            false => self.batch.finished_at(self.index)?,
        };
        Some(((self.batch.base.index + self.index) as usize, outcome))
    }
}

impl Drop for CallEnds {
    fn drop(&mut self) {
        // Whoever has waited is not woken when the last one goes who could have told of an end: the channel keeps its waker
        // until then. What comes instead is dropped, like all that comes after it.
        let mut nobody = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(_)) = self.told.poll_next_unpin(&mut nobody) {} // it takes the waker when it is empty
    }
}

impl fmt::Debug for CallEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEnds").finish_non_exhaustive()
    }
}
