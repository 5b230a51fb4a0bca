//! The limits that the sandbox keeps.

use super::PROCESS;
use toolyard::SandboxError;
use toolyard_core::ResourceLimits;
use toolyard_process::ProcessLimits;

/// The limits of a grant, as the kernel keeps them for each process.
///
/// # Errors
/// [`SandboxError::Unenforceable`] for the first that it cannot keep: never weaker than granted (SB-4).
pub(super) fn limits(limits: &ResourceLimits) -> Result<ProcessLimits, SandboxError> {
    let unkept = limits.kept_by_sandboxes().find(|limit| !is_kept(limit));
    if let Some(limit) = unkept {
        return Err(SandboxError::Unenforceable { sandbox: PROCESS, limit });
    }
    // A part of a second is one: a limit of none would be no limit.
    let seconds = limits.cpu_time_per_process.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
    Ok(ProcessLimits {
        open_files: limits.open_files.map(u64::from),
        memory_per_process: limits.memory_per_process,
        cpu_seconds_per_process: seconds.map(|seconds| seconds.max(1)),
        processes: limits.processes.map(u64::from),
    })
}

/// Whether this sandbox keeps a limit, on this machine.
pub(crate) fn is_kept(limit: &str) -> bool {
    match limit {
        "open files" | "memory per process" | "CPU time per process" => true,
        "processes" => ProcessLimits::keeps_processes(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// SB-4: a limit that cannot be kept is refused by name.
    #[test]
    fn what_cannot_be_kept_is_refused() {
        let mut bounded = ResourceLimits::unlimited();
        bounded.memory = Some(1);
        let error = limits(&bounded).unwrap_err();
        assert_eq!(error.to_string(), "sandbox 'process' cannot limit memory: the call was not run");
        let mut bounded = ResourceLimits::unlimited();
        bounded.cpu_time = Some(Duration::from_secs(1));
        assert!(limits(&bounded).unwrap_err().to_string().contains("cannot limit CPU time"));
    }

    /// SB-4: what is kept per process is kept as it was granted, and seconds are whole.
    #[test]
    fn what_is_kept_is_what_was_granted() {
        let mut bounded = ResourceLimits::unlimited();
        bounded.open_files = Some(64);
        bounded.memory_per_process = Some(1 << 30);
        bounded.cpu_time_per_process = Some(Duration::from_millis(1001));
        let kept = limits(&bounded).unwrap();
        assert_eq!(
            (kept.open_files, kept.memory_per_process, kept.cpu_seconds_per_process),
            (Some(64), Some(1 << 30), Some(2))
        );
    }
}
