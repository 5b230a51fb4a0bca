//! One batch: its calls are routed, its runs execute in order, and its results come back in call order.
//!
//! ```text
//!   calls      R1     R2     S1     C1     C2     ??      R3
//!   routing    read   read   serial conc.  conc.  short   read        router: pure
//!   runs      [ 0           ][ 1  ][ 2          ][ 3    ][ 4 ]
//!   time      R1∥R2 ───────► S1 ─► C1∥C2 ──────────────► R3           driver: run k+1 begins when
//!                                                                     all of run k is quiescent (CL-3)
//! ```

mod acquire;
mod admit;
mod again;
mod allowed;
mod approval;
mod aside;
mod bell;
mod checks;
mod deadline;
mod draws;
mod driver;
mod flight;
mod follow;
mod holding;
mod ids;
mod intake;
mod ledger;
mod plan;
mod progress;
mod question;
mod quiescence;
mod recall;
mod results;
mod room;
mod router;
mod run;
mod scope;
mod shown;
mod sinks;
pub(crate) mod span;
mod state;
mod stop;
mod stream;

pub(crate) use admit::ZOMBIE_WAIT;
pub(crate) use deadline::earlier;
pub(crate) use flight::Flight;
pub(crate) use intake::{Dispatch, Order, Origin, Watch};
pub(crate) use ledger::Ending;
pub(crate) use plan::plan;
pub use plan::{Plan, PlannedCall, PlannedRun};
pub(crate) use progress::{Bid, Progress};
pub(crate) use state::{BatchState, TurnOf, vanished};
pub(crate) use stop::Stop;
pub use stream::OpenBatch;
