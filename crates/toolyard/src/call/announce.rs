//! The events of a batch and of its calls.

use crate::{
    call::{batch::BatchState, ending::Ending, in_flight::InFlight, run::index, slot::Cleared},
    record::{EventPlace, Publisher, UNKNOWN_TOOL, When},
};
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    CallError, EventKind,
    error::TerminalEvent,
    event::{CallDetails, Failure},
};

/// How many calls are announced at once: others of the session wait meanwhile.
const ANNOUNCED_AT_ONCE: u32 = 32;

impl BatchState {
    /// Announces its turn and its calls, none of which has a result yet.
    pub(crate) fn announce_all(&self) {
        let calls = index(self.slots.len());
        for first in (0..calls).step_by(ANNOUNCED_AT_ONCE as usize) {
            let next = calls.min(first + ANNOUNCED_AT_ONCE);
            let starts = first == 0 && self.is_turn;
            let mut publisher = self.session.publisher(When::Now, next - first + u32::from(starts));
            if starts {
                publisher.publish(self.turn_started(), self.place_of_turn());
            }
            for call in (first..next).map(|index| self.at(index)) {
                let tool_name = call.name_for(&mut publisher);
                publisher.publish(call.received(tool_name), call.place(None));
            }
        }
    }

    /// Announces the start of its turn.
    pub(crate) fn announce_start(&self) {
        self.emit_turn(When::Now, || self.turn_started());
    }

    /// Announces the end of its turn: with the end of the call that ended last.
    pub(crate) fn announce_turn_end(&self, failed: usize) {
        self.emit_turn(When::WithLast, || EventKind::TurnEnded { ok: self.slots.len() - failed, failed });
    }

    fn turn_started(&self) -> EventKind {
        EventKind::TurnStarted { calls: Some(self.slots.len()) }
    }

    /// Emits an event of this batch's turn.
    pub(super) fn emit_turn(&self, when: When, kind: impl FnOnce() -> EventKind) {
        if self.is_turn {
            self.session.emit_lazily_at(when, kind, || self.place_of_turn());
        }
    }

    fn place_of_turn(&self) -> EventPlace<'_> {
        EventPlace { turn: Some(self.turn), batch: Some(self.base.number), ..EventPlace::default() }
    }
}

impl<'a> InFlight<'a> {
    /// Emits an event of this call if anyone listens.
    #[inline]
    pub(crate) fn emit(self, attempt: Option<u32>, kind: impl FnOnce() -> EventKind) {
        self.session().emit_lazily(kind, || self.place(attempt));
    }

    /// Emits the event that ends this call, and happened then.
    #[inline]
    pub(super) fn emit_end(self, when: When, ending: &Ending) {
        if self.engine().bus.is_listening() {
            self.announce_end(when, ending);
        }
    }

    #[cold]
    #[inline(never)]
    fn announce_end(self, when: When, ending: &Ending) {
        let (session, place) = (self.session(), || self.place(None));
        let output = match &ending.status {
            Ok(output) => output,
            Err(error) => return session.emit_lazily_at(when, || self.ended_by(error, ending), place),
        };
        let (bytes, details) = (output.size(), CallDetails::of_output(output));
        if details.is_some() {
            let kind = || completed(ending, self.recorded_name(), bytes, details);
            return session.emit_lazily_at(when, kind, place);
        }
        // Nothing in it is worded by the tool.
        let mut publisher = session.publisher(when, 1);
        let tool_name = self.name_for(&mut publisher);
        publisher.publish(completed(ending, tool_name, bytes, None), place());
    }

    /// The place of an event of this call.
    pub(crate) fn place(self, attempt: Option<u32>) -> EventPlace<'a> {
        let (slot, base) = (self.slot(), &self.batch.base);
        EventPlace {
            turn: Some(self.batch.turn),
            batch: Some(base.number),
            run: Some(slot.run),
            call_id: Some(slot.id()),
            index: Some(base.index + self.index),
            attempt,
        }
    }

    /// The event of its arrival.
    pub(crate) fn received(self, tool_name: Arc<str>) -> EventKind {
        EventKind::Received {
            tool_name,
            bytes: self.cleared().and_then(Cleared::bytes).unwrap_or_else(|| self.call().arguments.size()),
            digest: self.received_digest(),
        }
    }

    /// The tool's name as events show it.
    pub(crate) fn recorded_name(self) -> Arc<str> {
        if self.is_known() { self.call().name.clone() } else { UNKNOWN_TOOL.into() }
    }

    /// The same for an event that is published next.
    fn name_for(self, publisher: &mut Publisher<'_>) -> Arc<str> {
        if self.is_known() { publisher.name(&self.call().name) } else { UNKNOWN_TOOL.into() }
    }

    /// The one event that ends this call, which has no output (OB-1).
    fn ended_by(self, error: &CallError, ending: &Ending) -> EventKind {
        let tool_name = self.recorded_name();
        if ending.is_suspended() {
            return EventKind::Suspended { tool_name };
        }
        let (queue_ms, duration_ms) = times_ms(ending);
        let mut failure = Failure::new(tool_name, error, queue_ms, duration_ms);
        (failure.dedupe, failure.edited) = (ending.dedupe, ending.edited().is_some());
        match error.kind.terminal_event() {
            TerminalEvent::InputInvalid if !ending.has_run() => EventKind::InputInvalid(failure),
            TerminalEvent::Denied if !ending.has_run() => EventKind::Denied(failure),
            _ => EventKind::Failed(failure),
        }
    }
}

/// The event of a call that ended with an output of this size.
fn completed(
    ending: &Ending,
    tool_name: Arc<str>,
    bytes: usize,
    details: Option<Box<CallDetails>>,
) -> EventKind {
    let (queue_ms, duration_ms) = times_ms(ending);
    EventKind::Completed {
        tool_name,
        duration_ms,
        queue_ms,
        bytes,
        dedupe: ending.dedupe,
        sandbox: ending.sandbox,
        cancel_requested: ending.cancel_requested,
        edited: ending.edited().is_some(),
        details,
    }
}

/// How long a call has waited, and run.
fn times_ms(ending: &Ending) -> (u64, u64) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (millis(ending.queued.into()), millis(ending.ran.into()))
}
