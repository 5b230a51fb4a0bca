//! The host's side: what starts machines.

mod accel;
mod call;
mod cpio;
mod elf;
mod ended;
mod heard;
mod initramfs;
mod lines;
mod machine;
mod machines;
mod parts;
mod qemu;
mod qmp;
mod snapshot;
mod store;

pub use accel::{Accel, NoKvm};
pub use call::{Call, CallFile};
pub use ended::{Broken, Change, End, Ended};
pub use heard::OUTPUT_BYTES_MAX;
pub use machines::{Machines, Ready};
pub use parts::{Missing, Parts, Wanted};
