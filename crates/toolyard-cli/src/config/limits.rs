//! `[limits]`: how much memory results take, how long the validation of arguments may, and how many handlers hold what
//! cannot be had without end.

use super::section::Section;
use toolyard::Limits;

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> Limits {
    let mut limits = Limits::default();
    for (key, bound) in [
        ("results_batch", &mut limits.results_batch_bytes_max),
        ("results_session", &mut limits.results_session_bytes_max),
        ("results_engine", &mut limits.results_engine_bytes_max),
    ] {
        if let Some(bytes) = section.size(key) {
            *bound = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
    }
    for (key, bound) in [
        ("parked", &mut limits.parked_max),
        ("blocking_threads", &mut limits.blocking_threads_max),
        ("parked_blocking", &mut limits.parked_blocking_max),
    ] {
        if let Some(count) = section.count(key) {
            *bound = count.get();
        }
    }
    // Zero forbids calls by handlers.
    if let Some(depth) = section.integer("nested_depth", 0, u32::MAX.into()) {
        limits.nested_depth_max = u32::try_from(depth).unwrap_or(u32::MAX);
    }
    if let Some(within) = section.duration("validation_timeout") {
        limits.validation_timeout = within;
    }
    section.finish();
    limits
}
