#![doc = include_str!("../README.md")]

mod agent;
mod batch;
mod budget;
mod call;
mod chance;
mod clock;
mod config;
mod engine;
mod gate;
mod keys;
mod pool;
mod record;
#[cfg(test)]
mod rooms;
mod session;
mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;

pub use batch::{CallEnds, DrivenBatch, OpenBatch, Outcomes, Plan, PlannedCall, PlannedRun};
pub use call::{
    Backend, Execution, Failure, HostBackend, OpenedPath, Reach, ReachedHosts, ReachedPath, Running,
    SandboxError, Stopped, Work,
};
pub use clock::Clock;
pub use config::{
    Budgets, Drain, FORK_DEPTH_MAX, Limits, OnInterrupted, OnSerialFailure, PoolWidths, ToolConfig,
};
pub use engine::{
    AlreadyOpen, BreakerOf, BreakerStatus, BuildError, DrainReport, Engine, EngineBuilder, EngineStatus,
    Gauges,
};
pub use gate::{AnswerError, ApprovalDesk};
pub use pool::{PoolError, PoolState, PoolStatus};
#[doc(inline)]
pub use record::telemetry;
pub use record::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, CallPlace, CancelRecord, Cancelled, CloseRecord,
    Durable, EndRecord, ForkRecord, MemoryPlace, MemoryRecord, MemoryRecorder, OpenTurn, Pace, Past,
    PastAgent, PastAttempt, PastBatch, PastCall, PastEnd, PastKey, PastKeyEnd, PastKeyState, PastQuestion,
    PastRequest, PastSession, PastTurn, PushRecord, QuestionRecord, RecordError, Recorder, Recovered,
    ResumeRecord, SessionRecord, SessionTerms, VerdictRecord,
};
pub use record::{EventSink, EventWriter, Received, Reconciler, Subscription};
pub use session::{
    ForkError, ForkPolicy, Priority, ResumeError, ResumedTurn, Session, SessionCeiling, SessionOptions,
    SubAgents, Turn,
};
pub use tasks::{Blocking, BlockingThreads, Spawner};
pub use tool::{Args, Argument, IntoOutput, IntoTool, IntoToolError, State, tool_fn};
pub use tool::{RegisterError, Registry, Schema, SchemaError, SchemaWarning, ToolEntry};
pub use toolyard_core::*;
pub use toolyard_macros::{tool, tools};
pub use toolyard_redact::{Redactor, SecretError};

/// What the attributes' code needs of other crates.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{error, is_argument};
    pub use schemars;
    pub use serde;
}

/// The parts of an [`EngineStatus`]: who waits, and for what; rates and budgets.
pub mod status {
    pub use crate::engine::{
        Bound, BudgetOf, BudgetStatus, Holder, HolderState, Missing, Quota, RateStatus, Waiting, Who,
    };
}
