//! The span of a call: how it starts, what is recorded at the call's end, and who runs in it.

use crate::{
    call::{
        ending::Ending,
        in_flight::{CallRef, InFlight},
    },
    record::{
        AGENT_ID, ATTEMPTS, BATCH, CONVERSATION_ID, DEDUPE, ERROR_TYPE, EXECUTE_TOOL, FUNCTION,
        OPERATION_NAME, OTEL_KIND, OTEL_NAME, OTEL_STATUS_CODE, QUEUE_DURATION, TARGET, TOOL_CALL_ARGUMENTS,
        TOOL_CALL_ID, TOOL_CALL_RESULT, TOOL_DESCRIPTION, TOOL_NAME, TOOL_TYPE, TURN,
    },
};
use std::time::Duration;
use tracing::{Span, field::Empty};

/// The span in which a batch is dispatched: the current one, or else that of the dispatching call, because a handler
/// may dispatch from a task without a span.
pub(crate) fn here(caller: Option<&CallRef>) -> Span {
    let current = Span::current();
    match caller {
        Some(call) if current.is_none() => call.at().span_of(),
        _ => current,
    }
}

/// The span of a call whose first attempt starts.
pub(crate) fn of_attempts(call: InFlight<'_>, queued: impl FnOnce() -> Duration) -> Span {
    let span = open(call);
    if !span.is_disabled() {
        span.record(QUEUE_DURATION, queued().as_secs_f64());
        call.keep_span(&span);
    }
    span
}

/// Records a call that ends without an attempt of its own.
pub(crate) fn without_attempt(call: InFlight<'_>, ending: &Ending) {
    let span = open(call);
    if !span.is_disabled() {
        // Attempts of another call are recorded in its own span.
        ended(&span, call, &Ending { attempts: 0, ..ending.clone() });
    }
}

fn open(call: InFlight<'_>) -> Span {
    let InFlight { batch, .. } = call;
    let session = &batch.session;
    tracing::info_span!(
        target: TARGET,
        parent: &batch.parent.span(),
        EXECUTE_TOOL,
        { OTEL_NAME } = format!("{EXECUTE_TOOL} {}", call.recorded_name()),
        { OTEL_KIND } = "internal",
        { OTEL_STATUS_CODE } = Empty,
        { OPERATION_NAME } = EXECUTE_TOOL,
        { TOOL_NAME } = &*call.recorded_name(),
        { TOOL_TYPE } = call.is_known().then_some(FUNCTION),
        { TOOL_DESCRIPTION } = call.cleared().map(|work| &*work.entry.spec().description).filter(|text| !text.is_empty()).map(|text| session.engine.content.description(text)).as_deref(),
        { TOOL_CALL_ID } = call.call().id.as_str(),
        { TOOL_CALL_ARGUMENTS } = session.engine.content.arguments(&call.call().arguments),
        { TOOL_CALL_RESULT } = Empty,
        { CONVERSATION_ID } = session.id.as_str(),
        { AGENT_ID } = %session.path,
        { TURN } = signed(batch.turn),
        { BATCH } = signed(batch.number()),
        { ATTEMPTS } = Empty,
        { QUEUE_DURATION } = Empty,
        { DEDUPE } = Empty,
        { ERROR_TYPE } = Empty,
    )
}

/// Records how a call ended.
pub(crate) fn ended(span: &Span, call: InFlight<'_>, ending: &Ending) {
    if span.is_disabled() {
        return;
    }
    span.record(ATTEMPTS, i64::from(ending.attempts));
    if let Some(dedupe) = ending.dedupe.shared_as() {
        span.record(DEDUPE, dedupe);
    }
    if let Err(error) = &ending.status {
        span.record(ERROR_TYPE, error.kind.code());
        span.record(OTEL_STATUS_CODE, "ERROR");
    }
    if let Some(result) = call.engine().content.result(&ending.status) {
        span.record(TOOL_CALL_RESULT, result);
    }
    // Subscribers take the last exit from a span as its end.
    drop(span.enter());
}

/// OpenTelemetry has no unsigned numbers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl InFlight<'_> {
    /// Keeps the span in which the handler of this call runs.
    pub(crate) fn keep_span(self, span: &Span) {
        self.slot().make_rare().set_span(Some(span.clone()));
    }

    /// Forgets the span of a handler that is over, and returns it: a span is only closed when nothing holds it.
    #[inline]
    pub(crate) fn forget_span(self) -> Option<Span> {
        self.slot().rare()?.set_span(None).map(|span| *span)
    }

    /// The span of a running call; none if no subscriber listens.
    pub(crate) fn span_of(self) -> Span {
        self.slot().rare().map_or_else(Span::none, |rare| rare.span())
    }
}
