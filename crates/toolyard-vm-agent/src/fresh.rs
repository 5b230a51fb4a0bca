//! What every restored machine has of its own: the time, and random numbers. Machines that are restored from one snapshot
//! would have the same random numbers: the kernel takes what is written to it into account a second or more later, unless
//! it is told to at once.

use linux_crng_ioctl::ioctl::{add_randomness_to_kernel, force_kernel_crng_reseed};
use rustix::time::{ClockId, Timespec, clock_settime};
use std::io;

/// Sets the clock, and begins the random numbers anew.
pub(crate) fn begin(time_ns: u64, entropy: &[u8]) -> io::Result<()> {
    let (seconds, nanoseconds) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let time = Timespec {
        tv_sec: i64::try_from(seconds).map_err(io::Error::other)?,
        tv_nsec: i64::try_from(nanoseconds).map_err(io::Error::other)?,
    };
    clock_settime(ClockId::Realtime, time)?;
    let bits = u32::try_from(entropy.len() * 8).map_err(io::Error::other)?;
    add_randomness_to_kernel(entropy, bits).and_then(|()| force_kernel_crng_reseed()).map_err(random)
}

fn random(why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the kernel's random numbers: {why}"))
}
