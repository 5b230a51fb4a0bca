//! From calls to a batch in flight: the gate, the runs, the first events.

use super::checks::BatchChecks;
use super::driver::StopOnDrop;
use super::early::{EarlyResult, announce, not_run};
use super::router;
use super::taken_up::{BeforeAll, TakenUp, hold_back};
use crate::{
    call::{
        Arrival, Base, BatchHolds, BatchState, CallGone, CallRef, Cleared, Entered, Holding, Nested, Run,
        SessionCore, Slot, Stop, TurnOf, index,
    },
    config::OnInterrupted,
    gate::{self, Begun, Fit, NotCleared, Seen, Unvalidated},
    record::{Foundation, Parent},
    tool::VersionedPolicy,
};
use foldhash::fast::RandomState;
use futures::channel::mpsc;
use smallvec::SmallVec;
use std::{collections::HashSet, future::poll_fn, sync::Arc, task::Poll};
use tokio::time::Instant;
use toolyard_core::{Arguments, Batch, Call, CallId, Outcome, Routing};
use tracing::Span;

/// In which order the calls of a batch run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By runs (CL-3).
    Runs,
    /// Every call in a run of its own: the baseline for comparisons.
    OneByOne,
}

/// Follows a batch from outside; implemented by turns.
pub(crate) trait Watch: Send + Sync {
    /// Whether the batch is to be stopped before it starts.
    fn is_cancelled(&self) -> bool;

    /// The result of a call that was answered before, if it was.
    fn replay(&self, call: &Call) -> Option<Outcome>;

    /// Whether its calls may have been answered before.
    fn is_resend(&self) -> bool {
        false
    }

    /// What is known of the batch, if an earlier life of the engine has left it open.
    fn taken_up(&self) -> Option<&TakenUp> {
        None
    }

    /// Called once the batch has been announced, before its first call starts.
    fn opened(&self, batch: &Arc<BatchState>);

    /// Called when the batch has ended: whether its results are kept. If they are not, the batch is let go of.
    fn keeps(&self, batch: &Arc<BatchState>) -> bool;
}

/// How a batch is run.
pub(crate) struct Dispatch<'a> {
    pub(crate) session: &'a Arc<SessionCore>,
    pub(crate) turn: TurnOf,
    pub(crate) order: Order,
    /// The follower of the batch; its results may be kept for it.
    pub(crate) watch: Option<&'a dyn Watch>,
    pub(crate) origin: Origin<'a>,
    /// The span it is dispatched in.
    pub(crate) span: Span,
    /// Whether its caller can resume its turn in another life of the engine, if its session's callers can (SM-10).
    pub(crate) can_be_resumed: bool,
}

/// Where a batch is dispatched from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// From outside of all calls.
    Outside,
    /// By a handler, which is parked meanwhile.
    Nested(&'a Entered),
    /// By a handler that may not dispatch: the calls are answered with this.
    Refused(Stop),
}

impl Origin<'_> {
    /// The call that a dispatch belongs to, which has yet to be entered, or the refusal if it is gone.
    pub(crate) fn of_caller(caller: Result<Option<CallRef>, CallGone>) -> (Option<CallRef>, Self) {
        match caller {
            Ok(caller) => (caller, Self::Outside),
            Err(CallGone) => (None, Self::Refused(Stop::Orphaned)),
        }
    }
}

/// The part of a stream that precedes a batch.
pub(super) struct StreamPrefix {
    pub(super) number: u64,
    /// The ids of its calls.
    pub(super) ids: HashSet<CallId, RandomState>,
    /// Those of its latest piece, which join the others when another one comes: most streams have one.
    pub(super) latest_ids: Vec<CallId>,
    pub(super) calls: u32,
    /// The routing and the number of its last run.
    pub(super) last_run: Option<(Routing, u32)>,
    /// What its results hold, those of the pieces to come included.
    pub(super) holds: Arc<BatchHolds>,
    /// What a recorder was told of the stream.
    pub(super) foundation: Foundation,
    /// Whether its caller can resume it in another life of the engine (SM-10).
    pub(super) may_be_resumed: bool,
    /// Who is told of each end of the calls to come.
    pub(super) ends: Option<mpsc::UnboundedSender<CallRef>>,
}

/// A batch that has passed the gate.
struct Opened {
    batch: Arc<BatchState>,
    /// The results of calls that have them already.
    early: Vec<(u32, EarlyResult)>,
    /// For a recorder, the arguments as they were sent of calls whose layers have changed them. Hardly any batch has some.
    sent: Vec<(u32, Arguments)>,
}

impl Dispatch<'_> {
    /// Takes a batch through the gate and makes it known to those that may stop it. Its first run has not started
    /// yet.
    pub(super) async fn launch(&self, batch: Batch, earlier: Option<&StreamPrefix>) -> Arc<BatchState> {
        let is_recorded = self.session.engine.recorder.is_some();
        let request = if is_recorded { batch.request().map(Arc::from) } else { None };
        let Opened { batch, early, sent } = self.open(batch, earlier).await;
        if is_recorded {
            self.record_arrival(&batch, request, &sent, earlier);
        }
        let mut guard = StopOnDrop::new(&batch);
        announce(&batch, early);
        // From here on others can stop the batch, which must not happen before every call has been announced.
        if let Some(watch) = self.watch {
            watch.opened(&batch);
        }
        batch.session.register(&batch);
        match self.origin {
            Origin::Outside => {}
            Origin::Nested(entered) => entered.parking().attach(entered.call(), entered.child(), &batch),
            Origin::Refused(why) => batch.stop(why),
        }
        batch.ask();
        guard.disarm();
        drop(guard);
        batch
    }

    /// Gives the record of a batch.
    #[cold]
    #[inline(never)]
    fn record_arrival(
        &self,
        batch: &BatchState,
        request: Option<Arc<str>>,
        sent: &[(u32, Arguments)],
        earlier: Option<&StreamPrefix>,
    ) {
        let Some(recorder) = &self.session.engine.recorder else { return };
        let is_sequential = self.order == Order::OneByOne;
        let arrival = match (earlier, self.taken_up()) {
            (None, Some(taken_up)) => Arrival::TakenUp { record: &taken_up.foundation },
            (None, None) => {
                let is_outside = matches!(self.origin, Origin::Outside);
                let may_be_resumed = is_outside && self.can_be_resumed && self.session.may_be_resumed();
                let is_resend = self.watch.is_some_and(Watch::is_resend);
                Arrival::Whole { request, is_sequential, is_resend, may_be_resumed }
            }
            (Some(earlier), _) => {
                Arrival::Pushed { open: &earlier.foundation, may_be_resumed: earlier.may_be_resumed }
            }
        };
        batch.record_arrival(recorder, &arrival, sent);
    }

    /// Takes every call through the gate, in call order, and forms the runs.
    async fn open(&self, batch: Batch, earlier: Option<&StreamPrefix>) -> Opened {
        let engine = &self.session.engine;
        let rules = engine.rules.current();
        let checks = BatchChecks::of(&batch, self.depth(), &engine.limits, earlier);
        let mut early = Vec::new();
        let mut slots = Vec::with_capacity(batch.len());
        let mut tools = gate::Tools::of(&rules.tools);
        let mut validated_by = None;
        let taken_up = self.taken_up();
        let has_layers = engine.registry.has_layers();
        let mut sent = Vec::new();
        let mut before = taken_up.map(|taken_up| Box::new(BeforeAll::of(taken_up, batch.len())));
        for (at, mut call) in batch.into_iter().enumerate() {
            if let Some(result) = before.as_mut().and_then(|before| before.result_of(at)) {
                slots.push(not_run(call, index(at), result, &rules.tools, &mut early));
                continue;
            }
            let layered = if has_layers {
                gate::through_layers(&mut call, &rules.tools, self.session)
            } else {
                gate::Layered::Unchanged
            };
            let passed = match self.precheck(&call, at, &checks) {
                // Hooks take time, and the policy may be replaced meanwhile.
                Ok(seen) if engine.hooks.is_some() => match self.hook(&layered.raw(&call)).await {
                    Ok(()) => self.check(&call, &mut tools, &engine.rules.current().policy, seen),
                    Err(early) => Err(NotPassed::Early(early)),
                },
                Ok(seen) => self.check(&call, &mut tools, &rules.policy, seen),
                Err(early) => Err(NotPassed::Early(early)),
            };
            let passed = match (passed, layered) {
                (Ok(_) | Err(NotPassed::Unvalidated(_)), gate::Layered::Refused(error)) => {
                    Err(NotPassed::Early(EarlyResult::Refused(error)))
                }
                (passed, gate::Layered::Changed(arguments)) if engine.recorder.is_some() => {
                    sent.push((index(at), arguments));
                    passed
                }
                (passed, _) => passed,
            };
            let passed = match passed {
                Ok(work) => Ok(work),
                Err(NotPassed::Early(early)) => Err(early),
                Err(NotPassed::Unvalidated(unvalidated)) => {
                    // All such calls of a batch together have the time of one, so that they cannot add it up.
                    let by = *validated_by.get_or_insert_with(|| {
                        gate::validations_end(&self.session.engine, self.session.engine.clock.now())
                    });
                    Box::pin(self.check_at_length(&call, &mut tools, unvalidated, by)).await
                }
            };
            match passed {
                Ok(work) => slots.push(Slot::cleared(call, work)),
                Err(result) => slots.push(not_run(call, index(at), result, &rules.tools, &mut early)),
            }
        }
        let runs: SmallVec<[Run; 2]> = match self.order {
            Order::Runs => router::runs(slots.iter().map(|slot| slot.routing)).map(Run::new).collect(),
            Order::OneByOne => router::one_by_one(slots.len()).map(Run::new).collect(),
        };
        let goes_on_behind = match taken_up {
            Some(taken_up) => taken_up.goes_on_behind,
            // Only what is replayed in a turn that was taken up can be unknown.
            None => early.is_empty() || engine.on_interrupted == OnInterrupted::Continue,
        };
        if !goes_on_behind {
            hold_back(&mut slots, &runs, &mut early);
        }
        let nested = match self.origin {
            Origin::Nested(entered) => Some(self.nested(entered, runs.len())),
            Origin::Outside | Origin::Refused(_) => None,
        };
        let first = slots.first().map(|slot| slot.routing);
        let base = earlier.map_or_else(
            || {
                let number = taken_up.map_or_else(|| self.session.next_batch(), |taken_up| taken_up.number);
                Base { number, index: 0, run: 0 }
            },
            |earlier| earlier.base(first.filter(|_| self.order == Order::Runs)),
        );
        let holding = Holding::of_piece(earlier.map(|earlier| earlier.holds.clone()));
        let (session, parent) = (self.session.clone(), Parent::new(self.span.clone()));
        let batch = BatchState::new(session, self.turn.clone(), base, nested, parent, (slots, runs), holding);
        if let Some(ends) = earlier.and_then(|earlier| earlier.ends.clone()) {
            batch.told_to(ends);
        }
        if let Some(before) = before {
            batch.goes_on_from(before.open.into_boxed_slice());
        }
        Opened { batch, early, sent }
    }

    /// What is known of the batch, if an earlier life of the engine has left it open.
    fn taken_up(&self) -> Option<&TakenUp> {
        self.watch?.taken_up()
    }

    #[cold]
    #[inline(never)]
    fn nested(&self, entered: &Entered, runs: usize) -> Box<Nested> {
        Box::new(Nested::new(entered.call().clone(), entered.child(), runs, &self.session.engine))
    }

    /// How deep its calls are nested: those made by a handler are one deeper than the handler's call.
    fn depth(&self) -> u32 {
        match self.origin {
            Origin::Nested(entered) => entered.call().batch.depth().saturating_add(1),
            Origin::Outside | Origin::Refused(_) => 0,
        }
    }

    /// Checks what needs no hook and no gate: the bounds, and results to be replayed.
    #[inline(always)]
    fn precheck(&self, call: &Call, at: usize, checks: &BatchChecks) -> Result<Seen, EarlyResult> {
        let bytes = checks.check(call, at)?;
        match self.watch.and_then(|watch| watch.replay(call)) {
            Some(outcome) => Err(EarlyResult::Replayed(outcome)),
            None => Ok(Seen { bytes, fit: Fit::Unknown }),
        }
    }

    /// Runs the hook for a call. After a stop, the calls left are refused without one.
    async fn hook(&self, call: &Call) -> Result<(), EarlyResult> {
        if self.watch.is_some_and(Watch::is_cancelled) || self.session.stopped().is_some() {
            return Err(EarlyResult::Refused(Stop::Cancelled.error()));
        }
        let caller = self.session.caller();
        let begun = poll_fn(|cx| Poll::Ready(gate::before(&self.session.engine, call, &caller, cx))).await;
        match begun {
            Begun::Done(let_through) => Ok(let_through?),
            Begun::Waits(hook) => Ok(hook.await?),
        }
    }

    /// Takes one call through the rest of the gate.
    fn check(
        &self,
        call: &Call,
        tools: &mut gate::Tools<'_>,
        policy: &VersionedPolicy,
        seen: Seen,
    ) -> Result<Cleared, NotPassed> {
        gate::check(call, tools, policy, self.session, self.session.keys(), seen).map_err(NotPassed::from)
    }

    /// Validates the arguments of a call, which takes long, and takes it through the gate again: the policy may have
    /// been replaced meanwhile.
    async fn check_at_length(
        &self,
        call: &Call,
        tools: &mut gate::Tools<'_>,
        unvalidated: Unvalidated,
        until: Option<Instant>,
    ) -> Result<Cleared, EarlyResult> {
        let engine = &self.session.engine;
        gate::validate_at_length(&self.session.engine, unvalidated, until).await?;
        let seen = Seen { bytes: call.arguments.size(), fit: Fit::Known };
        match self.check(call, tools, &engine.rules.current().policy, seen) {
            Ok(work) => Ok(work),
            Err(NotPassed::Early(early)) => Err(early),
            Err(NotPassed::Unvalidated(_)) => {
                unreachable!("arguments that are known to fit are not validated")
            }
        }
    }
}

/// Why a call has not passed the gate.
enum NotPassed {
    /// It has a result.
    Early(EarlyResult),
    /// Its arguments are still to be validated.
    Unvalidated(Unvalidated),
}

impl From<NotCleared> for NotPassed {
    fn from(not_cleared: NotCleared) -> Self {
        Self::Early(match not_cleared {
            NotCleared::Refused(error) => EarlyResult::Refused(error),
            NotCleared::Answered(class, error) => EarlyResult::Answered(class, error),
            NotCleared::Replayed(class, retained) => EarlyResult::Retained(class, retained),
            NotCleared::Unvalidated(unvalidated) => return Self::Unvalidated(unvalidated),
        })
    }
}

impl StreamPrefix {
    /// The position of a batch that continues the stream and whose first call has this routing. Its first run may be
    /// the rest of one that has begun (CL-5).
    fn base(&self, first: Option<Routing>) -> Base {
        let run = match self.last_run {
            None => 0,
            Some((routing, number)) if router::continues_run(routing, first) => number,
            Some((_, number)) => number + 1,
        };
        Base { number: self.number, index: self.calls, run }
    }
}
