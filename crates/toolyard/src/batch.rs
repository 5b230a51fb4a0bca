//! One batch: its calls are routed, its runs execute in order, and its results come back in call order.
//!
//! ```text
//!   calls      R1     R2     S1     C1     C2     ??      R3
//!   routing    read   read   serial conc.  conc.  short   read        router: pure
//!   runs      [ 0           ][ 1  ][ 2          ][ 3    ][ 4 ]
//!   time      R1∥R2 ───────► S1 ─► C1∥C2 ──────────────► R3           driver: run k+1 begins when
//!                                                                     all of run k is quiescent (CL-3)
//! ```

mod checks;
mod driver;
mod early;
mod intake;
mod nested;
mod plan;
mod results;
mod router;
mod scope;
mod stream;
mod taken_up;

pub(crate) use intake::{Dispatch, Order, Origin, Watch};
pub(crate) use nested::dispatch_nested;
pub(crate) use plan::plan;
pub use plan::{Plan, PlannedCall, PlannedRun};
pub use stream::{CallEnds, DrivenBatch, OpenBatch, Outcomes};
pub(crate) use stream::{Owner, StreamAnswers, StreamCalls};
pub(crate) use taken_up::{Fate, TakenUp, is_interrupted};
