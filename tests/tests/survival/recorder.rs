//! What must be durable before a call starts, and before its result is given (SM-4).

mod attempts;
mod ends;
mod leaving;
mod order;
mod questions;
mod results;

use super::{SECOND, no_hang};
use futures::future::BoxFuture;
use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, sleep};
use toolyard::{
    Answer, ApprovalRequest, Approver, AttemptRecord, Call, Caller, ConfirmationMode, Confirmations, Drain,
    Durable, Effect, EndRecord, ErrorKind, EventKind, ForkPolicy, Grant, Hooks, MemoryRecord, MemoryRecorder,
    Outcome, Pace, PolicyRules, Reason, Receipt, Recorder, ResourceLimits, Rule, Spawner, ToolContext,
    ToolSpec, async_trait, tool_fn,
};
use toolyard_tests::{Yard, call, kinds, shape, tries, yard};

/// A recorder in which records of these kinds take so long; the others are durable at once.
fn slow<const N: usize>(kinds: [(&'static str, Pace); N]) -> MemoryRecorder {
    MemoryRecorder::paced(move |record| {
        let pace = kinds.iter().find(|(kind, _)| *kind == record.kind());
        pace.map_or(Pace::After(Duration::ZERO), |(_, pace)| *pace)
    })
}

const fn after(seconds: u64) -> Pace {
    Pace::After(Duration::from_secs(seconds))
}

const FAILS: Pace = Pace::Fails(Duration::ZERO);

async fn recorded(recorder: &MemoryRecorder) -> Yard {
    let recorder = recorder.clone();
    yard(|builder, _| builder.recorder(recorder)).await
}

/// Replaces the policy by one with this rule alone.
async fn after_a_second(yard: &Yard, rule: Rule) {
    sleep(SECOND).await;
    yard.engine.set_policy(PolicyRules::new(rule));
}

/// A grant that is not the one of any other policy here.
fn within_time(limit: Duration) -> Rule {
    let mut limits = ResourceLimits::unlimited();
    limits.wall_time = Some(limit);
    Rule::Allow(Grant { limits, ..Grant::own_form() })
}

fn kinds_of(records: &[MemoryRecord]) -> Vec<&'static str> {
    records.iter().map(MemoryRecord::kind).collect()
}

fn keyed(id: &str, ms: u64, end: &str) -> Call {
    let mut call = call(id, "concurrent", ms, end);
    call.idempotency_key = Some("k".into());
    call
}

fn is_unrecorded(outcome: &Outcome) -> bool {
    let error = outcome.error().unwrap();
    (error.kind, error.reason, error.effect, outcome.attempts)
        == (ErrorKind::Internal, Some(Reason::Journal), Effect::NotStarted, 0)
}
