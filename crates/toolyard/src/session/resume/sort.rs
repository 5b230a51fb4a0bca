//! What becomes of the calls of a turn that was left open (JR-5, JR-6).

mod other;
mod resent;

use super::ResumedBatch;
use crate::{
    batch::{Fate, TakenUp, is_interrupted},
    call::{Before, SessionCore, cancelled_before_error, interrupted_error},
    config::{OUTPUT_DEPTH_MAX, OnInterrupted, RECORD_WAIT},
    gate,
    record::{
        CallPlace, EndRecord, Foundation, PastAttempt, PastBatch, PastCall, PastEnd, PastKey, PastKeyEnd,
        PastKeyState, PastTurn, RecordError, Recovered, VerdictRecord,
    },
    tasks::{Caught, caught},
    tool::ToolEntry,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    Batch, Call, CallError, ContextParts, Dedupe, Outcome, Reconciled, Routing, Sandbox, ToolClass,
    ToolContext, ToolOutput, ToolSpec,
};

/// How long a tool has to find out what became of a call.
const RECONCILE_WAIT: Duration = Duration::from_secs(30);

/// How often it is asked.
const RECONCILE_MAX: u32 = 3;

/// About how many calls tools are asked at once.
const ASKED_AT_ONCE: usize = 16;

/// A turn whose calls are sorted.
pub(super) struct Sorted {
    turn: u64,
    batches: Vec<SortedBatch>,
}

struct SortedBatch {
    batch: u64,
    request: Option<Arc<str>>,
    is_sequential: bool,
    /// Whether calls were still to come: its end is recorded as the turn is taken up.
    is_open: bool,
    calls: Vec<SortedCall>,
}

struct SortedCall {
    call: Call,
    fate: Fate,
    /// Of a call that ends as the turn is taken up.
    ends: Option<EndsNow>,
    /// The key of a call that was started, or may have been, and is free now: it goes on, or is known not to have been done.
    goes_on_under: Option<Arc<str>>,
}

/// What is recorded of such a call beside its outcome.
struct EndsNow {
    entry: Option<Arc<ToolEntry>>,
    attempt: Option<PastAttempt>,
    /// Whether it ran with arguments that an approver gave: its key stands for those that were sent.
    is_edited: bool,
}

/// How far a call has come.
#[derive(Debug, PartialEq)]
enum Left {
    Ended,
    NotStarted,
    /// It was started, and may be started again.
    MayRepeat,
    /// It was started, or may have been, and nobody knows what it has done.
    Unknown,
}

/// How far a call has come, for a tool as it is now (JR-5, JR-7).
fn left(call: &PastCall, spec: Option<&ToolSpec>) -> Left {
    if call.end.is_some() {
        return Left::Ended;
    }
    let is_harmless = spec.is_some_and(|spec| spec.is_repeatable() && !spec.recursive);
    if call.is_unsure && !is_harmless {
        return Left::Unknown; // another attempt may have begun that is not recorded
    }
    let Some(last) = call.attempts.last() else {
        // Whether a read was started is not recorded; what its handler has dispatched is.
        return if call.has_dispatched { Left::Unknown } else { Left::NotStarted };
    };
    if last.retried_after.is_some() {
        return Left::MayRepeat;
    }
    let is_same = spec.is_some_and(|spec| spec.version == last.version && spec.is_repeatable());
    match last.is_repeatable && is_same && !last.is_recursive && !call.has_dispatched {
        true => Left::MayRepeat,
        false => Left::Unknown,
    }
}

/// Decides about each call; asks tools about those of which nobody knows.
///
/// # Errors
/// [`RecordError`], if what a tool says cannot be recorded.
pub(super) async fn sort(core: &Arc<SessionCore>, past: PastTurn) -> Result<Sorted, RecordError> {
    let PastTurn { turn, batches: all, .. } = past;
    let mut batches = Vec::with_capacity(all.len());
    for PastBatch { batch, request, is_sequential, is_resend, is_open, calls } in all {
        let calls = (0u32..).zip(calls);
        let sorting = calls.map(|(index, call)| sort_call(core, (turn, batch, index), call));
        let mut calls: Vec<_> = stream::iter(sorting).buffered(ASKED_AT_ONCE).try_collect().await?;
        if is_resend {
            calls.iter_mut().for_each(|call| call.answer_again(&batches));
        }
        batches.push(SortedBatch { batch, request, is_sequential, is_open, calls });
    }
    Ok(Sorted { turn, batches })
}

async fn sort_call(
    core: &Arc<SessionCore>,
    (turn, batch, index): (u64, u64, u32),
    past: PastCall,
) -> Result<SortedCall, RecordError> {
    let entry = core.engine.registry.get(&past.call.name);
    let left = left(&past, entry.as_deref().map(ToolEntry::spec));
    let attempts = past.attempts.last().map_or(u32::from(past.has_dispatched), |last| last.attempt);
    let PastCall {
        call,
        is_cancelled,
        is_unsure,
        has_dispatched,
        attempts: all,
        end,
        question,
        reconciled,
        done,
        ..
    } = past;
    let last = all.into_iter().next_back();
    // One whose attempt may be missing has its key too (JR-7).
    let sent = || call.idempotency_key.clone().filter(|_| is_unsure && left == Left::Unknown);
    let key = last.as_ref().and_then(|last| last.key.clone()).or_else(sent);
    let answer = question.as_ref().and_then(|question| question.answer.as_ref());
    let edited = answer.and_then(|(_, answer)| answer.arguments());
    let edited = edited.map(|edited| gate::edit_shown(&Arc::new(edited.to_value()), core));
    let running =
        |last| Running { call: &call, entry: entry.clone(), last, has_dispatched, edited: edited.clone() };
    let goes_on = |error| Fate::Open(Before { attempts, error, question: question.clone() });
    let (fate, ends) = match (left, end, last) {
        (Left::Ended, Some(end), _) => (as_recorded(&call, *end, edited), None),
        (Left::Unknown, _, last) => {
            let place = CallPlace::new(&core.id, &core.path, turn, batch, index, &call.id);
            let asked = Asked { core, entry: entry.as_ref(), call: &call, last: last.as_ref(), reconciled };
            let found = match done {
                Some(output) => Reconciled::Done(output),
                None => asked.about(place).await?,
            };
            match found {
                Reconciled::Done(output) => running(last).ends(Ok(output)),
                Reconciled::NotDone { .. } if is_cancelled => (Fate::Cancelled, None),
                Reconciled::NotDone { .. } => (goes_on(None), None),
                _ => running(last).ends(Err(interrupted_error(attempts.max(1)))),
            }
        }
        (Left::MayRepeat, _, last) if is_cancelled => {
            running(last).ends(Err(cancelled_before_error(attempts)))
        }
        _ if is_cancelled => (Fate::Cancelled, None),
        (_, _, last) => (goes_on(last.and_then(|last| last.retried_after).map(Box::new)), None),
    };
    // So is that of one which is not done, and is not to be.
    let goes_on_under = key.filter(|_| matches!(fate, Fate::Open(_) | Fate::Cancelled));
    Ok(SortedCall { call, fate, ends, goes_on_under })
}

/// The outcome of a call that had ended, and that ran with these arguments if a person changed them.
fn as_recorded(call: &Call, end: PastEnd, edited: Option<Arc<Value>>) -> Fate {
    let mut outcome = Outcome::new(call, end.routing, end.status);
    outcome.set_edited(edited.filter(|_| end.attempts > 0));
    outcome.attempts = end.attempts;
    outcome.set_times(end.queued.into(), end.ran.into());
    outcome.sandbox = end.sandbox;
    outcome.cancel_requested = end.cancel_requested;
    // One that shares what became of another call was not running itself.
    let is_unknown = end.dedupe == Dedupe::Fresh && is_interrupted(&outcome);
    outcome.dedupe = if end.attempts > 0 { Dedupe::Replayed } else { end.dedupe };
    Fate::Ended { outcome: Box::new(outcome), is_unknown }
}

/// A call that was running.
struct Running<'a> {
    call: &'a Call,
    entry: Option<Arc<ToolEntry>>,
    last: Option<PastAttempt>,
    has_dispatched: bool,
    /// The arguments that an approver gave, as results show them.
    edited: Option<Arc<Value>>,
}

impl Running<'_> {
    /// It ends with what it is known to have done, or with this error.
    fn ends(self, found: Result<ToolOutput, CallError>) -> (Fate, Option<EndsNow>) {
        let routing = self.routing();
        let Self { call, entry, last, edited, .. } = self;
        let (is_done, is_edited) = (found.is_ok(), edited.is_some());
        let mut outcome = Outcome::new(call, routing, found);
        // Without a recorded attempt it counts as started all the same: nobody knows that it was not.
        outcome.attempts = last.as_ref().map_or(1, |last| last.attempt);
        outcome.dedupe = if is_done { Dedupe::Reconciled } else { Dedupe::Fresh };
        outcome.set_edited(edited);
        let is_unknown = is_interrupted(&outcome);
        (
            Fate::Ended { outcome: Box::new(outcome), is_unknown },
            Some(EndsNow { entry, attempt: last, is_edited }),
        )
    }

    /// How it is routed: as its tool says now, but as what changes something if it may have: what comes behind it depends on
    /// that (JR-8).
    fn routing(&self) -> Routing {
        let class = match (&self.entry, &self.last) {
            (Some(entry), Some(last)) => entry.class_for(&last.arguments, None),
            (Some(entry), None) => entry.spec().class(),
            (None, _) => ToolClass::Read,
        };
        match class {
            ToolClass::Read if self.may_have_changed() => Routing::Serial,
            class => class.into(),
        }
    }

    fn may_have_changed(&self) -> bool {
        let is_read_only =
            self.last.as_ref().map(|last| last.side_effects.is_read_only() && !last.is_recursive);
        self.has_dispatched || is_read_only != Some(true)
    }
}

/// A call of which nobody knows what it has done, and its tool.
struct Asked<'a> {
    core: &'a Arc<SessionCore>,
    entry: Option<&'a Arc<ToolEntry>>,
    call: &'a Call,
    last: Option<&'a PastAttempt>,
    /// How often it was asked before.
    reconciled: u32,
}

impl Asked<'_> {
    /// What the tool says, once that is durable (JR-6).
    async fn about(self, place: CallPlace<'_>) -> Result<Reconciled, RecordError> {
        let Some(entry) = self.entry.filter(|entry| self.core.sees(entry)) else {
            return Ok(Reconciled::Unknown);
        };
        if self.reconciled >= RECONCILE_MAX {
            return Ok(Reconciled::Unknown);
        }
        let found = match self.ask(entry).await {
            // It may still be under way.
            Reconciled::NotDone { is_final: false } if !self.last.is_none_or(|it| it.time_left.is_zero()) => {
                Reconciled::Unknown
            }
            found => self.redacted(found),
        };
        self.record(place, &found).await?;
        Ok(found)
    }

    async fn ask(&self, entry: &ToolEntry) -> Reconciled {
        let engine = &self.core.engine;
        let args = self.last.map_or_else(|| self.call.arguments.to_value(), |last| last.arguments.clone());
        let key = self.last.and_then(|last| last.key.clone()).or_else(|| self.call.idempotency_key.clone());
        let mut parts = ContextParts::detached(entry.shared_name());
        (parts.session, parts.agent) = (self.core.id.clone(), self.core.path.clone());
        (parts.call, parts.resources) = (self.call.clone(), self.core.resources.clone());
        let cx = ToolContext::new(parts);
        let answer = async {
            let tool = caught(|| entry.create())?;
            let asked = caught(|| tool.reconcile(&args, key.as_deref(), &cx))?;
            Caught::new(asked).await
        };
        let found = match engine.tasks.timeout(RECONCILE_WAIT, answer).await {
            Some(Ok(found)) => found,
            Some(Err(panic)) => {
                let what = "a tool panicked when it was asked what became of a call";
                panic.log(what, Some(entry.name()), engine.redactor.as_ref());
                Reconciled::Unknown
            }
            None => Reconciled::Unknown,
        };
        // What is recorded must be read again.
        let found = match found {
            Reconciled::Done(output) if !output.nests_at_most(OUTPUT_DEPTH_MAX) => Reconciled::Unknown,
            found => found,
        };
        match found {
            Reconciled::Done(_) | Reconciled::NotDone { .. } => found,
            _ => other::ask(self.core, entry.name(), &args, key.as_deref()).await,
        }
    }

    /// Takes secrets out of what a tool says it has done, as out of any result (PO-7).
    fn redacted(&self, mut found: Reconciled) -> Reconciled {
        if let (Reconciled::Done(output), Some(redactor)) = (&mut found, &self.core.engine.results_redactor) {
            self.core.given_marks().add(redactor.output(output));
        }
        found
    }

    /// Waits until the verdict is durable.
    async fn record(&self, call: CallPlace<'_>, found: &Reconciled) -> Result<(), RecordError> {
        let found = match found {
            Reconciled::Done(output) => Recovered::Done(output),
            Reconciled::NotDone { .. } => Recovered::NotDone,
            _ => Recovered::Unknown,
        };
        let engine = &self.core.engine;
        let record = VerdictRecord { call, found };
        let given = engine.recorder.as_ref().and_then(|it| it.give(|recorder| recorder.verdict(&record)));
        let Some(pending) = given else { return Ok(()) };
        let durable = engine.tasks.timeout(RECORD_WAIT, pending).await;
        durable.unwrap_or_else(|| Err(RecordError::late()))
    }
}

impl Sorted {
    /// Whether some call has not ended, or ends now, or a batch has no end.
    pub(super) fn is_open(&self) -> bool {
        if self.batches.iter().any(|batch| batch.is_open) {
            return true;
        }
        let mut calls = self.batches.iter().flat_map(|batch| &batch.calls);
        calls.any(|call| call.ends.is_some() || !matches!(call.fate, Fate::Ended { .. }))
    }

    fn ending(&self) -> impl Iterator<Item = (u64, u32, &SortedCall, &EndsNow, &Outcome)> {
        self.batches.iter().flat_map(|batch| {
            (0u32..).zip(&batch.calls).filter_map(|(index, call)| match (&call.ends, &call.fate) {
                (Some(ends), Fate::Ended { outcome, .. }) => {
                    Some((batch.batch, index, call, ends, &**outcome))
                }
                _ => None,
            })
        })
    }

    /// The records of the calls that end as the turn is taken up.
    pub(super) fn ended<'a>(&'a self, core: &'a SessionCore) -> impl Iterator<Item = EndRecord<'a>> {
        self.ending().map(|(batch, index, call, ends, outcome)| EndRecord {
            call: CallPlace::new(&core.id, &core.path, self.turn, batch, index, &call.call.id),
            tool: ends.entry.as_deref().map(ToolEntry::spec),
            key: ends.key_of(&call.call).map(|key| &**key),
            status: outcome.status.as_ref().map_err(Box::as_ref),
            attempts: outcome.attempts,
            dedupe: outcome.dedupe,
            routing: outcome.routing,
            run: 0,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            queued: Duration::ZERO,
            ran: Duration::ZERO,
        })
    }

    /// Makes known under their keys what those calls have done, and frees the keys of those that go on.
    pub(super) fn settle_keys(&self, core: &SessionCore) {
        for call in self.batches.iter().flat_map(|batch| &batch.calls) {
            if let Some(key) = &call.goes_on_under {
                core.release_key(&call.call.name, key);
            }
        }
        for (.., call, ends, outcome) in self.ending() {
            if let (Some(key), Some((version, is_repeatable))) = (ends.key_of(&call.call), ends.ran_as()) {
                core.restore_key(&PastKey {
                    tool: call.call.name.clone(),
                    key: key.clone(),
                    arguments: match &ends.attempt {
                        Some(last) if !ends.is_edited => last.arguments.clone(),
                        _ => call.call.arguments.to_value(),
                    },
                    state: PastKeyState::Started {
                        version: version.to_owned(),
                        is_repeatable,
                        end: PastKeyEnd::Ended {
                            status: outcome.status.clone().map_err(|error| *error),
                            attempts: outcome.attempts,
                            sandbox: outcome.sandbox,
                            no_side_effect: false,
                        },
                    },
                });
            }
        }
    }

    /// The batches, ready to go on.
    pub(super) fn into_batches(self, foundation: &Foundation, then: OnInterrupted) -> Vec<ResumedBatch> {
        let goes_on_behind = then == OnInterrupted::Continue;
        let resumed = |SortedBatch { batch, request, is_sequential, calls, .. }| {
            let (calls, fates): (Vec<_>, _) = calls.into_iter().map(|it| (it.call, it.fate)).unzip();
            let taken_up = TakenUp::new(batch, foundation.clone(), goes_on_behind, fates);
            ResumedBatch { request, is_sequential, batch: Batch::new(calls), taken_up }
        };
        self.batches.into_iter().map(resumed).collect()
    }
}

impl EndsNow {
    /// The version of the tool with which the call ran, and whether it may be repeated: as its attempt says, or, if the record of
    /// that was lost (JR-7), as its tool is now.
    fn ran_as(&self) -> Option<(&str, bool)> {
        let now =
            || self.entry.as_deref().map(|entry| (&*entry.spec().version, entry.spec().is_repeatable()));
        self.attempt.as_ref().map(|last| (&*last.version, last.is_repeatable)).or_else(now)
    }

    /// The key under which the call ran.
    fn key_of<'a>(&'a self, call: &'a Call) -> Option<&'a Arc<str>> {
        self.attempt.as_ref().and_then(|last| last.key.as_ref()).or(call.idempotency_key.as_ref())
    }
}

#[cfg(test)]
mod tests;
