//! The limits that the sandbox keeps.

use super::WASM;
use toolyard::SandboxError;
use toolyard_core::ResourceLimits;
use toolyard_wasm::Limits;

/// The limits of a grant, of which wall time and output are kept by whoever waits for the call. A module is one process,
/// so what one process may have is what all may have; it can start none.
///
/// # Errors
/// [`SandboxError::Unenforceable`] for the first that it cannot keep: never weaker than granted (SB-4).
pub(super) fn limits(limits: &ResourceLimits) -> Result<Limits, SandboxError> {
    if let Some(limit) = limits.kept_by_sandboxes().find(|limit| !is_kept(limit)) {
        return Err(SandboxError::Unenforceable { sandbox: WASM, limit });
    }
    let mut kept = Limits::default();
    kept.memory = least(limits.memory, limits.memory_per_process);
    kept.cpu_time = least(limits.cpu_time, limits.cpu_time_per_process);
    kept.open_files = limits.open_files;
    Ok(kept)
}

/// Whether this sandbox keeps a limit.
pub(super) fn is_kept(limit: &str) -> bool {
    let kept =
        ["memory", "memory per process", "CPU time", "CPU time per process", "processes", "open files"];
    kept.contains(&limit)
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// SB-4: all that a grant can limit is kept, and the narrower of two that mean the same here.
    #[test]
    fn all_limits_are_kept() {
        let mut bounded = ResourceLimits::unlimited();
        (bounded.memory, bounded.memory_per_process) = (Some(2), Some(1));
        (bounded.cpu_time, bounded.cpu_time_per_process) = (Some(Duration::from_secs(1)), None);
        (bounded.processes, bounded.open_files) = (Some(1), Some(8));
        let kept = limits(&bounded).unwrap();
        assert_eq!(
            (kept.memory, kept.cpu_time, kept.open_files, kept.wall_time),
            (Some(1), Some(Duration::from_secs(1)), Some(8), None)
        );
    }
}
