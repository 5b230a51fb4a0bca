//! The vocabulary of Toolyard: its data types, and the traits that connect its parts.
//!
//! ```text
//!   Call ──► ToolFactory ──► Tool::execute(&Value, &ToolContext) ──► ToolOutput | ToolError
//!     │          │ ToolSpec                                                  │
//!     └── Batch  └─ RuntimePolicy, Hooks, Approver say whether it may run    ▼
//!                                                             Outcome, one per call; Events on the way
//! ```
//!
//! This crate holds types and traits, and decides nothing that needs a clock, a task or a file. It names
//! `tokio::time::Instant` and `CancellationToken` as types, but starts no runtime and does no I/O.
//! Ids such as `V4` or `CL-2` refer to the rules of behaviour that the engine keeps.

mod approval;
mod call;
mod capability;
mod class;
mod context;
mod digest;
mod elapsed;
pub mod error;
pub mod event;
mod extent;
mod hooks;
mod key;
mod layer;
mod number;
mod outcome;
mod output;
mod plain;
mod policy;
mod program;
pub mod resilience;
mod resources;
mod scope;
mod settings;
pub mod sheet;
mod spec;
mod tool;
mod toolset;
mod usage;
pub mod wording;

pub use approval::{
    Answer, ApprovalParts, ApprovalPattern, ApprovalRequest, Approver, ConfirmationMode, Confirmations,
    Decision, EditRefused, LinkedPath, Preview, Receipt, RequestId, RequestIdError, Showing,
};
pub use call::{Arguments, Batch, Call, CallId, CallTimeout, TimeoutScope};
pub use capability::{Capabilities, FsGrant, FsGrantError, Host, HostError, HostPattern, HostPatternError};
pub use class::{Routing, SideEffects, ToolClass};
pub use context::{CallScope, ContextParts, Dispatching, ToolContext};
pub use digest::{
    AgentTerms, CallDigest, ContentHash, DigestError, DigestScope, LazyDigest, PolicyIdentity, Terms,
};
#[doc(hidden)]
pub use elapsed::Elapsed;
pub use error::{
    CallError, Effect, ErrorKind, Reaction, Reason, ResultExt, RetryStopped, ToolError, ToolErrorKind,
    ValidationError,
};
pub use event::{Event, EventKind};
pub use extent::nests_at_most;
pub use hooks::{Abort, Hooks, NoHooks};
pub use key::{IdempotencyKey, KeyError, canonical_json, write_canonical_json};
pub use layer::{AttemptResult, Layered, Next, ToolLayer};
pub use number::whole_number;
pub use outcome::{Dedupe, Outcome};
#[doc(hidden)]
pub use outcome::{edited, set_edited};
pub use output::{Content, Json, ToolOutput};
pub use plain::{is_plain, json_escape};
pub use policy::{
    AgentPath, AllowAll, Caller, Confinement, Denied, Form, Grant, NoForm, PolicyRules, ResourceLimits, Rule,
    RuntimePolicy, Sandbox, SessionId,
};
pub use program::{
    Command, Module, OutputKind, PROGRAM_OUTPUT_BYTES, Program, ProgramIo, Service, Terminal, Variable,
};
pub use resilience::{
    BreakerPolicy, BreakerState, Budget, Jitter, PolicyError, Rate, RateError, RetryPolicy,
};
pub use resources::Resources;
pub use scope::{FsMode, Opened, PathEscape, PathScope, resolve_by_name};
pub use settings::{HiddenFrom, IntoSetting, KeyConflict, KeySource, LimitScope, SettingError, ToolSettings};
pub use spec::{FsRequirement, Placement, SchemaOrigin, ToolSpec};
pub use tool::{Reconciled, Tool, ToolFactory, from_fn};
pub use toolset::Toolset;
pub use usage::Usage;

/// Makes the `async fn`s of [`Tool`], [`Hooks`] and [`Approver`] usable as trait objects.
pub use async_trait::async_trait;
