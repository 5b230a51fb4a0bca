//! How far the processor's cores are from each other: the time in which a line of memory goes to another core and back.
//!
//! A virtual machine does not choose where its cores are. They may share a cache, and a while later they do not: then
//! whatever two threads both write costs a multiple, and so does a server, without a change of its own. Figures of two
//! runs compare only if their cores were equally far apart.

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock of the machine")]

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// For how long the line is sent forth and back.
const TIME: Duration = Duration::from_millis(20);

/// How many round trips are timed together.
const TRIPS: u32 = 50;

/// The least time of a round trip between the first two cores that this process may use, in nanoseconds; `None` if it
/// has one. The least, because other programs may run on either core meanwhile. Takes 20 ms.
///
/// # Errors
/// What the system says, if it does not tell which cores the process may use.
pub fn round_trip_ns() -> io::Result<Option<f64>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
    let Some((here, there)) = cores.next().zip(cores.next()) else { return Ok(None) };
    let (is_there, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = stay_on(there); // if it may not, the figure is larger
            while !has_ended.load(Ordering::Relaxed) {
                if is_there.load(Ordering::Acquire) {
                    is_there.store(false, Ordering::Release);
                }
            }
        });
        // A thread of its own, whose core is of no concern to the others.
        let sender = scope.spawn(|| {
            let _ = stay_on(here);
            let (begun, mut least) = (Instant::now(), Duration::MAX);
            while begun.elapsed() < TIME {
                least = least.min(trips(&is_there));
            }
            has_ended.store(true, Ordering::Relaxed);
            least
        });
        let least = sender.join().map_err(|_| io::Error::other("a thread has panicked"))?;
        Ok(Some(least.as_nanos() as f64 / f64::from(TRIPS)))
    })
}

fn trips(is_there: &AtomicBool) -> Duration {
    let begun = Instant::now();
    for _ in 0..TRIPS {
        is_there.store(true, Ordering::Release);
        while is_there.load(Ordering::Acquire) {}
    }
    begun.elapsed()
}

fn stay_on(core: usize) -> Result<(), nix::Error> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &cores)
}
