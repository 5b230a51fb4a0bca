//! What the engine reports through `tracing` and as metrics. All names are defined here (OB-4).
//!
//! The names follow the current [OpenTelemetry conventions for generative AI][semconv], none of which is stable yet.
//! Names that the conventions do not have start with `dispatch.`.
//!
//! # The span of a call
//!
//! One span, `execute_tool`, lasts from the permits of a call's first attempt to the end of its last,
//! including the waits between them. Its parent is the span in which the batch was dispatched. For calls that a handler makes that is the
//! span of the handler's own call, even if it dispatches from another task. A call without an attempt of its own
//! (refused, joined or replayed) has a span without length, so that a trace shows every call the model made. While
//! nothing listens, a span costs only the check whether anything does.
//!
//! It is the current span wherever the handler runs, so what a handler logs belongs to its call, on a blocking thread
//! too. A blocking handler that was given up keeps the span open until it stops.
//!
//! | field | on | value |
//! |---|---|---|
//! | `otel.name` | all | `execute_tool {tool}`, the span's name for OpenTelemetry |
//! | `otel.kind` | all | `internal` |
//! | `otel.status_code` | failed calls | `ERROR` |
//! | `gen_ai.operation.name` | all | `execute_tool` |
//! | `gen_ai.tool.name` | all | the tool; `_unknown` for a name that no tool has |
//! | `gen_ai.tool.type` | known tools | `function` |
//! | `gen_ai.tool.description` | known tools that have one | the description that the model gets |
//! | `gen_ai.tool.call.id` | all | the call's id |
//! | `gen_ai.conversation.id` | all | the session |
//! | `gen_ai.agent.id` | all | the agent's path in the session |
//! | `gen_ai.tool.call.arguments` | if content is enabled | the arguments, as the model gave them |
//! | `gen_ai.tool.call.result` | if content is enabled | the result that the model gets |
//! | `error.type` | failed calls | the error's [code](crate::ErrorKind::code) |
//! | `dispatch.turn`, `dispatch.batch` | all | their numbers in the session, as in events |
//! | `dispatch.attempts` | all | how often the handler was started for this call |
//! | `dispatch.queue.duration` | calls with an attempt | seconds from ready to the first permits |
//! | `dispatch.dedupe` | joined and replayed calls | `joined`, `replayed` |
//!
//! # Log lines
//!
//! A panic of a handler and an error that its tool did not classify are lines of level ERROR in the span of the call.
//! They have the `tool`; of a panic its message (`panic`), `location` and `backtrace`; of an error its text and those of
//! all its causes (`error`). An abandoned handler is a line of level WARN.
//!
//! # Metrics
//!
//! | metric | kind, unit | of | attributes |
//! |---|---|---|---|
//! | `gen_ai.execute_tool.duration` | histogram, s | calls with an attempt: first permits to end | tool, `error.type` |
//! | `dispatch.queue.duration` | histogram, s | calls with an attempt: ready to first permits | tool |
//! | `dispatch.attempts` | histogram, {attempt} | calls not joined or replayed; 0 if none | tool, `error.type` |
//! | `dispatch.idempotency.replays` | counter, {call} | calls answered with the kept result of another | tool |
//! | `dispatch.permits.in_use` | gauge, {permit} | each pool | `dispatch.pool` |
//! | `dispatch.breaker.state` | gauge, 1 | each breaker: 1 for its state, 0 for the others | tool, `dispatch.backend` or `dispatch.sandbox`, `dispatch.breaker.state` |
//! | `dispatch.events.missed` | counter, {event} | attempts and ends of calls dropped because the queue was full | |
//!
//! The crate `toolyard-otel` derives them from events and [`Gauges`](crate::engine::Gauges), and exports both.
//!
//! [semconv]: https://github.com/open-telemetry/semantic-conventions-genai

mod content;
mod parent;
mod span;

pub(crate) use content::Content;
pub(crate) use parent::Parent;
pub(crate) use span::OpenSpan;

/// The name of a call's span, and of its operation.
pub const EXECUTE_TOOL: &str = "execute_tool";

/// The target of the span, for filters.
pub const TARGET: &str = "toolyard::call";

/// Replaces a name that no tool has, because a model can make up any number of those.
pub const UNKNOWN_TOOL: &str = "_unknown";

/// The type of all tools here: the agent's side runs them.
pub const FUNCTION: &str = "function";

/// The span's name for OpenTelemetry.
pub const OTEL_NAME: &str = "otel.name";
/// The span's kind for OpenTelemetry.
pub const OTEL_KIND: &str = "otel.kind";
/// Whether the call failed, for OpenTelemetry.
pub const OTEL_STATUS_CODE: &str = "otel.status_code";

/// The operation.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The tool.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// The kind of tool.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// The tool's description, as the model gets it.
pub const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
/// The call's id.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// The call's arguments.
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// The call's result.
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
/// The session.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The agent.
pub const AGENT_ID: &str = "gen_ai.agent.id";
/// The code of the error.
pub const ERROR_TYPE: &str = "error.type";

/// The number of the turn.
pub const TURN: &str = "dispatch.turn";
/// The number of the batch.
pub const BATCH: &str = "dispatch.batch";
/// How many attempts the call had: a field and a metric.
pub const ATTEMPTS: &str = "dispatch.attempts";
/// How long the call waited for its permits: a field and a metric.
pub const QUEUE_DURATION: &str = "dispatch.queue.duration";
/// How a call that did not run got another call's result.
pub const DEDUPE: &str = "dispatch.dedupe";

/// The metric of how long calls ran.
pub const EXECUTE_TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
/// The metric of calls answered with the kept result of another.
pub const IDEMPOTENCY_REPLAYS: &str = "dispatch.idempotency.replays";
/// The metric of permits in use.
pub const PERMITS_IN_USE: &str = "dispatch.permits.in_use";
/// The class of a pool.
pub const POOL: &str = "dispatch.pool";
/// The metric of breakers' states, and the attribute that names the state.
pub const BREAKER_STATE: &str = "dispatch.breaker.state";
/// The sandbox of a breaker.
pub const SANDBOX: &str = "dispatch.sandbox";
/// The back-end of a breaker.
pub const BACKEND: &str = "dispatch.backend";
/// The metric of ended calls that were not counted.
pub const EVENTS_MISSED: &str = "dispatch.events.missed";
