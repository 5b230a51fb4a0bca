//! Tools that are programs, and where their calls run.
//!
//! ```text
//!   [program.NAME] ─► PortableTool ─► a call ─► Tool::program ─► what to run, as data
//!                                       │
//!                                       └─ on the host: started here, with the rights of this program,
//!                                          fed by the contract, ended with all that it starts
//! ```
//!
//! The feature `wasm` adds the sandbox for WebAssembly modules (`WasmSandbox`), and a compiler to build. The
//! feature `micro-vm` adds the sandbox of virtual machines (`VmSandbox`, Linux on x86_64).
//!
//! A portable tool needs no Rust: its [`Program`](toolyard_core::Program) is data, and the contract of
//! [`toolyard_program`] says what it is given and what its answer means (SB-1, SB-2).
//!
//! # Examples
//! A tool that counts words, as a program of the system:
//! ```
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use serde_json::json;
//! use toolyard_core::{Command, ContextParts, Program, ToolContext, ToolFactory, ToolSpec};
//! use toolyard_process::Containment;
//! use toolyard_sandbox::PortableTool;
//!
//! let program = Program::Command(Command::new("/bin/sh").arg("-c").arg("wc -c"));
//! let tool = PortableTool::new(ToolSpec::pure("size"), program).contained(Containment::Group);
//!
//! // What an engine does for each call that runs on the host:
//! let cx = ToolContext::new(ContextParts::detached("size"));
//! let output = tool.create().execute(&json!({"a": 1}), &cx).await.unwrap();
//! assert_eq!(output.to_text().trim(), "7"); // {"a":1}
//! # }
//! # #[cfg(not(unix))] fn main() {}
//! ```

#[cfg(unix)]
mod command;
#[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
mod micro_vm;
#[cfg(any(unix, feature = "wasm"))]
mod printed;
#[cfg(target_os = "linux")]
mod process;
mod remote;
mod sandboxes;
mod tool;
mod ungiven;
#[cfg(any(target_os = "linux", feature = "wasm"))]
mod unwritten;
mod version;
#[cfg(feature = "wasm")]
mod wasm;

#[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
pub use micro_vm::VmSandbox;
#[cfg(target_os = "linux")]
pub use process::{Means, ProcessSandbox};
pub use remote::RemoteSandbox;
pub use sandboxes::Sandboxes;
pub use tool::{FileError, PortableTool};
pub use ungiven::{ungiven, unread};
#[cfg(feature = "wasm")]
pub use wasm::{ModuleError, WasmSandbox};
