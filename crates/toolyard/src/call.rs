//! One call, from ready to its result.
//!
//! ```text
//!   ready ──► acquire ──► attempt ──► end         what a call passes; each step says what comes next
//!     │          │           └ failed ─► retry ─► acquire again
//!     │          └ rate, queue: waits, and holds nothing (CC-5)
//!     └ recheck, sinks, keys, hooks
//!
//!   engine ── session ── batch ── slots           what a call is in; only these are shared
//! ```
//!
//! A call is a place in its batch, which is where all of it is kept; `InFlight` is how it is referred to. Where it is in
//! its life is a pure machine (`life.rs`), out of which there is one way (`end.rs`). Order among calls, and the way in
//! and out of a batch, are the room above.

mod acquire;
mod alarms;
mod allowances;
mod announce;
mod approval;
mod attempt;
mod batch;
mod batch_ends;
mod batch_rare;
mod before;
mod cancel;
mod capacity;
mod deadline;
mod driver_waker;
mod end;
mod ending;
mod engine;
mod flight;
mod given;
mod holding;
mod ids;
mod in_flight;
mod leaving;
mod life;
mod nested;
mod past;
mod progress;
mod question;
mod rare;
mod ready;
mod recheck;
mod recording;
mod records;
mod redacted;
mod refusals;
mod reserve;
mod retry;
mod run;
mod session;
mod session_records;
mod sinks;
mod slot;
pub(crate) mod span;
mod stop;
mod stopping;
mod streamed;
mod taken_up;
mod verdict;
mod weak_list;

pub(crate) use attempt::{Attempt, Job, Next, Runners};
pub use attempt::{
    Backend, Execution, Failure, HostBackend, OpenedPath, Reach, ReachedHosts, ReachedPath, Running,
    SandboxError, Stopped, Work,
};
pub(crate) use batch::{Base, BatchState, TurnOf};
pub(crate) use batch_ends::unfinished;
pub(crate) use before::Before;
pub(crate) use ending::Ending;
pub(crate) use engine::EngineCore;
pub(crate) use holding::{BatchHolds, Holding};
pub(crate) use in_flight::{CallGone, CallRef};
pub(crate) use nested::{Entered, Nested};
pub(crate) use recording::Arrival;
pub(crate) use refusals::{
    cancelled_before_error, interrupted_error, predecessor_unknown_error, vanished_error,
};
pub(crate) use run::{Run, Step, index};
pub(crate) use session::{NameTaken, SessionCore};
pub(crate) use slot::{Cleared, Slot};
pub(crate) use stop::Stop;

pub(crate) use weak_list::WeakList;
