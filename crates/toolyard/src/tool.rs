//! Tools: the registered ones, their schemas, and what guards each of them.
//!
//! ```text
//!   registry ──► rules in force { tools, policy } ──► entry { spec, schema, factory, guard }
//!                                                       guard { breakers, retry budget, rate line, zombies }
//! ```

mod bounds;
mod breaker;
mod entry;
mod guard;
mod layers;
mod lengthy;
mod name;
pub(crate) mod rate;
mod registry;
pub(crate) mod retry;
mod rules;
mod schema;
mod taken;
mod tool_fn;

pub use bounds::{Argument, IntoOutput, IntoTool, IntoToolError};
#[doc(hidden)]
pub use bounds::{error, is_argument};
pub(crate) use breaker::{SharedBreaker, Transition};
pub use entry::ToolEntry;
pub(crate) use guard::{BreakerMove, Guards, MoveOf, Policies, SandboxBreaker, Slots, Verdicts};
pub(crate) use layers::{LayerRefusal, Layers};
pub(crate) use lengthy::Lengthy;
pub(crate) use rate::{TakeResult, TooLong};
pub(crate) use registry::Table;
pub use registry::{RegisterError, Registry};
pub(crate) use retry::{Decision, Ended, Paid, Repeatability, Span};
pub(crate) use rules::{Allowed, PolicyVersion, Rules, RulesInForce, VersionedPolicy};
pub(crate) use schema::{Exhausted, Validated};
pub use schema::{Schema, SchemaError, SchemaWarning};
pub use taken::{Args, State};
pub use tool_fn::tool_fn;
