//! The records of an attempt, and what waits for them (SM-4).
//!
//! ```text
//!   permits ─► attempt ─┬─ durable ───────────► tool.called, dispatch.attempt, handler
//!                       ├─ not, or late ──────► permits back, internal, not started; a follower leads
//!                       └─ told to stop, its deadline, another policy ► the same, as cancelled and so on
//!
//!   permits back ─► ended ─┬─ durable ────► kept under its key, hook, event, result
//!                          └─ not, or late ► the same, with `recorded: false`
//! ```

use crate::{
    call::{
        attempt::{Attempt, Stage, execute::HandlerStopped},
        ending::{Ending, Recorded},
        progress::{Bid, Progress},
        refusals::Refusal,
        stop::Stop,
    },
    config::RECORD_WAIT,
    record::{AttemptRecord, Foundation, Pending, RecordError, Recording},
};
use futures::future::BoxFuture;
use std::{future::poll_fn, pin::pin};
use toolyard_admission::Held;
use toolyard_core::{CallError, Confinement};

/// What an attempt waits for.
type Durable = BoxFuture<'static, Result<(), RecordError>>;

impl Stage {
    /// The handler has not been started, although its attempt has its permits.
    fn not_started(&mut self) {
        *self = match std::mem::replace(self, Self::Done) {
            Self::Running(slots) => Self::Unstarted(slots),
            other => other,
        };
    }

    /// The handler is started now.
    fn starts(&mut self) {
        *self = match std::mem::replace(self, Self::Done) {
            Self::Unstarted(slots) => Self::Running(slots),
            other => other,
        };
    }
}

impl Attempt {
    fn give_attempt(&self, recording: &Recording) -> Option<Pending> {
        let (call, work) = (self.at(), self.work());
        let record = AttemptRecord {
            call: call.call_place(),
            attempt: self.number(),
            tool: work.entry.spec(),
            arguments: call.args(),
            is_as_sent: call.runs_as_sent(),
            key: call.idempotency_key(),
            confinement: self.confinement(),
            approval: work.consent.approval(),
            digest: call.digest().map(|digest| *digest.get()),
            timeout: self.bounds().timeout,
        };
        recording.give(|recorder| recorder.attempt(&record))
    }

    /// Whether its start and its end as an attempt are given to a recorder.
    #[inline]
    pub(super) fn are_attempts_recorded(&self) -> bool {
        let Some(recording) = &self.engine().recorder else { return false };
        recording.needs_attempts(self.work().entry.spec(), self.at().idempotency_key())
    }

    /// Whether it is to be asked whether it [may start](Self::may_start).
    #[inline]
    pub(super) fn is_start_recorded(&self) -> bool {
        let has_before = |progress: &Progress| !progress.recorded.is_empty();
        self.are_attempts_recorded() || self.progress.as_deref().is_some_and(has_before)
    }

    /// Waits until the attempt may start. Returns `false` if its call has ended instead, or goes on elsewhere.
    pub(super) async fn may_start(&mut self) -> bool {
        // What the policy in force grants is what is recorded.
        if let Err(error) = self.at().may_still_run() {
            self.stage.not_started();
            self.does_not_start(*error);
            return false;
        }
        let Some(durable) = self.give_start() else { return true };
        self.stage.not_started();
        let confinement = *self.confinement();
        let durable = self.until_durable(durable).await;
        match durable.and_then(|()| self.may_still_start(confinement)) {
            Ok(()) => {
                self.stage.starts();
                // Its timeout counts from here.
                self.granted_at = self.engine().clock.now();
                true
            }
            Err(error) => {
                self.does_not_start(error);
                false
            }
        }
    }

    /// Checks that the policy has not changed meanwhile so that the call must not run, or not as it was recorded.
    fn may_still_start(&self, recorded: Confinement) -> Result<(), CallError> {
        self.at().may_still_run().map_err(|error| *error)?;
        match *self.confinement() == recorded {
            true => Ok(()),
            false => Err(Refusal::ChangedAtStart.error()),
        }
    }

    /// Gives the record of this attempt; `None` if it need not wait.
    fn give_start(&mut self) -> Option<Durable> {
        let before = self.progress.as_mut().map(|progress| std::mem::take(&mut progress.recorded));
        let recording = self.engine().recorder.as_ref()?;
        let own = if self.are_attempts_recorded() { self.give_attempt(recording) } else { None };
        let before = before.and_then(Foundation::pending);
        if own.is_none() && before.is_none() {
            return None;
        }
        let foundation = self.batch().foundation();
        Some(Box::pin(async move {
            foundation.durable().await?;
            for record in before.into_iter().chain(own) {
                record.await?;
            }
            Ok(())
        }))
    }

    /// Waits for a record with the permits of the attempt. The error is that of a call that does not start.
    async fn until_durable(&self, durable: Durable) -> Result<(), CallError> {
        let (engine, call) = (self.engine(), self.at());
        let (deadline, late_at) = (self.bounds().deadline, engine.clock.now() + RECORD_WAIT);
        let until = deadline.map_or(late_at, |deadline| deadline.min(late_at));
        tokio::select! {
            biased;
            () = poll_fn(|cx| call.poll_stop(cx)) => {
                Err(call.stop_reason().unwrap_or(Stop::Cancelled).error())
            }
            durable = engine.tasks.timeout_at(until, durable) => match durable {
                Some(Ok(())) => Ok(()),
                Some(Err(error)) => {
                    engine.log_unrecorded("a call is not started, because that could not be recorded", &error);
                    Err(Refusal::Unrecorded.error())
                }
                None if until < late_at => Err(Refusal::PastDeadline.error()),
                None => Err(Refusal::RecordLate.error()),
            },
        }
    }

    /// Gives everything back, and ends the call or passes its flight on: the handler was not started.
    fn does_not_start(&mut self, error: CallError) {
        self.release(false, self.engine().clock.now());
        self.stage = Stage::Done;
        let bid = Bid { ready_at: self.ready_at, progress: self.progress.take() };
        let call = self.call.at();
        call.end_unstarted(call.slot().life(), bid, error);
    }

    /// The same for one whose task is dropped. Returns whether it had not been started.
    pub(super) fn vanishes_unstarted(&mut self) -> bool {
        let is_unstarted = matches!(self.stage, Stage::Unstarted(_));
        if is_unstarted {
            self.does_not_start(crate::call::refusals::vanished_error(0));
        }
        is_unstarted
    }

    /// The record of the result was given, and is waited for from now on. The permits have been released. If the task is
    /// dropped meanwhile, `Drop` writes the result.
    pub(super) fn awaits_record(&mut self, ending: Ending, no_side_effect: bool) {
        let zombie = self.take_zombie();
        self.stage = Stage::Recording { zombie, ending: Box::new(ending), no_side_effect };
    }

    /// Waits until the result is durable, and keeps it under its key.
    ///
    /// Returns, for a handler that was `still_running` and has stopped meanwhile, whether it had an output: what it kept
    /// has been given back then, and it does not run any more.
    pub(super) async fn recorded(
        &mut self,
        pending: Pending,
        still_running: &mut Option<HandlerStopped>,
    ) -> (Ending, Option<bool>) {
        let until = self.engine().clock.now() + RECORD_WAIT;
        let engine = self.call.batch.session.engine.clone();
        let mut recorded = pin!(engine.recorded(pending, until));
        let mut late = None;
        let is_durable = match still_running.as_mut() {
            None => recorded.await,
            Some(stopped) => tokio::select! {
                biased;
                is_durable = &mut recorded => is_durable,
                ok = stopped => {
                    late = Some(ok.unwrap_or(false));
                    *still_running = None;
                    if let Some(kept) = self.take_zombie() {
                        self.give_back_kept(*kept);
                    }
                    recorded.await
                }
            },
        };
        let (mut ending, no_side_effect) = self.has_recorded();
        if !is_durable {
            ending.recorded = Recorded::Failed;
        }
        self.keep(&ending, no_side_effect, None);
        (ending, late)
    }

    /// Gives back what a handler kept that had been given up, and has stopped before its call ends.
    fn give_back_kept(&self, kept: Held) {
        match self.at().parking() {
            None => self.engine().admission.zombie_gone(kept),
            Some(_) => {
                let report = self.call.zombie_stopped(kept);
                report.into_iter().for_each(|report| self.at().report_up(report));
            }
        }
    }

    /// Takes the result out of an attempt that has waited for its record, and whether it declares no side effect.
    fn has_recorded(&mut self) -> (Ending, bool) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Recording { zombie, ending, no_side_effect } => {
                self.stage = Stage::Released { zombie };
                (*ending, no_side_effect)
            }
            _ => unreachable!("nothing else moves an attempt whose result is being recorded"),
        }
    }

    /// Gives the record of what the attempt has ended with: its call's end, or that of the others of its key.
    pub(super) fn give_result(&self, ending: &mut Ending) -> Option<Pending> {
        ending.recorded = Recorded::Given;
        let call = self.at();
        match call.is_detached() {
            true => call.give_attempt_end(self.number(), &ending.status, false),
            false => call.give_end(ending),
        }
    }
}
