//! What an attempt gives back, and the result it writes.

use crate::{
    call::{
        attempt::{
            Attempt, Stage,
            classify::{Facts, classify},
            execute::HandlerStopped,
            supervise::Verdict,
            watch::DetachReason,
            zombie::{Zombie, a_zombie_keeps},
        },
        end::End,
        ending::{Ending, Recorded},
        nested::Report,
        refusals::vanished_error,
        run::Step,
        span,
        stop::Stop,
    },
    gate,
    record::When,
};
use tokio::time::Instant;
use toolyard_admission::Held;
use toolyard_core::{CallError, Dedupe, Effect, ErrorKind};

impl Attempt {
    /// Releases the permits before the result is written, except what a handler that still runs keeps.
    #[inline(always)]
    pub(super) fn release(&mut self, still_running: bool, at: Instant) {
        if matches!(self.stage, Stage::Unstarted(_) | Stage::Running(_) | Stage::Counted) {
            let zombie = self.give_back(still_running, at);
            self.stage = Stage::Released { zombie };
        }
    }

    /// Gives its units back; returns what a handler that still runs keeps.
    fn give_back(&self, still_running: bool, at: Instant) -> Option<Box<Held>> {
        let keeps = |unit| a_zombie_keeps(self.work().class, unit);
        let admission = &self.engine().admission;
        let zombie = match self.at().close_parking() {
            Some(parking) => {
                let kept = parking.handler_over(&self.call, still_running.then_some(&keeps));
                still_running.then(|| Box::new(kept))
            }
            None if still_running => {
                let (kept, granted) = admission.become_zombie(self.held, keeps);
                granted.start();
                Some(Box::new(kept))
            }
            None => {
                admission.finish(self.held, at);
                None
            }
        };
        self.at().handler_released();
        zombie
    }

    /// Runs the hook at the call's end (V1). If the task is dropped meanwhile, `Drop` writes the result kept here.
    pub(super) async fn run_end_hook(&mut self, ending: Ending) -> Ending {
        let outcome = Box::new(self.at().outcome(ending));
        self.stage = Stage::InHook { zombie: self.take_zombie(), outcome };
        if let Stage::InHook { outcome, .. } = &self.stage {
            gate::ended(self.engine(), outcome, &self.batch().caller()).await;
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::InHook { zombie, outcome } => {
                self.stage = Stage::Reported { zombie };
                Ending::of_outcome(*outcome)
            }
            _ => unreachable!("nothing else moves an attempt whose hook runs"),
        }
    }

    /// Writes the result. The call is quiescent now, or once its handler and all calls under it have stopped (V2).
    #[inline(always)]
    pub(super) fn finish(&mut self, ending: Ending, still_running: Option<HandlerStopped>, when: When) {
        let zombie = self.take_zombie();
        self.write(ending, still_running.is_some(), when);
        if let (Some(stopped), Some(held)) = (still_running, zombie) {
            let zombie = Zombie::new(self.call.clone(), self.number(), *held);
            self.engine().tasks.spawn(zombie.watch(stopped));
        }
    }

    /// Takes what a handler that was given up still holds.
    #[inline(always)]
    pub(super) fn take_zombie(&mut self) -> Option<Box<Held>> {
        match &mut self.stage {
            Stage::Released { zombie }
            | Stage::Recording { zombie, .. }
            | Stage::Reported { zombie }
            | Stage::InHook { zombie, .. } => zombie.take(),
            Stage::Unstarted(_) | Stage::Running(_) | Stage::Counted | Stage::Done => None,
        }
    }

    /// Writes the result, and reports upwards if the call is not simply quiescent with it.
    #[inline(always)]
    fn write(&mut self, ending: Ending, is_zombie: bool, when: When) {
        self.stage = Stage::Done;
        let has_dispatched = self.at().parking().is_some();
        let is_quiescent = !is_zombie && !has_dispatched;
        // Most flights have no followers, and then the call ends as one without a flight.
        let flight = self.at().flight_of_attempt().filter(|flight| !(is_quiescent && flight.ends_alone()));
        let on_flight = match flight {
            None => {
                let step = if is_quiescent { Step::EndedAndQuiescent } else { Step::Ended };
                let call = self.at();
                call.end(call.slot().life(), End::Ran(ending, step, when));
                false
            }
            Some(flight) => {
                self.at().land(flight, ending);
                true
            }
        };
        let report = match has_dispatched {
            true => self.call.next_report(),
            false if is_zombie => Some(Report::Listed),
            // Its followers become quiescent with it.
            false => on_flight.then_some(Report::Quiescent),
        };
        if let Some(report) = report {
            self.at().report_up(report);
        }
    }

    /// The end of a call whose handler goes on for others, from what is known now.
    pub(super) fn detached_ending(&self, why: DetachReason) -> Ending {
        let error = match why {
            DetachReason::Cancelled => match self.at().stop_reason() {
                Some(Stop::Failed) => {
                    CallError::new(ErrorKind::Internal, "the engine failed while the call ran")
                }
                _ => CallError::new(ErrorKind::Cancelled, "the call was cancelled while it ran"),
            },
            DetachReason::PastDeadline => {
                CallError::new(ErrorKind::DeadlineExceeded, "the call's deadline passed")
            }
        };
        let mut error = error.after_attempts(self.number());
        if self.work().entry.spec().side_effects.is_read_only() {
            error.set_effect(Effect::Failed); // whatever the handler does, it changes nothing
        }
        let now = self.engine().clock.now();
        let ending = Ending {
            status: Err(Box::new(error)),
            queued: self.queued().into(),
            ran: now.saturating_duration_since(self.first_times().1).into(),
            attempts: self.number(),
            sandbox: self.confinement().sandbox,
            cancel_requested: matches!(why, DetachReason::Cancelled),
            dedupe: Dedupe::Fresh,
            recorded: Recorded::NotYet,
        };
        ending.with_edit(self.at().edited())
    }

    #[inline(always)]
    pub(super) fn ending(&self, verdict: Verdict, ended_at: Instant) -> Ending {
        let (engine, work, confinement) = (self.engine(), self.work(), self.confinement());
        let stop = self.at().cancelled();
        let facts = Facts {
            entry: &work.entry,
            confinement,
            output_bytes_max: engine.limits.output_bytes_max,
            stop,
            attempt: self.number(),
            redactor: engine.redactor.as_ref(),
        };
        let has_run = verdict.has_run();
        let status = match (classify(verdict, &facts), &self.progress) {
            // It did not start this time, but it did before.
            (Err(error), Some(progress)) if !has_run => {
                Err(Box::new(error.after_error(progress.error.clone())))
            }
            (status, _) => status,
        };
        let attempts = self.number() - u32::from(!has_run);
        Ending {
            status,
            queued: self.queued().into(),
            ran: ended_at.saturating_duration_since(self.first_times().1).into(),
            attempts,
            sandbox: confinement.sandbox,
            cancel_requested: stop.is_some(),
            dedupe: Dedupe::Fresh,
            recorded: Recorded::NotYet,
        }
    }
}

impl Drop for Attempt {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Done) {
            self.vanish();
        }
    }
}

impl Attempt {
    /// Writes a result for a call whose task is dropped.
    #[cold]
    #[inline(never)]
    fn vanish(&mut self) {
        if self.vanishes_unstarted() {
            return;
        }
        self.release(false, self.engine().clock.now());
        let zombie = self.take_zombie();
        let ending = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::InHook { outcome, .. } => Ending::of_outcome(*outcome),
            Stage::Recording { mut ending, no_side_effect, .. } => {
                // Nobody is left to wait for its record.
                ending.recorded = Recorded::Failed;
                self.stage = Stage::Released { zombie: None };
                self.keep(&ending, no_side_effect, None);
                *ending
            }
            stage => {
                let vanished = Ending::vanished(vanished_error(self.number()), self.queued());
                let mut ending = vanished.with_edit(self.at().edited());
                if self.give_result(&mut ending).is_some() {
                    ending.recorded = Recorded::Failed;
                }
                if let Some(span) = self.at().forget_span() {
                    span::ended(&span, self.at(), &ending);
                }
                self.stage = stage;
                self.keep(&ending, false, None);
                ending
            }
        };
        self.write(ending, zombie.is_some(), When::Now);
        // There is no task left to wait for a handler that was given up.
        drop(zombie.map(|held| Zombie::new(self.call.clone(), self.number(), *held)));
    }
}
