//! Plays the runs of a batch in order and hands back one result per call.
//!
//! The driver waits for runs, never for permits: it puts every call of a run in line, and whoever gives a
//! permit back starts the next call. So a waiting call costs a place in line and no task, and no message and
//! no wake-up of the driver stands between two calls.

use super::ledger::{Phase, Slot};
use super::router;
use super::state::BatchState;
use super::stop::Stop;
use crate::{attempt, config::OnSerialFailure, gate::Cleared, session::SessionCore};
use std::{collections::HashSet, sync::Arc, time::Duration};
use toolyard_core::{Batch, Call, CallError, ErrorKind, EventKind, Outcome, Placement, Routing};

/// How long the next run waits for handlers that were given up (CL-3).
const ZOMBIE_WAIT: Duration = Duration::from_secs(30);

/// In which order the calls of a batch go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By runs (CL-3).
    Runs,
    /// Every call alone: what a batch by runs is compared with.
    OneByOne,
}

/// Runs a batch to its end.
///
/// Cancel safety: dropping the future cancels the batch; calls that run have their grace in the background
/// (CC-6b).
pub(crate) async fn dispatch(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
) -> Vec<Outcome> {
    dispatch_watched(session, turn, batch, order, |_| {}).await
}

/// As [`dispatch`], and lets the caller see the batch before its first call goes.
pub(crate) async fn dispatch_watched(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
    watch: impl FnOnce(&Arc<BatchState>),
) -> Vec<Outcome> {
    let (batch, refusals) = open(session, turn, batch, order).await;
    let mut guard = StopOnDrop {
        batch: &batch,
        armed: true,
    };
    watch(&batch);
    batch.session.register(&batch);
    announce(&batch, refusals);
    batch.ask();
    for run in 0..batch.runs() {
        begin(&batch, run).await;
        finish(&batch, run).await;
    }
    guard.armed = false;
    batch.collect()
}

/// Cancels the batch when its caller leaves.
struct StopOnDrop<'a> {
    batch: &'a BatchState,
    armed: bool,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.batch.stop(Stop::Cancelled);
        }
    }
}

/// Why a call does not pass the gate, by its index.
type Refusals = Vec<(u32, CallError)>;

/// Leads every call through the gate, in call order, and forms the runs.
async fn open(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
) -> (Arc<BatchState>, Refusals) {
    let table = session.engine.registry.table();
    let mut seen = Seen::default();
    let mut refusals = Refusals::new();
    let mut checked: Vec<(Call, Option<Cleared>, bool)> = Vec::with_capacity(batch.len());
    for (at, call) in batch.into_iter().enumerate() {
        let cleared = match seen.check(&call, at, session.engine.gate.limits.batch_calls_max) {
            Ok(()) => session.engine.gate.pass(&call, &table, session).await,
            Err(error) => Err(error),
        };
        let known = cleared.is_ok() || table.contains_key(&call.name);
        let cleared = cleared
            .map_err(|error| refusals.push((u32::try_from(at).unwrap_or(u32::MAX), error)))
            .ok();
        checked.push((call, cleared, known));
    }
    let routing =
        |cleared: &Option<Cleared>| cleared.as_ref().map_or(Routing::ShortCircuit, |c| c.class.into());
    let runs = match order {
        Order::Runs => router::runs(
            &checked
                .iter()
                .map(|(_, cleared, _)| routing(cleared))
                .collect::<Vec<_>>(),
        ),
        Order::OneByOne => router::one_by_one(checked.len()),
    };
    let mut slots = Vec::with_capacity(checked.len());
    let mut checked = checked.into_iter();
    for (number, run) in runs.iter().enumerate() {
        let number = u32::try_from(number).expect("a batch is bounded far below 2^32");
        slots.extend(
            checked
                .by_ref()
                .take(run.len())
                .map(|(call, work, known)| Slot::new(call, number, work, known)),
        );
    }
    (BatchState::new(session.clone(), turn, slots, runs), refusals)
}

/// The ids of a batch so far (CL-8), and its bound (CC-4).
#[derive(Default)]
pub(super) struct Seen {
    ids: HashSet<toolyard_core::CallId>,
}

impl Seen {
    /// Whether this call, the one at `at`, may be looked at.
    pub(super) fn check(&mut self, call: &Call, at: usize, calls_max: usize) -> Result<(), CallError> {
        if at >= calls_max {
            let message =
                format!("the batch has more than {calls_max} calls: send the rest in another batch");
            return Err(CallError::new(ErrorKind::Overloaded, message));
        }
        if self.ids.insert(call.id.clone()) {
            return Ok(());
        }
        let message = format!(
            "call id '{}' is used twice in this batch; only the first is run",
            call.id
        );
        Err(CallError::new(ErrorKind::InvalidInput, message))
    }
}

/// Tells that the calls came in, and ends those that the gate refused.
fn announce(batch: &Arc<BatchState>, refusals: Refusals) {
    batch.emit_turn(|| EventKind::TurnStarted {
        calls: batch.slots.len(),
    });
    let mut refusals = refusals.into_iter().peekable();
    for index in 0..u32::try_from(batch.slots.len()).expect("a batch is bounded far below 2^32") {
        batch.emit(index, None, || EventKind::Received {
            tool_name: batch.shown_name(index),
            bytes: match &batch.call(index).arguments {
                toolyard_core::Arguments::Text(text) => text.len(),
                toolyard_core::Arguments::Json(_) => 0,
            },
        });
        if let Some((_, error)) = refusals.next_if(|(refused, _)| *refused == index) {
            batch.end_unstarted(index, || error);
        }
    }
}

/// Lets every call of a run go.
async fn begin(batch: &Arc<BatchState>, run: usize) {
    for at in batch.calls_of(run) {
        let index = u32::try_from(at).expect("a batch is bounded far below 2^32");
        {
            let mut phase = batch.slots[at].phase();
            match &mut *phase {
                Phase::Asking { run_begun } => {
                    *run_begun = true;
                    continue;
                }
                Phase::Waiting => {}
                Phase::Queued { .. } | Phase::Started | Phase::Ended(_) => continue,
            }
        }
        if batch.work(index).entry.spec().placement == Placement::Inline {
            begin_inline(batch, index).await;
        } else {
            batch.go(index);
        }
    }
}

/// Runs a call in place as far as its first wait (SC-2).
async fn begin_inline(batch: &Arc<BatchState>, index: u32) {
    let gate = &batch.session.engine.gate;
    gate.starting(batch.call(index), &batch.caller()).await;
    let Some((permit, timing)) = batch.admit(index) else {
        return;
    };
    let mut attempt = Box::pin(attempt::run(batch.clone(), index, permit, timing));
    if futures::poll!(&mut attempt).is_pending() {
        let engine = &batch.session.engine;
        engine.tasks.spawn_on(attempt, &engine.runtime);
    }
}

impl BatchState {
    /// Lets a call go whose run has begun: the hook before its permits, then its permits.
    pub(super) fn go(self: &Arc<Self>, index: u32) {
        let engine = &self.session.engine;
        if engine.gate.hooks.is_none() {
            return self.start_or_wait(index);
        }
        let batch = self.clone();
        engine.tasks.spawn_on(
            async move {
                batch
                    .session
                    .engine
                    .gate
                    .starting(batch.call(index), &batch.caller())
                    .await;
                batch.start_or_wait(index);
            },
            &engine.runtime,
        );
    }

    fn start_or_wait(self: &Arc<Self>, index: u32) {
        if let Some((permit, timing)) = self.admit(index) {
            self.spawn(index, permit, timing);
        }
    }
}

/// Waits for the end of a run: for the last one until every call has its result, for the others until
/// nothing of them runs.
async fn finish(batch: &Arc<BatchState>, run: usize) {
    batch.run_ended(run).await;
    if run + 1 == batch.runs() {
        return;
    }
    if tokio::time::timeout(ZOMBIE_WAIT, batch.run_quiescent(run))
        .await
        .is_err()
    {
        batch.stop(Stop::Zombie);
    }
    let skip = batch.session.engine.on_serial_failure == OnSerialFailure::SkipRest;
    if skip && batch.serial_failed(run) {
        batch.stop(Stop::Predecessor);
    }
}
