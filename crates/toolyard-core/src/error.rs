//! How a call can fail: the closed set of kinds, the error a caller gets, and the error a tool returns.
//!
//! ```text
//!   Tool::execute ──► ToolError ──┐
//!   gate, pools, timeouts ────────┴──► CallError { ErrorKind, Effect, advice … } ──► Outcome
//!                                           └─ reaction(), and the older vocabularies
//! ```

mod call_error;
mod for_model;
mod kind;
mod reaction;
mod result_ext;
mod tool_error;
mod vocabulary;

pub use call_error::{CallError, Effect, Reason, RetryStopped, ValidationError};
pub use for_model::ForModel;
pub use kind::{BreakerVerdict, ErrorKind, Ran, TerminalEvent, UnknownKind};
pub use reaction::Reaction;
pub use result_ext::ResultExt;
pub use tool_error::{ToolError, ToolErrorKind};
pub use vocabulary::{OldClass, OldKind, Slug};
