//! Limits that the kernel keeps for each process.

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::io;

/// Limits of a confined program; `None` is no limit. Each holds for every process of it, not for all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessLimits {
    /// Open files of a process at once.
    pub open_files: Option<u64>,
    /// Bytes of address space of a process.
    pub memory_per_process: Option<u64>,
    /// Seconds of CPU time of a process.
    pub cpu_seconds_per_process: Option<u64>,
    /// Processes and threads of its user in its namespace at once. The kernel keeps it for every user but root, of whom
    /// [`keeps_processes`](Self::keeps_processes) tells.
    pub processes: Option<u64>,
}

impl ProcessLimits {
    /// Whether the kernel keeps a limit on processes for the user of this program.
    pub fn keeps_processes() -> bool {
        !rustix::process::geteuid().is_root()
    }

    /// Applies them to this process, and so to all that it starts.
    pub(super) fn apply(&self) -> io::Result<()> {
        let Self { open_files, memory_per_process, cpu_seconds_per_process, processes } = *self;
        let limits = [
            (Resource::Nofile, open_files),
            (Resource::As, memory_per_process),
            (Resource::Cpu, cpu_seconds_per_process),
            // The first process of the namespace is one of them.
            (Resource::Nproc, processes.map(|most| most.saturating_add(1))),
            // A core would be written into what is granted.
            (Resource::Core, Some(0)),
        ];
        for (resource, most) in limits {
            if let Some(most) = most {
                // One second before the kernel kills for CPU time it says why, by a signal of its own.
                let maximum = most.saturating_add(u64::from(resource == Resource::Cpu));
                setrlimit(resource, Rlimit { current: Some(most), maximum: Some(maximum) })?;
            }
        }
        Ok(())
    }
}
