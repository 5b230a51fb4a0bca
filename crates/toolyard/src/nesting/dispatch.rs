//! The dispatch of a handler's own calls.

use super::{CallRef, Nest};
use crate::batch::{Dispatch, Origin, Stop};
use std::{pin::pin, task::Poll};
use toolyard_core::{Batch, Outcome};

/// Runs a batch for a handler, which is parked meanwhile: it yields when every call of the batch is quiescent or a
/// listed zombie, when nothing else that the handler dispatched is in the air, and when the handler holds its
/// units again (CC-6).
///
/// Cancel safety: dropping the future cancels the batch; the handler counts as parked until its calls have come
/// to rest (CC-6b).
pub(crate) async fn dispatch(call: CallRef, dispatch: Dispatch<'_>, batch: Batch) -> Vec<Outcome> {
    if batch.is_empty() {
        // It parks nobody, and yields no earlier than what else is in the air.
        let outcomes = dispatch.run(batch).await;
        if let Some(nest) = call.batch.nest_of(call.index) {
            nest.until_held().await;
        }
        return outcomes;
    }
    let entered = match Entered::new(&call) {
        Ok(entered) => entered,
        Err(why) => return Dispatch { origin: Origin::Refused(why), ..dispatch }.run(batch).await,
    };
    if !entered.nest().none_is_dropped() {
        entered.park();
        entered.nest().until_none_is_dropped().await;
    }
    let mut outcomes = pin!(Dispatch { origin: Origin::Nested(&entered), ..dispatch }.run(batch));
    // Its calls are in line before it gives back what they may need.
    let outcomes = match futures::poll!(&mut outcomes) {
        Poll::Ready(outcomes) => outcomes,
        Poll::Pending => {
            entered.park();
            outcomes.await
        }
    };
    entered.nest().until_held().await;
    outcomes
}

/// A dispatch in the air, for which its handler is parked, or about to be.
pub(crate) struct Entered {
    call: CallRef,
    /// Its place in the nest.
    child: usize,
}

impl Entered {
    /// A dispatch for which the handler has yet to be [parked](Self::park).
    ///
    /// # Errors
    /// What the calls are answered when the handler is over.
    pub(crate) fn new(call: &CallRef) -> Result<Self, Stop> {
        let nest = call.batch.nest(call.index).ok_or(Stop::Orphaned)?;
        let child = nest.enter(call)?;
        Ok(Self { call: call.clone(), child })
    }

    /// Parks the handler. Where too many are parked already, the calls that wait are answered so.
    pub(crate) fn park(&self) {
        if let Err(why) = self.nest().park(&self.call) {
            self.nest().stop_child(self.child, why);
        }
    }

    pub(crate) fn nest(&self) -> &Nest {
        self.call.batch.entered_nest(self.call.index)
    }

    pub(crate) fn call(&self) -> &CallRef {
        &self.call
    }

    pub(crate) fn child(&self) -> usize {
        self.child
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.nest().left(self.child) {
            self.call.batch.dispatch_rests(&self.call, self.child);
        }
    }
}
