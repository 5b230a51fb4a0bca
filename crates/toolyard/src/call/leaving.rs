//! A call that has run, and ends where nothing could wait for its record: between two attempts, or while its handler goes
//! on for other calls (SM-4).
//!
//! ```text
//!   ends ─► its record is given ─┬─ durable ──────────────────► exit: hook, event, result
//!                                ├─ not, late, or nobody is ──► the same, with `recorded: false`
//!                                │  left to wait
//!                                └─ nothing has to wait ──────► exit at once
//! ```

use crate::{
    call::{
        end::Exit,
        ending::Recorded,
        in_flight::{CallRef, InFlight},
        life::{LateResult, Life},
    },
    config::RECORD_WAIT,
};
use parking_lot::MutexGuard;
use toolyard_core::EventKind;

/// Such a call. It exits when this is dropped, whatever happens to the task that waits.
pub(super) struct Leaving {
    call: CallRef,
    exit: Option<Box<Exit>>,
}

impl Leaving {
    /// Lets the call exit when its record is durable. The caller has seen under the lock that it may end.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(call: InFlight<'_>, mut life: MutexGuard<'_, Life>, mut exit: Exit) {
        let waker = life.records_end();
        drop(life);
        drop(waker);
        exit.ending.recorded = Recorded::Given;
        let pending = call.give_end(&exit.ending);
        let mut leaving = Self { call: call.owned(), exit: Some(Box::new(exit)) };
        let Some(pending) = pending else { return };
        leaving.mark(Recorded::Failed); // until it is known to be durable
        let engine = call.engine().clone();
        call.engine().tasks.spawn(async move {
            let until = engine.clock.now() + RECORD_WAIT;
            if engine.recorded(pending, until).await {
                leaving.mark(Recorded::Given);
            }
        });
    }

    fn mark(&mut self, recorded: Recorded) {
        if let Some(exit) = &mut self.exit {
            exit.ending.recorded = recorded;
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(exit) = self.exit.take() {
            let call = self.call.at();
            let mut life = call.slot().life();
            let late = life.take_held_back();
            call.exit(life, *exit);
            late.into_iter().for_each(|result| call.tell_late(result));
        }
    }
}

impl InFlight<'_> {
    /// Tells what a handler has ended with whose call was over by then: after the call's own end (OB-1).
    pub(super) fn late_result(self, result: LateResult) {
        let is_held_back = self.slot().life().holds_back(result);
        if !is_held_back {
            self.tell_late(result);
        }
    }

    fn tell_late(self, LateResult { attempt, ok }: LateResult) {
        self.emit(Some(attempt), || EventKind::LateResult { ok });
    }
}
