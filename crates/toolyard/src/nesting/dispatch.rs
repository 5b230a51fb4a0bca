//! The dispatch of a handler's own calls.

use super::{CallRef, Nest};
use crate::batch::{Dispatch, Origin, Stop};
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
    entered.nest().until_none_is_dropped().await;
    let outcomes = Dispatch { origin: Origin::Nested(&entered), ..dispatch }.run(batch).await;
    entered.nest().until_held().await;
    outcomes
}

/// A dispatch in the air, for which its handler is parked.
pub(crate) struct Entered {
    call: CallRef,
    /// Its place in the nest.
    child: usize,
}

impl Entered {
    /// Parks the handler.
    ///
    /// # Errors
    /// What the calls are answered when the handler is over, or when too many are parked already.
    pub(crate) fn new(call: &CallRef) -> Result<Self, Stop> {
        let nest = call.batch.nest(call.index).ok_or(Stop::Orphaned)?;
        let child = nest.enter(call)?;
        Ok(Self { call: call.clone(), child })
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
