//! Limits of programs that live long, as the kernel keeps them: of each process, and, in groups, of all together.

use super::{Confinement, ProcessLimits};
use crate::{Cgroup, GroupLimits, LastingLimits, Limit};
use std::io;

/// What a limit of all processes together needs.
const NEEDS_A_GROUP: &str = "it needs a cgroup";

impl Confinement {
    /// Gives a program that lives long its limits, and a group of its own where there are groups.
    ///
    /// # Errors
    /// The first limit that this machine does not keep: never weaker than it is set (SB-4).
    pub fn lasting(self, limits: LastingLimits, cgroup: Option<&Cgroup>) -> io::Result<Self> {
        let (each, together) = kept(limits, cgroup)?;
        let confinement = self.limits(each);
        Ok(match cgroup {
            Some(cgroup) => confinement.cgroup(cgroup, together),
            None => confinement,
        })
    }
}

fn kept(limits: LastingLimits, cgroup: Option<&Cgroup>) -> io::Result<(ProcessLimits, GroupLimits)> {
    let lacking = |limit| cgroup.map_or(Some(NEEDS_A_GROUP), |cgroup| cgroup.lacks(limit));
    let LastingLimits { memory, memory_per_process, processes, open_files } = limits;
    if let Some(why) = memory.and_then(|_| lacking(Limit::Memory)) {
        return Err(refused(Limit::Memory, why));
    }
    let mut each = ProcessLimits {
        open_files: open_files.map(u64::from),
        memory_per_process,
        cpu_seconds_per_process: None,
        processes: None,
    };
    let mut together = GroupLimits { memory, cpu_time: None, processes: None };
    if let Some(most) = processes.map(u64::from) {
        // A group says that the limit was reached, and keeps it for root too.
        match lacking(Limit::Processes) {
            None => together.processes = Some(most),
            Some(_) if ProcessLimits::keeps_processes() => each.processes = Some(most),
            Some(why) => return Err(refused(Limit::Processes, why)),
        }
    }
    Ok((each, together))
}

fn refused(limit: Limit, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("sandbox 'process' cannot limit {limit} ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-4: a limit that cannot be kept is refused by name.
    #[test]
    fn what_cannot_be_kept_is_refused() {
        let memory = LastingLimits { memory: Some(1 << 20), ..LastingLimits::default() };
        let why = kept(memory, None).unwrap_err().to_string();
        assert_eq!(why, "sandbox 'process' cannot limit memory (it needs a cgroup)");
        let processes = LastingLimits { processes: Some(2), ..LastingLimits::default() };
        match kept(processes, None) {
            Ok((each, _)) => assert_eq!((each.processes, ProcessLimits::keeps_processes()), (Some(2), true)),
            Err(why) => {
                assert_eq!(why.to_string(), "sandbox 'process' cannot limit processes (it needs a cgroup)");
                assert!(!ProcessLimits::keeps_processes());
            }
        }
    }

    /// SB-4: what is kept for each process is kept as it is set.
    #[test]
    fn what_is_kept_is_what_was_set() {
        let limits = LastingLimits {
            open_files: Some(64),
            memory_per_process: Some(1 << 30),
            ..LastingLimits::default()
        };
        let (each, together) = kept(limits, None).unwrap();
        assert_eq!((each.open_files, each.memory_per_process), (Some(64), Some(1 << 30)));
        assert_eq!((each.processes, each.cpu_seconds_per_process), (None, None));
        assert_eq!(together, GroupLimits::default());
    }
}
