//! The contract between Toolyard and tools that are programs of any language (SB-2).
//!
//! ```text
//!                 ┌───────────────────────────── a program ─────────────────────────────┐
//!   Given ──────► │ standard input: one JSON document, the arguments, then its end      │
//!     variables ─►│ TOOLYARD_CALL_ID, _TOOL, _ATTEMPT, _IDEMPOTENCY_KEY, _DEADLINE_MS   │
//!                 │ standard output: the result, text or one JSON document              │ ──► Ended ──► result
//!                 │ standard error: lines, streamed while it runs; the last go in errors│
//!                 │ exit code: 0 success, 75 try again later, others a failure          │
//!                 └─────────────────────────────────────────────────────────────────────┘
//!   Given::request ─► POST, the same as one document ─► a service ─► status and body ──► Answered ──► result
//! ```
//!
//! This crate starts nothing and waits for nothing: it makes what a program is given, and reads what it gave back.
//! Whoever runs it, as a process, in a virtual machine or over a network, does so between the two.
//!
//! # Examples
//! ```
//! use serde_json::json;
//! use toolyard_core::{ContextParts, OutputKind, ToolContext};
//! use toolyard_program::{Ended, Exit, Given, Kept};
//! # use tokio::time::Instant;
//!
//! let cx = ToolContext::new(ContextParts::detached("word_count"));
//! let arguments = json!({"text": "so much depends"});
//! let given = Given::new(&arguments, &cx, Instant::now());
//! assert_eq!(given.document(), br#"{"text":"so much depends"}"#);
//!
//! // … the program runs, and has printed this:
//! let ended = Ended { exit: Exit::Code(0), output: Kept::whole("3\n"), errors: String::new() };
//! assert_eq!(ended.result(OutputKind::Text).unwrap().to_text(), "3\n");
//! ```

mod answered;
mod ended;
mod given;
mod output;
mod transient;

pub use answered::Answered;
pub use ended::{Ended, Exit};
pub use given::{Given, PREFIX};
pub use output::Kept;
pub use transient::TRY_AGAIN;
