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
//! A call is a place in its batch, which is where all of it is kept. Order among calls, and the way in and out of a
//! batch, are the room above.

mod acquire;
mod announce;
mod approval;
mod attempt;
mod batch;
mod batch_ends;
mod bell;
mod cancel;
mod capacity;
mod deadline;
mod end;
mod ending;
mod engine;
mod flight;
mod holding;
mod ids;
mod in_flight;
mod life;
mod nested;
mod progress;
mod question;
mod rare;
mod ready;
mod recheck;
mod redacted;
mod refusals;
mod reserve;
mod retry;
mod run;
mod session;
mod sinks;
mod slot;
pub(crate) mod span;
mod stop;
mod weak_list;

pub(crate) use attempt::{Attempt, Next, Runners};
pub use attempt::{Backend, Execution, HostBackend, Running, SandboxError, Stopped};
pub(crate) use batch::{Base, BatchState, TurnOf, index};
pub(crate) use batch_ends::unfinished;
pub(crate) use ending::Ending;
pub(crate) use engine::EngineCore;
pub(crate) use holding::{BatchHolds, Holding};
pub(crate) use nested::{CallGone, CallRef, Entered, quiescence::Nested};
pub(crate) use ready::ZOMBIE_WAIT;
pub(crate) use refusals::vanished;
pub(crate) use run::{Run, Step};
pub(crate) use session::SessionCore;
pub(crate) use slot::Slot;
pub(crate) use stop::Stop;
pub(crate) use weak_list::WeakList;
