//! `[breaker]`, and `breaker` of a tool: when the engine stops calling a tool that fails.

use super::section::Section;
use std::num::NonZeroU32;
use toolyard::BreakerPolicy;

/// Reads the section; missing keys keep their values from `over`.
pub(super) fn read(mut section: Section<'_>, over: BreakerPolicy) -> BreakerPolicy {
    let enabled = section.boolean("enabled").unwrap_or(over.is_enabled());
    let window = section.duration("window").unwrap_or(over.window());
    let failures_min = section.small_count("failures_min").unwrap_or(over.failures_min());
    let ratio = section.number("ratio").unwrap_or(over.ratio());
    let consecutive = section.small_count("consecutive").or(over.consecutive());
    let open_for = section.duration("open_for").unwrap_or(over.open_for());
    let open_max = section.duration("open_max").unwrap_or(over.open_max());
    let jitter = section.number("jitter").unwrap_or(over.jitter());
    let mut policy = over
        .with_enabled(enabled)
        .with_failures_min(failures_min.get())
        .with_consecutive(consecutive.map(NonZeroU32::get));
    if section.is_valid() {
        policy = section.checked(policy.with_window(window).checked(), "open_for", policy);
        policy = section.checked(policy.with_ratio(ratio).checked(), "open_for", policy);
        policy = section.checked(policy.with_open(open_for, open_max).checked(), "open_for", policy);
        policy = section.checked(policy.with_jitter(jitter).checked(), "open_for", policy);
    }
    section.finish();
    policy
}
