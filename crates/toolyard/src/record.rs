//! What is told of calls: events to sinks and writers, spans, and records to whoever makes them durable.

mod events;
mod reconciler;
mod recorder;
pub mod telemetry;

pub(crate) use events::{EventBus, EventPlace, Publisher, Queue, Sequence, When};
pub use events::{EventSink, EventWriter, Received, Subscription};
pub use reconciler::Reconciler;
pub use recorder::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, CallPlace, CancelRecord, Cancelled, CloseRecord,
    Durable, EndRecord, ForkRecord, MemoryPlace, MemoryRecord, MemoryRecorder, OpenTurn, Pace, Past,
    PastAgent, PastAttempt, PastBatch, PastCall, PastEnd, PastKey, PastKeyEnd, PastKeyState, PastQuestion,
    PastRequest, PastSession, PastTurn, PushRecord, QuestionRecord, RecordError, Recorder, Recovered,
    ResumeRecord, SessionRecord, SessionTerms, VerdictRecord,
};
pub(crate) use recorder::{Foundation, Pending, Recording};
pub(crate) use telemetry::{
    AGENT_ID, ATTEMPTS, BATCH, CONVERSATION_ID, Content, DEDUPE, ERROR_TYPE, EXECUTE_TOOL, FUNCTION,
    OPERATION_NAME, OTEL_KIND, OTEL_NAME, OTEL_STATUS_CODE, OpenSpan, Parent, QUEUE_DURATION, TARGET,
    TOOL_CALL_ARGUMENTS, TOOL_CALL_ID, TOOL_CALL_RESULT, TOOL_DESCRIPTION, TOOL_NAME, TOOL_TYPE, TURN,
    UNKNOWN_TOOL,
};
