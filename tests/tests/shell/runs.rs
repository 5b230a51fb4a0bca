//! Two hundred commands that resist termination.

use super::{
    Yard,
    census::{marked, memory},
    supervised, until, yard, yard_with,
};
use futures::{StreamExt, stream};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, interval};
use toolyard::{Call, ErrorKind, Outcome};
use toolyard_tools::shell::Shell;

/// How many commands run at once.
const AT_ONCE: usize = 16;

/// How long after its time limit a call may end.
const LATE_MAX: Duration = Duration::from_secs(4);

/// How much this process's memory may grow, whatever the commands write: one of the floods alone is 1 GiB. At any
/// time a run holds 64 KiB of kept output, 64 KiB of read output, and part of that again while converting it to text.
/// The recorder of this test keeps the streamed output, 256 KiB for each of the sixty floods.
const GROWTH_MAX: u64 = 64 << 20;

/// The commands, their time limits in milliseconds, and their expected results.
const KINDS: [(&str, u64, Result<(), ErrorKind>); 10] = [
    ("for i in 1 2 3 4 5; do sleep 60 & done; wait", 400, Err(ErrorKind::Timeout)),
    ("trap '' TERM; echo deaf; while :; do sleep 1; done", 400, Err(ErrorKind::Timeout)),
    ("setsid sh -c 'setsid sleep 60 & sleep 60' & echo ok", 20_000, Ok(())),
    ("nohup sleep 60 >/dev/null 2>&1 & echo ok", 20_000, Ok(())),
    ("head -c 1073741824 /dev/zero", 40_000, Ok(())),
    ("yes", 400, Err(ErrorKind::Timeout)),
    ("cat; read line; echo \"read: $?\"", 20_000, Ok(())),
    ("sleep 60 & sleep 60 & exit 3", 20_000, Err(ErrorKind::ExecutionError)),
    (
        "(trap '' TERM HUP; setsid sh -c 'cd /; while :; do sleep 1; done' <&- >&- 2>&- &) & exit 0",
        20_000,
        Ok(()),
    ),
    ("(setsid yes &) ; yes >&2 & sleep 60", 400, Err(ErrorKind::Timeout)),
];

/// SC-5, SC-6: every command ends within four seconds after its limit, leaves no process, and memory is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_runs_leave_no_process() {
    let yard = yard().await;
    let mark = yard.mark();
    let before = (marked(&mark).len(), memory());
    let runs = stream::iter(0..200).map(|number| run(&yard, number)).buffer_unordered(AT_ONCE);
    let mut runs = Box::pin(runs.collect::<Vec<_>>());
    let (mut most, mut at_once, mut look) = (before.1, 0, interval(Duration::from_millis(100)));
    let late = loop {
        tokio::select! {
            late = &mut runs => break late,
            _ = look.tick() => (most, at_once) = (most.max(memory()), at_once.max(marked(&mark).len())),
        }
    };
    let after = marked(&mark).len();
    let (grown, latest) = ((most - before.1) >> 20, late.iter().max().unwrap());
    println!("processes before {}, at most {at_once}, after {after}", before.0);
    println!("memory grew by {grown} MiB at most; the latest end was {latest:?} after its limit");
    assert_eq!((before.0, after), (0, 0));
    assert!(at_once > 0, "the census counts");
    assert!(most - before.1 < GROWTH_MAX, "{grown} MiB");
    yard.events.check();
}

/// Runs one command and returns how long after its limit it ended.
async fn run(yard: &Yard, number: usize) -> Duration {
    let (command, limit, expect) = KINDS[number % KINDS.len()];
    let args = json!({"command": yard.marked(command), "timeout_ms": limit});
    let session = yard.engine.session(format!("s{number}"));
    let (limit, from) = (Duration::from_millis(limit), Instant::now());
    let outcomes = session.dispatch(vec![Call::new("a", "shell", args)]).await;
    let late = from.elapsed().saturating_sub(limit);
    let came_to = |outcome: &Outcome| outcome.error().map_or(Ok(()), |error| Err(error.kind));
    assert_eq!(came_to(&outcomes[0]), expect, "{command}: {}", outcomes[0].to_text());
    assert!(late < LATE_MAX, "{command} ended {late:?} after its limit");
    late
}

/// SC-6: a call that is given up leaves no process either: its cleanup goes on without it.
#[tokio::test]
async fn an_abandoned_call_leaves_no_process() {
    let grace = Duration::from_millis(50);
    let yard = yard_with(Shell::new(supervised()), |builder| builder.grace(grace)).await;
    let session = yard.engine.session("s");
    let command = yard.marked("trap '' TERM; (setsid sleep 60 &); echo ready; while :; do sleep 1; done");
    let calls = vec![Call::new("a", "shell", json!({ "command": command }))];
    let aside = async {
        until("it runs", || !yard.deltas().is_empty()).await;
        session.cancel_call("a");
    };
    let outcomes = tokio::join!(session.dispatch(calls), aside).0;
    let error = outcomes[0].error().unwrap();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(error.message.contains("did not stop within"), "{}", error.message);
    until("nothing is left", || marked(&yard.mark()).is_empty()).await;
}
