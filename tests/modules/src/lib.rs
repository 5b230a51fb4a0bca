//! WebAssembly modules for the tests: from text, from C, and as components.
//!
//! ```text
//!   text ─► assemble ─┬─► a command of preview 1
//!   C ────► compiled ─┘         └─ component ─► the same as a component of preview 2
//! ```
#![cfg(feature = "assemble")]

mod c;
mod text;

pub use c::{PROGRAM, compiled};
pub use text::{
    ARGUMENTS, Access, CLOCK, DESCRIPTORS, DIVIDE, ECHO, ENVIRONMENT, FLOOD, HOG, LARGE, RECURSE, SLEEP,
    SOCKET, SPIN, command, exit, open, print,
};

/// The binary form of a module's text.
///
/// # Panics
/// For what is no module.
pub fn assemble(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a module of the tests")
}

/// A command of preview 1 as a component of preview 2, by the adapter that wasmtime's authors publish for this.
///
/// # Panics
/// For what is no command.
pub fn component(command: &[u8]) -> Vec<u8> {
    use wasi_preview1_component_adapter_provider::{
        WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as ADAPTER,
    };
    let encoder = wit_component::ComponentEncoder::default().module(command).expect("a command of the tests");
    let mut encoder = encoder.adapter(NAME, ADAPTER).expect("the adapter fits");
    encoder.encode().expect("the command becomes a component")
}
