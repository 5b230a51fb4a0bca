//! The events of a batch and of its calls.

use crate::{
    agent::EventPlace,
    call::{batch::BatchState, ending::Ending, in_flight::InFlight},
    record::UNKNOWN_TOOL,
};
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    EventKind,
    error::TerminalEvent,
    event::{CallDetails, Failure},
};

impl BatchState {
    /// Emits an event of this batch's turn.
    pub(crate) fn emit_turn(&self, kind: impl FnOnce() -> EventKind) {
        if !self.is_turn {
            return;
        }
        let place =
            || EventPlace { turn: Some(self.turn), batch: Some(self.base.number), ..EventPlace::default() };
        self.session.emit_lazily(kind, place);
    }
}

impl InFlight<'_> {
    /// Emits an event of this call if anyone listens.
    #[inline]
    pub(crate) fn emit(self, attempt: Option<u32>, kind: impl FnOnce() -> EventKind) {
        let (slot, base) = (self.slot(), &self.batch.base);
        self.session().emit_lazily(kind, || EventPlace {
            turn: Some(self.batch.turn),
            batch: Some(base.number),
            run: Some(slot.run),
            call_id: Some(slot.id().clone()),
            index: Some(base.index + self.index),
            attempt,
        });
    }

    /// The tool's name as events show it.
    pub(crate) fn recorded_name(self) -> Arc<str> {
        if self.is_known() { self.call().name.clone() } else { UNKNOWN_TOOL.into() }
    }

    /// The one event that ends this call (OB-1).
    pub(crate) fn terminal_event(self, ending: &Ending) -> EventKind {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (queue_ms, duration_ms) = (millis(ending.queued.into()), millis(ending.ran.into()));
        let tool_name = self.recorded_name();
        let error = match &ending.status {
            Ok(output) => {
                return EventKind::Completed {
                    tool_name,
                    duration_ms,
                    queue_ms,
                    bytes: output.size(),
                    dedupe: ending.dedupe,
                    sandbox: ending.sandbox,
                    cancel_requested: ending.cancel_requested,
                    details: CallDetails::of_output(output),
                };
            }
            Err(error) => error,
        };
        let mut failure = Failure::new(tool_name, error, queue_ms, duration_ms);
        failure.dedupe = ending.dedupe;
        match error.kind.terminal_event() {
            TerminalEvent::InputInvalid if !ending.has_run() => EventKind::InputInvalid(failure),
            TerminalEvent::Denied if !ending.has_run() => EventKind::Denied(failure),
            _ => EventKind::Failed(failure),
        }
    }
}
