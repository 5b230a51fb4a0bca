//! Dispatching a handler's own calls.

use super::intake::{Dispatch, Origin};
use crate::call::{BatchState, CallRef, Entered, vanished_error};
use std::{pin::pin, sync::Arc, task::Poll};
use tokio::sync::oneshot;
use toolyard_core::{Batch, Call, Outcome, Routing};

/// Runs a batch for a handler, which is parked meanwhile.
///
/// Returns when every call of the batch is quiescent or a listed zombie, nothing else that the handler dispatched is
/// in flight, and the handler holds its units again (CC-6). A dispatch that is refused returns no earlier.
///
/// The batch runs on even if this future is not polled: a handler that holds it and polls something else meanwhile,
/// as `select!` in a loop does, cannot deadlock with itself.
///
/// Cancel safety: dropping the future cancels the batch; the handler counts as parked until its calls have settled
/// (CC-6b).
pub(crate) async fn dispatch_nested(call: CallRef, dispatch: Dispatch<'_>, batch: Batch) -> Vec<Outcome> {
    if batch.is_empty() {
        // It does not park the handler, but returns no earlier than other dispatches in flight.
        let outcomes = dispatch.run(batch).await;
        if let Some(parking) = call.at().parking() {
            parking.until_held().await;
        }
        return outcomes;
    }
    let entered = match Entered::new(&call) {
        Ok(entered) => entered,
        Err(why) => {
            let outcomes = Dispatch { origin: Origin::Refused(why), ..dispatch }.run(batch).await;
            // A handler that was given up may run on, and calls of it too: it stays parked for them (CC-7).
            if let Some(parking) = call.at().parking() {
                parking.until_held_or_stopped().await;
            }
            return outcomes;
        }
    };
    if !entered.parking().dropped_have_settled() {
        entered.park();
        entered.parking().until_dropped_settled().await;
    }
    let outcomes = match dispatch.watch {
        None => on_its_own(Arc::new(entered), dispatch, batch).await,
        // It is followed by a turn that the handler made: it runs only while it is polled.
        Some(_) => {
            let mut outcomes = pin!(Dispatch { origin: Origin::Nested(&entered), ..dispatch }.run(batch));
            match futures::poll!(&mut outcomes) {
                Poll::Ready(outcomes) => outcomes,
                Poll::Pending => {
                    entered.park();
                    outcomes.await
                }
            }
        }
    };
    if let Some(parking) = call.at().parking() {
        parking.until_held().await;
    }
    outcomes
}

/// Runs a batch on a task of its own, except for its first poll: its calls are queued before the handler releases
/// what they may need.
async fn on_its_own(entered: Arc<Entered>, dispatch: Dispatch<'_>, batch: Batch) -> Vec<Outcome> {
    let mut awaited = LeaveOnDrop { entered: &entered, armed: true };
    let (session, order, turn, span) =
        (dispatch.session.clone(), dispatch.order, dispatch.turn, dispatch.span);
    let calls = batch.calls().to_vec();
    let mut run = {
        let entered = entered.clone();
        Box::pin(async move {
            let origin = Origin::Nested(&entered);
            Dispatch { session: &session, turn, order, watch: None, origin, span, can_be_resumed: false }
                .run(batch)
                .await
        })
    };
    let outcomes = match futures::poll!(&mut run) {
        Poll::Ready(outcomes) => outcomes,
        Poll::Pending => {
            entered.park();
            let (give, outcomes) = oneshot::channel();
            entered.call().batch.session.engine.tasks.spawn(async move {
                let _ = give.send(run.await); // the handler may be gone
            });
            outcomes.await.unwrap_or_else(|_| {
                let mut outcomes: Vec<_> = calls.iter().map(vanished_outcome).collect();
                BatchState::redact(
                    entered.call().batch.session.engine.results_redactor.as_ref(),
                    &mut outcomes,
                );
                outcomes
            })
        }
    };
    awaited.armed = false;
    outcomes
}

/// The result of a call whose batch was lost with its runtime (SC-3).
fn vanished_outcome(call: &Call) -> Outcome {
    Outcome::new(call, Routing::ShortCircuit, Err(vanished_error(1)))
}

/// Cancels a dispatch whose future is dropped.
struct LeaveOnDrop<'a> {
    entered: &'a Entered,
    armed: bool,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.entered.parking().cancel_child(self.entered.child());
        }
    }
}
