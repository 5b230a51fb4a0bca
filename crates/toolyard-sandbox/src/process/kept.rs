//! The limits that the sandbox keeps: of each process, and, in groups, of all processes together.

use super::Means;
use std::time::Duration;
use toolyard::SandboxError;
use toolyard_core::ResourceLimits;
use toolyard_process::{Cgroup, GroupLimits, Limit, ProcessLimits};

/// What a limit of all processes together needs.
const NEEDS_A_GROUP: &str = "it needs a cgroup";

/// The limits of a grant, as the kernel keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) each: ProcessLimits,
    pub(super) together: GroupLimits,
}

/// The limits of a grant, as the kernel keeps them for each process and for a group of them.
///
/// # Errors
/// [`SandboxError::Unenforceable`] for the first that it cannot keep: never weaker than granted (SB-4).
pub(super) fn limits(
    means: Means,
    limits: &ResourceLimits,
    cgroup: Option<&Cgroup>,
) -> Result<Kept, SandboxError> {
    let unkept = limits.kept_by_sandboxes().find(|limit| lacking(means, limit, cgroup).is_some());
    if let Some(limit) = unkept {
        return Err(SandboxError::Unenforceable { sandbox: means.sandbox(), limit });
    }
    let processes = limits.processes.map(u64::from);
    // A group says which limit was reached, and keeps it for root too.
    let counts = cgroup.is_some_and(|cgroup| cgroup.lacks(Limit::Processes).is_none());
    let [each_processes, processes] = if counts { [None, processes] } else { [processes, None] };
    Ok(Kept {
        each: ProcessLimits {
            open_files: limits.open_files.map(u64::from),
            memory_per_process: limits.memory_per_process,
            cpu_seconds_per_process: limits.cpu_time_per_process.map(seconds),
            processes: each_processes,
        },
        together: GroupLimits { memory: limits.memory, cpu_time: limits.cpu_time, processes },
    })
}

/// A part of a second is one: a limit of none would be no limit.
fn seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// Why this sandbox does not keep a limit on this machine, with this group; `None` if it does.
pub(crate) fn lacking<'a>(means: Means, limit: &str, cgroup: Option<&'a Cgroup>) -> Option<&'a str> {
    let together = |limit| cgroup.map_or(Some(NEEDS_A_GROUP), |cgroup| cgroup.lacks(limit));
    match limit {
        "open files" | "memory per process" | "CPU time per process" => None,
        "memory" => together(Limit::Memory),
        "CPU time" => together(Limit::CpuTime),
        "processes" if means == Means::Namespaces && ProcessLimits::keeps_processes() => None,
        "processes" => together(Limit::Processes),
        _ => Some("it is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-4: a limit that cannot be kept is refused by name.
    #[test]
    fn what_cannot_be_kept_is_refused() {
        let mut bounded = ResourceLimits::unlimited();
        bounded.memory = Some(1);
        let error = limits(Means::Namespaces, &bounded, None).unwrap_err();
        assert_eq!(error.to_string(), "sandbox 'process' cannot limit memory: the call was not run");
        let mut bounded = ResourceLimits::unlimited();
        bounded.cpu_time = Some(Duration::from_secs(1));
        assert!(
            limits(Means::Namespaces, &bounded, None)
                .unwrap_err()
                .to_string()
                .contains("cannot limit CPU time")
        );
    }

    /// SB-4: without namespaces a limit on processes would count all those of the user.
    #[test]
    fn without_namespaces_processes_are_not_counted() {
        let mut bounded = ResourceLimits::unlimited();
        bounded.processes = Some(20);
        let error = limits(Means::Landlock, &bounded, None).unwrap_err();
        assert_eq!(error.to_string(), "sandbox 'landlock' cannot limit processes: the call was not run");
        bounded.processes = None;
        bounded.memory_per_process = Some(1 << 30);
        assert_eq!(limits(Means::Landlock, &bounded, None), limits(Means::Namespaces, &bounded, None));
    }

    /// SB-4: what is kept per process is kept as it was granted, and seconds are whole.
    #[test]
    fn what_is_kept_is_what_was_granted() {
        let mut bounded = ResourceLimits::unlimited();
        bounded.open_files = Some(64);
        bounded.memory_per_process = Some(1 << 30);
        bounded.cpu_time_per_process = Some(Duration::from_millis(1001));
        let Kept { each, together } = limits(Means::Namespaces, &bounded, None).unwrap();
        assert_eq!(
            (each.open_files, each.memory_per_process, each.cpu_seconds_per_process),
            (Some(64), Some(1 << 30), Some(2))
        );
        assert_eq!(together, GroupLimits::default());
    }
}
