//! A dispatch of a handler, from its first call to its last.

use crate::call::{in_flight::CallRef, nested::parking::Parking, stop::Stop};
/// A dispatch in flight, for which its handler is parked, or about to be.
pub(crate) struct Entered {
    call: CallRef,
    /// Its number among the handler's dispatches.
    child: usize,
}

impl Entered {
    /// Enters a dispatch. The handler has yet to be [parked](Self::park).
    ///
    /// # Errors
    /// Why the calls are refused, if the handler is over.
    pub(crate) fn new(call: &CallRef) -> Result<Self, Stop> {
        let parking = call.at().open_parking().ok_or(Stop::Orphaned)?;
        let child = parking.enter(call)?;
        Ok(Self { call: call.clone(), child })
    }

    /// Parks the handler. If too many are parked already, the waiting calls of this dispatch are ended.
    pub(crate) fn park(&self) {
        if let Err(why) = self.parking().park(&self.call) {
            self.parking().stop_child(self.child, why);
        }
    }

    pub(crate) fn parking(&self) -> &Parking {
        self.call.at().known_parking()
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
        if self.parking().stop_awaiting(self.child) {
            self.call.batch.dispatch_quiescent(&self.call, self.child);
        }
    }
}
