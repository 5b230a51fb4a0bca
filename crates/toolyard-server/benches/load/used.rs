//! What a process has used, as its kernel tells.

use crate::linux::Failed;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use std::{fmt, fs};

/// What this process has used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// Processor time of all threads, in user mode and in the kernel, in microseconds.
    pub(crate) cpu_us: i64,
    /// Memory that is resident, in bytes.
    pub(crate) memory: usize,
}

impl Used {
    pub(crate) fn now() -> Result<Self, Failed> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
        let status = fs::read_to_string("/proc/self/status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|text| text.trim().strip_suffix(" kB")).ok_or("no VmRSS")?;
        Ok(Self {
            cpu_us: micros(usage.user_time()) + micros(usage.system_time()),
            memory: kib.parse::<usize>()? * 1024,
        })
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(crate) fn read(line: &str) -> Result<Self, Failed> {
        let (cpu_us, memory) =
            line.trim().split_once(' ').ok_or_else(|| format!("not what was used: '{line}'"))?;
        Ok(Self { cpu_us: cpu_us.parse()?, memory: memory.parse()? })
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cpu_us, self.memory)
    }
}

/// Lets this process, and those that it starts, open as many files as they may.
pub(crate) fn allow_files() -> Result<(), Failed> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
