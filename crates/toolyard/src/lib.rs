#![doc = include_str!("../README.md")]

#[macro_use]
mod faulty;

// The recorder shared with the tests of whole engines refers to this crate by its name.
#[cfg(test)]
extern crate self as toolyard;

mod admission;
mod agent;
mod attempt;
mod batch;
mod breaker;
mod budget;
mod chance;
mod clock;
mod config;
mod desk;
mod engine;
mod events;
#[cfg(toolyard_faults)]
#[doc(hidden)]
pub mod fault;
mod gate;
mod guard;
mod keys;
mod nesting;
mod pool;
mod rate;
mod redact;
mod registry;
mod retry;
mod session;
mod tasks;
pub mod telemetry;
mod tool_fn;
mod unwind;

pub use attempt::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub use batch::{OpenBatch, Plan, PlannedCall, PlannedRun};
pub use clock::Clock;
pub use config::{Budgets, Drain, FORK_DEPTH_MAX, Limits, OnSerialFailure, PoolWidths, ToolConfig};
pub use desk::{AnswerError, ApprovalDesk};
pub use engine::{
    BreakerOf, BreakerStatus, BuildError, DrainReport, Engine, EngineBuilder, EngineStatus, Gauges,
};
pub use events::{EventSink, EventWriter, Received, Subscription};
pub use pool::{PoolError, PoolState, PoolStatus};
pub use redact::{Redactor, SecretError};
pub use registry::{RegisterError, Registry, Schema, SchemaError, SchemaWarning, ToolEntry};
pub use session::{ForkError, ForkPolicy, Priority, Session, SessionOptions, SubAgents, Turn};
pub use tasks::{Blocking, BlockingThreads, Spawner};
pub use tool_fn::tool_fn;
pub use toolyard_core::*;

/// The parts of an [`EngineStatus`]: who waits, and for what.
pub mod status {
    pub use crate::engine::{Bound, Holder, HolderState, Missing, Waiting, Who};
}
