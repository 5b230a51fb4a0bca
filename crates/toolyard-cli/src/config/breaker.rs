//! `[breaker]`, and `breaker` of a tool: when the engine stops calling a tool that fails.

use super::{ConfigError, section::Section};
use toolyard::{BreakerPolicy, PolicyError};

/// Reads the section; missing keys keep their values from `over`.
pub(super) fn read(mut section: Section<'_>, over: BreakerPolicy) -> Result<BreakerPolicy, ConfigError> {
    let enabled = section.boolean("enabled")?.unwrap_or(over.is_enabled());
    let window = section.duration("window")?.unwrap_or(over.window());
    let failures_min = section.small_count("failures_min")?.unwrap_or(over.failures_min());
    let ratio = section.number("ratio")?.unwrap_or(over.ratio());
    let consecutive = section.small_count("consecutive")?.or(over.consecutive());
    let open_for = section.duration("open_for")?.unwrap_or(over.open_for());
    let open_max = section.duration("open_max")?.unwrap_or(over.open_max());
    let jitter = section.number("jitter")?.unwrap_or(over.jitter());
    let policy = over.with_enabled(enabled).with_failures_min(failures_min).with_consecutive(consecutive);
    let checked = || -> Result<BreakerPolicy, PolicyError> {
        policy.with_window(window)?.with_ratio(ratio)?.with_open(open_for, open_max)?.with_jitter(jitter)
    };
    let policy = checked().map_err(|error| section.policy_error(&error, "open_for"))?;
    section.finish()?;
    Ok(policy)
}
