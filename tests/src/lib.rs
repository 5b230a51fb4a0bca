//! Support for the whole-engine tests: tools that follow a script, and a simulation of
//! the whole engine ([`sim`]).
//!
//! ```text
//!   call { "ms": 20, "end": "fail" } ──► Scripted tool ──► Log: start and end of each handler, how many at once
//!   engine ── events ──► Recorder ──► grammar of every call, no gap in seq, one terminal event each
//! ```

mod data;
mod giving;
mod ledger;
mod left;
mod listening;
mod log;
mod scripted;
pub mod sim;

pub use data::data_file;
pub use ledger::{Ledger, Remains};
pub use left::{check_resumed, known_calls, mixed_calls};
pub use listening::listen;
pub use log::Log;
pub use scripted::{Number, Yard, call, keyed, kinds, scripted, shape, tries, yard};
pub use toolyard::testing::{EventRecorder as Recorder, event_faults};
