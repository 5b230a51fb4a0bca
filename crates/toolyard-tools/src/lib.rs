//! A workspace that file operations cannot leave, and thin tools over it.
//!
//! ```text
//!   a call ──► read_file  list_dir  write_file  patch_file  your own tool
//!                  └──────────┴─────────┴───────────┴────────────┘
//!                                       │ cx.workspace()?
//!                                       ▼
//!   Workspace    read  write  append  exists  list  delete  patch
//!                                       │ name check: an early answer
//!                                       ▼
//!                a directory handle, opened once: operations reach nothing outside it
//! ```
//!
//! The tools are thin: each parses its arguments, asks the [`Workspace`] and formats the answer. The workspace is
//! what confines a call, so your own tools over it are confined just as well. This crate knows nothing of engines,
//! permits or policies. Before a call runs, an engine asks the workspace about the call's paths through
//! [`PathScope`](toolyard_core::PathScope); the handler gets the same workspace through [`WorkspaceContext`].
//!
//! On unix the module `shell` can also give a model a shell.
//!
//! # Examples
//! Your own tool:
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde_json::{Value, json};
//! use toolyard_core::{
//!     ContextParts, FsMode, Resources, Tool, ToolContext, ToolError, ToolErrorKind, ToolFactory, ToolOutput,
//!     ToolSpec, async_trait, from_fn,
//! };
//! use toolyard_tools::{Workspace, WorkspaceContext};
//!
//! struct CountWords;
//!
//! #[async_trait]
//! impl Tool for CountWords {
//!     async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
//!         let path = args["path"].as_str().ok_or_else(|| ToolError::invalid_input("path is missing"))?;
//!         // `?` keeps the workspace's own message for the model, and the class of an escape.
//!         let text = cx.workspace()?.read(path)?;
//!         Ok(json!({"words": text.split_whitespace().count()}).into())
//!     }
//! }
//!
//! let spec = ToolSpec::read("count_words").requires_fs(FsMode::Read, "path").blocking();
//! let factory = from_fn(spec, || CountWords);
//!
//! // What an engine does for each call:
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path();
//! let workspace = Workspace::open(root)?;
//! workspace.write("poem.txt", "so much depends upon")?;
//! let mut parts = ContextParts::detached("count_words");
//! parts.resources = Resources::new().with(workspace).into();
//! let cx = ToolContext::new(parts);
//!
//! let counted = factory.create().execute(&json!({"path": "poem.txt"}), &cx).await;
//! assert_eq!(counted.map(|output| output.to_text()).ok(), Some(r#"{"words":4}"#.to_owned()));
//!
//! let refused = factory.create().execute(&json!({"path": "../poem.txt"}), &cx).await;
//! assert_eq!(refused.map_err(|error| error.kind()), Err(ToolErrorKind::PermissionDenied));
//! # Ok(()) }
//! ```

mod context;
mod error;
mod one_line;
#[cfg(unix)]
pub mod shell;
mod tools;
mod toolset;
mod workspace;

pub use context::WorkspaceContext;
pub use error::{RootError, WorkspaceError};
pub use tools::{BUILTIN, READ_FILE_BYTES_MAX, READ_FILE_LINES_MAX, builtin, workspace_tools};
pub use toolset::workspace;
pub use workspace::{
    Entry, EntryKind, LIST_ENTRIES_MAX, Listing, NEARBY_ENTRIES_MAX, NEARBY_NAMES_MAX, Nearby,
    PATH_BYTES_MAX, READ_BYTES_MAX, WRITE_BYTES_MAX, Workspace,
};
