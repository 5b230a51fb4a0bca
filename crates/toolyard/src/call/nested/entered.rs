//! A dispatch of a handler, from its first call to its last.

use crate::call::{in_flight::CallRef, nested::park::Nest, stop::Stop};
/// A dispatch in flight, for which its handler is parked, or about to be.
pub(crate) struct Entered {
    call: CallRef,
    /// Its number in the nest.
    child: usize,
}

impl Entered {
    /// Enters a dispatch in the nest. The handler has yet to be [parked](Self::park).
    ///
    /// # Errors
    /// Why the calls are refused, if the handler is over.
    pub(crate) fn new(call: &CallRef) -> Result<Self, Stop> {
        let nest = call.at().nest().ok_or(Stop::Orphaned)?;
        let child = nest.enter(call)?;
        Ok(Self { call: call.clone(), child })
    }

    /// Parks the handler. If too many are parked already, the waiting calls of this dispatch are ended.
    pub(crate) fn park(&self) {
        if let Err(why) = self.nest().park(&self.call) {
            self.nest().stop_child(self.child, why);
        }
    }

    pub(crate) fn nest(&self) -> &Nest {
        self.call.at().entered_nest()
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
        if self.nest().stop_awaiting(self.child) {
            self.call.batch.dispatch_quiescent(&self.call, self.child);
        }
    }
}
