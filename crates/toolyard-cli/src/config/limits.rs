//! `[limits]`: how much memory results take, and how long the validation of arguments may.

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
    if let Some(within) = section.duration("validation_timeout") {
        limits.validation_timeout = within;
    }
    section.finish();
    limits
}
