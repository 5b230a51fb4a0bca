//! Programs in small virtual machines: a machine is booted once, and restored from its snapshot for each call.
//!
//! ```text
//!   once      kernel, initramfs ─► QEMU ─► agent ─ hello ─► snapshot, a file
//!
//!   a call    snapshot ─► QEMU ─► the agent goes on
//!             time, entropy, files, program, input ─────────► agent ─► the program
//!             output, errors, how it ended, files that changed ◄─┘
//!             QEMU is killed
//! ```
//!
//! A machine has one processor, memory of a fixed size, no disk and no network: one serial port leads to it, and what
//! goes over that is [`protocol`]. The agent in it is the program `toolyard-vm-agent`, its first process. QEMU runs under
//! a helper of `toolyard_process`, and is gone with its call.
//!
//! All but the protocol needs the feature `host`, and exists on Linux for x86_64 alone.

pub mod protocol;

#[cfg(all(feature = "host", target_os = "linux", target_arch = "x86_64"))]
mod host;
#[cfg(all(feature = "host", target_os = "linux", target_arch = "x86_64"))]
pub use host::*;
