//! The engine measured against the least a correct engine could do.
//!
//! ```text
//!   axis     one question, such as: what does each stage cost? (`axes/`)
//!   round    F  engine  inline │ engine  inline  F │ inline  F  engine │ …     one after the other, in turns
//!   sample   one batch size, as many batches as fill about a millisecond
//!   figure   median over the rounds, in nanoseconds a call, and its ratio to the first of its axis in the same run
//! ```
//!
//! Everything runs in one process and in turns, so that other load on the machine affects all contenders alike. Compare
//! the ratios; nanoseconds differ from machine to machine and from hour to hour.
//!
//! `toolyard bench` runs this; `src/bin/guard` counts instructions instead, and `benches/` has the benchmarks that need
//! a process or a crate of their own.

mod axes;
mod axis;
mod contender;
#[cfg(target_os = "linux")]
pub mod cores;
pub mod count;
mod floor;
mod handler;
mod listened;
mod measure;
mod report;
mod response;
mod yard;

pub use axis::{AXES, Axis, Building, Unit, WAYS};
pub use contender::{Contender, Contenders, Work};
pub use floor::{Floor, arguments};
pub use handler::Handler;
pub use measure::{Options, measure, measure_axes};
pub use report::{Figure, Machine, Report};
pub use yard::{Yard, engine, spec};
