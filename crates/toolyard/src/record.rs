//! What is told of calls: events to sinks and writers, and spans.

mod events;
pub mod telemetry;

pub(crate) use events::{EventBus, EventPlace, Publisher, Queue, Sequence};
pub use events::{EventSink, EventWriter, Received, Subscription};
pub(crate) use telemetry::{
    AGENT_ID, ATTEMPTS, BATCH, CONVERSATION_ID, Content, DEDUPE, ERROR_TYPE, EXECUTE_TOOL, FUNCTION,
    OPERATION_NAME, OTEL_KIND, OTEL_NAME, OTEL_STATUS_CODE, OpenSpan, Parent, QUEUE_DURATION, TARGET,
    TOOL_CALL_ARGUMENTS, TOOL_CALL_ID, TOOL_CALL_RESULT, TOOL_DESCRIPTION, TOOL_NAME, TOOL_TYPE, TURN,
    UNKNOWN_TOOL,
};
