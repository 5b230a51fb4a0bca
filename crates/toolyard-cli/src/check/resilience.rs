//! How the calls of each tool survive failures, and what limits them: the effective settings, from whatever source.

use crate::{config::Config, table::Table};
use std::{num::NonZeroU32, time::Duration};
use toolyard::{BreakerPolicy, Budget, Engine, Jitter, KeyConflict, RetryPolicy, ToolSpec, wording::Span};

/// The number of backoff delays that are listed one by one.
const DELAYS_MAX: u32 = 3;

/// The table, with one line per tool.
pub(super) fn table(config: &Config, engine: &Engine) -> Table {
    let heads = ["tool", "attempts", "breaker", "back-end", "rate", "cost", "budget", "grace", "same key"];
    let mut table = Table::new(heads);
    for entry in engine.registry().list() {
        let spec = entry.spec();
        table.row([
            spec.name.clone(),
            attempts(spec, spec.settings.retry.unwrap_or(config.retry)),
            breaker(&spec.settings.breaker.unwrap_or(config.breaker)),
            spec.settings.backend.as_deref().unwrap_or("-").to_owned(),
            spec.settings.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()),
            spec.settings.cost.unwrap_or_default().to_string(),
            budget(spec.settings.budget.unwrap_or_default()),
            spec.settings.timeout_grace.map_or_else(|| "-".to_owned(), |grace| Span(grace).to_string()),
            same_key(spec),
        ]);
    }
    table
}

/// The number of attempts and the delays between them. A tool that must not run twice is retried only if it reports
/// that nothing was changed (RT-1).
fn attempts(spec: &ToolSpec, policy: RetryPolicy) -> String {
    let most = policy.max_attempts();
    // Only one layer retries. For recursive tools that is the layer of their sub-agents (RT-7).
    if most == NonZeroU32::MIN || spec.recursive {
        return "1".to_owned();
    }
    let retries = most.get() - 1;
    let mut delays: Vec<String> = (1..=retries.min(DELAYS_MAX)).map(|retry| delay(&policy, retry)).collect();
    if retries > DELAYS_MAX {
        delays.push(format!("… {}", Span(policy.cap())));
    }
    let only = if spec.is_repeatable() { "" } else { " if unchanged" };
    let is_usual = policy.bucket() == RetryPolicy::default().bucket();
    let bucket = if is_usual { String::new() } else { format!(", bucket {}", policy.bucket()) };
    format!("{most}: {}{only}{bucket}", delays.join(", "))
}

/// The shortest and the longest delay before this retry; the first retry is 1 (RT-2).
fn delay(policy: &RetryPolicy, retry: u32) -> String {
    let step = policy.base().as_secs_f64() * policy.factor().powf(f64::from(retry - 1));
    let longest = match policy.jitter() {
        Jitter::Half => step * 1.5,
        Jitter::Full => step,
    };
    let (base, cap) = (policy.base().as_secs_f64(), policy.cap().as_secs_f64());
    let shortest = match policy.jitter() {
        // Delays still vary at the cap: the step is limited so that the longest delay is the cap.
        Jitter::Half => step.min(base.max(cap / 1.5)),
        Jitter::Full => 0.0,
    };
    range(shortest, longest.min(cap))
}

/// A range of two times in one unit.
fn range(from: f64, to: f64) -> String {
    let in_unit = |unit: f64, name: &str| {
        let digits = |time: f64| (time / unit * 100.0).round() / 100.0;
        let (from, to) = (digits(from), digits(to));
        if from == to { format!("{to}{name}") } else { format!("{from}–{to}{name}") }
    };
    if to < 1.0 { in_unit(1e-3, "ms") } else { in_unit(1.0, "s") }
}

/// What opens the breaker, and for how long (CB-2, CB-4).
fn breaker(policy: &BreakerPolicy) -> String {
    if !policy.is_enabled() {
        return "off".to_owned();
    }
    let row = policy.consecutive().map_or_else(String::new, |row| format!(" or {row} in a row"));
    let (least, share) = (policy.failures_min(), (policy.ratio() * 1000.0).round() / 10.0);
    let (window, open) = (Span(policy.window()), [policy.open_for(), policy.open_max()]);
    let open = open.map(|time: Duration| time.as_secs_f64());
    format!("{least} failed and {share}% in {window}{row}, open {}", range(open[0], open[1]))
}

/// Describes a budget (RT-11).
pub(super) fn budget(budget: Budget) -> String {
    match (budget.calls, budget.cost) {
        (None, None) => "-".to_owned(),
        (Some(calls), None) => format!("{calls} calls"),
        (None, Some(cost)) => format!("cost {cost}"),
        (Some(calls), Some(cost)) => format!("{calls} calls, cost {cost}"),
    }
}

/// What happens to a call with the key of a running one, and whether keys are derived (KT-16).
fn same_key(spec: &ToolSpec) -> String {
    let conflict = match spec.settings.key_conflict.unwrap_or_default() {
        KeyConflict::Join => "join",
        KeyConflict::Fail => "fail",
    };
    format!("{conflict}{}", if spec.derives_key() { ", derived" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn most(attempts: u32) -> RetryPolicy {
        RetryPolicy::default().with_max_attempts(attempts)
    }

    /// RT-1, RT-2, RT-7: the description matches what the engine does.
    #[test]
    fn attempts_are_shown_with_their_delays() {
        let check = |spec: &ToolSpec, policy, expect: &str| assert_eq!(attempts(spec, policy), expect);
        let read = ToolSpec::read("a");
        check(&read, most(3), "3: 100–150ms, 400–600ms");
        check(&read, RetryPolicy::NONE, "1");
        check(&read, most(9), "9: 100–150ms, 400–600ms, 1.6–2.4s, … 10s");
        check(&read, most(3).with_jitter(Jitter::Full), "3: 0–100ms, 0–400ms");
        check(&read, most(2).with_delays(SECOND, 1.0, SECOND), "2: 1s");
        check(&read, most(3).with_delays(SECOND, 4.0, 3 * SECOND), "3: 1–1.5s, 2–3s");
        check(&ToolSpec::write("a"), most(2), "2: 100–150ms if unchanged");
        check(&read, most(2).with_bucket(500), "2: 100–150ms, bucket 500");
        check(&ToolSpec::write("a").idempotent(), most(2), "2: 100–150ms");
        check(&ToolSpec::read("a").recursive(), most(3), "1");
    }

    /// CB-2, CB-4
    #[test]
    fn a_breaker_is_shown_with_what_opens_it() {
        let policy = BreakerPolicy::default();
        assert_eq!(breaker(&policy), "5 failed and 50% in 60s, open 30–300s");
        let touchy = policy.with_consecutive(3).with_ratio(0.333);
        assert_eq!(breaker(&touchy), "5 failed and 33.3% in 60s or 3 in a row, open 30–300s");
        assert_eq!(breaker(&BreakerPolicy::DISABLED), "off");
    }

    /// RT-11
    #[test]
    fn a_budget_is_shown_in_its_units() {
        assert_eq!(budget(Budget::UNLIMITED), "-");
        assert_eq!(budget(Budget::calls(3)), "3 calls");
        assert_eq!(budget(Budget::cost(4)), "cost 4");
        assert_eq!(budget(Budget::calls(3).with_cost(4)), "3 calls, cost 4");
    }
}
