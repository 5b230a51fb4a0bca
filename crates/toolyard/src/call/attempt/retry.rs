//! What follows an attempt: its call's end, or another attempt (RT-1).

use crate::{
    call::{
        attempt::{Attempt, Stage, supervise::SandboxPart},
        deadline::earlier,
        ending::Ending,
        progress::Progress,
    },
    record::Foundation,
    tool::{Decision, Ended, Paid, Repeatability, Span, Verdicts, retry::decide},
};
use std::time::Duration;
use tokio::time::Instant;
use toolyard_core::{CallError, ErrorKind, Reason, RetryStopped};

/// The length of a backoff that is too long for the clock to represent its end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Attempt {
    /// Reports its end to the breakers.
    #[inline(always)]
    pub(crate) fn count(&mut self, ending: &Ending, sandbox: SandboxPart, ended_at: Instant) {
        let slots = match std::mem::replace(&mut self.stage, Stage::Counted) {
            Stage::Running(slots) => slots,
            other => return self.stage = other,
        };
        let engine = self.engine();
        let slots = match &ending.status {
            Ok(_) => match self.work().entry.guard().succeeded(slots, ended_at) {
                Some(slots) => slots,
                None => return,
            },
            Err(_) => slots,
        };
        let verdicts = match &ending.status {
            Ok(_) => Verdicts::SUCCESS,
            Err(error) => verdicts(error, sandbox),
        };
        let (now, chance) = (|| ended_at, || engine.chance.roll());
        let moves = self.work().entry.guard().record(slots, verdicts, now, chance);
        engine.emit_transitions(&self.work().entry, &moves);
    }

    /// Decides whether the call is tried again after this failure.
    #[cold]
    #[inline(never)]
    pub(crate) fn after_failure(
        &self,
        error: &CallError,
        no_side_effect: bool,
        still_running: bool,
        ended_at: Instant,
    ) -> Decision {
        let entry = &self.work().entry;
        let engine = self.engine();
        if self.at().cancelled().is_some() {
            return Decision::Stop(None);
        }
        let ended = Ended {
            kind: error.kind,
            effect: error.effect,
            no_side_effect,
            hint: error.retry_after.filter(|_| may_carry_a_hint(error.kind)),
            attempt: self.number(),
        };
        let call = Repeatability {
            repeatable: entry.spec().is_repeatable(),
            recursive: entry.spec().recursive,
            has_dispatched: self.at().parking().is_some(),
        };
        let bounds = self.bounds();
        // If its own deadline comes earlier, another call takes over the flight.
        let deadline = self.at().flight_run_by().map_or(bounds.deadline, |flight| flight.deadline());
        let deadline = earlier(deadline, self.at().last_cut_at(self.first_times().1));
        let span = Span { now: ended_at, deadline, attempt_timeout: bounds.timeout };
        let guard = entry.guard();
        if let Some(until) = ended.hint.and_then(|hint| ended_at.checked_add(hint)) {
            guard.pause_until(ended_at, until);
        }
        let decision = decide(&ended, call, span, &guard.retry, &guard.bucket, engine.chance.roll());
        match decision {
            // The handler still runs, and would run beside the next attempt.
            Decision::Retry { paid, .. } if still_running => {
                guard.bucket.refund(paid);
                Decision::Stop(Some(RetryStopped::Zombie))
            }
            decision => decision,
        }
    }

    /// Reports the result to the call's key, before anyone else sees it (V1). `ended_at` is when the attempt ended, if
    /// that is just now.
    #[inline(always)]
    pub(crate) fn keep(&mut self, ending: &Ending, no_side_effect: bool, ended_at: Option<Instant>) {
        let Stage::Released { zombie } = &mut self.stage else { return };
        self.stage = Stage::Reported { zombie: zombie.take() };
        if self.at().flight_of_attempt().is_some() {
            let now = ended_at.unwrap_or_else(|| self.engine().clock.now());
            self.at().complete(&ending.status, ending.attempts, no_side_effect, now);
        }
    }

    /// Leaves the call waiting for its next attempt.
    pub(crate) fn try_again(&mut self, ending: Ending, paid: Paid, delay: Duration, span: tracing::Span) {
        self.stage = Stage::Done;
        let (ready_at, granted_at) = self.first_times();
        let recorded = Foundation::of(self.at().give_attempt_end(ending.attempts, &ending.status, true));
        let Err(error) = ending.status else { return };
        let now = self.engine().clock.now();
        let not_before = now.checked_add(delay).unwrap_or(now + LONGEST);
        let attempts = ending.attempts;
        let progress = Progress {
            attempts,
            error,
            ready_at,
            granted_at,
            not_before,
            paid,
            span,
            inherited: false,
            recorded,
        };
        self.at().try_again(Box::new(progress), delay);
    }

    /// Credits a success to the tool's retry bucket (RT-5).
    #[inline(always)]
    pub(crate) fn succeeded(&mut self, ending: &Ending) {
        if ending.status.is_err() {
            return;
        }
        let bucket = &self.call.at().work().entry.guard().bucket;
        match &mut self.progress {
            None => bucket.first_success(),
            // The rest of it still says which attempt this is.
            Some(progress) => bucket.refund(std::mem::take(&mut progress.paid)),
        }
    }
}

/// What an attempt that ended with this error says to its breakers.
fn verdicts(error: &CallError, sandbox: SandboxPart) -> Verdicts {
    match (sandbox, error.kind) {
        // The tool did its part; that there was no room for the result says nothing of it.
        _ if error.reason == Some(Reason::ResultBudget) => Verdicts::IGNORED,
        // The grant asks too much of the sandbox: none of them is to blame.
        (SandboxPart::Refused, _) => Verdicts::IGNORED,
        // A sandbox that failed when its call had been told to stop is not counted (CB-3).
        (SandboxPart::Failed { started }, ErrorKind::SandboxError) => Verdicts::of_failed_sandbox(started),
        (_, kind) => Verdicts::of(kind),
    }
}

/// Whether the wait in this failure is a hint from the remote (RT-3).
fn may_carry_a_hint(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Transient | ErrorKind::RateLimited)
}
