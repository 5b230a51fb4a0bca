//! The limits that the sandbox keeps.

use super::MICRO_VM;
use std::num::NonZeroU32;
use toolyard::SandboxError;
use toolyard_core::ResourceLimits;

/// The memory of the machine for a call with these limits, in MiB: the largest size within them, or the first if there
/// is none. A machine has less to give than its memory, and no process in it can have more.
///
/// # Errors
/// [`SandboxError::Unenforceable`] for the first limit that it cannot keep: never weaker than granted (SB-4).
pub(super) fn memory(limits: &ResourceLimits, sizes: &[NonZeroU32]) -> Result<NonZeroU32, SandboxError> {
    let refused = |limit| SandboxError::Unenforceable { sandbox: MICRO_VM, limit };
    if let Some(limit) = limits.kept_by_sandboxes().find(|limit| !is_kept(limit)) {
        return Err(refused(limit));
    }
    let first = sizes.first().copied().ok_or_else(|| refused("memory"))?;
    let Some(most) = limits.memory.into_iter().chain(limits.memory_per_process).min() else {
        return Ok(first);
    };
    let within = sizes.iter().filter(|size| u64::from(size.get()) << 20 <= most);
    within.max().copied().ok_or_else(|| refused("memory"))
}

/// Whether this sandbox keeps a limit, if there is a size for it.
pub(super) fn is_kept(limit: &str) -> bool {
    ["memory", "memory per process"].contains(&limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SIZES: [NonZeroU32; 3] =
        [NonZeroU32::new(256).unwrap(), NonZeroU32::new(128).unwrap(), NonZeroU32::new(512).unwrap()];

    /// SB-4: the largest size within the limit is taken, and less than the least cannot be kept.
    #[test]
    fn the_largest_size_within_the_limit_is_taken() {
        let mut limits = ResourceLimits::unlimited();
        assert_eq!(memory(&limits, &SIZES).unwrap().get(), 256);
        limits.memory = Some(600 << 20);
        assert_eq!(memory(&limits, &SIZES).unwrap().get(), 512);
        limits.memory_per_process = Some((512 << 20) - 1);
        assert_eq!(memory(&limits, &SIZES).unwrap().get(), 256);
        limits.memory = Some((128 << 20) - 1);
        let error = memory(&limits, &SIZES).unwrap_err();
        assert_eq!(error.to_string(), "sandbox 'micro_vm' cannot limit memory: the call was not run");
    }

    /// SB-4: a limit that cannot be kept is refused by name.
    #[test]
    fn what_cannot_be_kept_is_refused() {
        let mut limits = ResourceLimits::unlimited();
        limits.cpu_time = Some(Duration::from_secs(1));
        assert!(memory(&limits, &SIZES).unwrap_err().to_string().contains("cannot limit CPU time"));
    }
}
