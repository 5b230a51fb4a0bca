//! `[retry]`, and `retry` of a tool: how failed calls are retried.

use super::section::Section;
use toolyard::{Jitter, RetryPolicy};

const JITTERS: &[(&str, Jitter)] = &[("half", Jitter::Half), ("full", Jitter::Full)];

/// Reads the section; missing keys keep their values from `over`.
pub(super) fn read(mut section: Section<'_>, over: RetryPolicy) -> RetryPolicy {
    let most = section.small_count("max_attempts").unwrap_or(over.max_attempts());
    let base = section.duration("base").unwrap_or(over.base());
    let factor = section.number("factor").unwrap_or(over.factor());
    let cap = section.duration("cap").unwrap_or(over.cap());
    let jitter = section.choice("jitter", JITTERS).map_or(over.jitter(), |(jitter, _)| jitter);
    let bucket = section.integer("bucket", 20, u32::MAX.into()).and_then(|tokens| u32::try_from(tokens).ok());
    let bucket = bucket.unwrap_or(over.bucket());
    let mut policy = over.with_max_attempts(most.get()).with_jitter(jitter).with_bucket(bucket);
    if section.is_valid() {
        policy = section.checked(policy.with_delays(base, factor, cap).checked(), "base", policy);
    }
    section.finish();
    policy
}
