//! WebAssembly modules as programs: compiled once, run in bounds, each call in an instance of its own.
//!
//! ```text
//!   bytes ─► Runtime::load ─► Module ─► Module::run(Run) ─► a fresh store ─► Ended
//!              compiled once             │                   │  the guest: standard input, two outputs,
//!              (or from the cache)       │                   │  arguments, variables, clocks, random numbers,
//!                                        │                   │  the directories that were opened for it
//!                                        └─ Limits ──────────┴─ wall time, CPU time, memory, open files, output
//! ```
//!
//! A module is a command of WASI preview 1 (it exports `_start`) or a component of preview 2 (`wasi:cli/command`). It
//! knows nothing of this process but what its `Run` says: no variable is inherited, no directory is open that was not
//! named, and there is no network: sockets cannot be made, nor names looked up.
//!
//! # What bounds a call
//! - **Time.** A module looks at a counter in each loop and at each call, which one thread per `Runtime` raises every
//!   10 ms while calls run. So a call that spins hands its thread back at least that often, and can be stopped there; one
//!   that waits can be stopped at once.
//! - **Memory** is counted when it grows, exactly: the module's own, with its tables.
//! - **Open files** and all else that the host holds for the guest have one table, of 64 entries unless set.
//! - **Output** is kept at both ends and counted; a module that prints more than `OUTPUT_BYTES_MAX` is ended.
//! - **The stack**: a recursion without end is a trap, *call stack exhausted*.
//!
//! # What is left when a call ends
//! Nothing of the guest: its memory and its files are closed when `Module::run` is done or its future is dropped. An
//! operation on a file that the system is working on at that moment (one `read`, one `write`) is finished by the system.
//!
//! # Features
//! All of this is in the feature `runtime`, because a compiler takes minutes to build; without it the crate is empty.
//!
//! # Examples
//! ```
//! # #[cfg(feature = "runtime")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolyard_wasm::{End, Run, Runtime, RuntimeOptions};
//!
//! let runtime = Runtime::new(RuntimeOptions::default())?;
//! # let echo = toolyard_test_modules::assemble(toolyard_test_modules::ECHO);
//! let module = runtime.load(&echo)?; // prints what it reads
//! let ended = module.run(Run::new().input("hello")).await?;
//! assert_eq!(ended.end, End::Exited(0));
//! assert_eq!(ended.output.into_text(), "hello");
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))] fn main() {}
//! ```
#![cfg(feature = "runtime")]

mod call;
mod cpu;
mod directory;
mod ended;
mod guest;
mod memory;
mod module;
mod output;
mod run;
mod runtime;
mod ticker;

pub use directory::Directory;
pub use ended::{Broken, End, Ended, Limit};
pub use module::{LoadError, Module};
pub use output::OUTPUT_BYTES_MAX;
pub use run::{Limits, OPEN_FILES, Run};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
