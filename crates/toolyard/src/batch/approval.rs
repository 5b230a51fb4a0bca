//! Asking before a call runs: every question of a batch at once, none of them holding a permit (CC-5).

use super::admit::OrEnd;
use super::ledger::Phase;
use super::state::{BatchState, index};
use futures::{FutureExt, future::abortable};
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
};
use tokio::time::error::Elapsed;
use toolyard_core::{Answer, ApprovalRequest, Approver, CallError, ErrorKind, EventKind, wording};

impl BatchState {
    /// Asks about every call that has to be asked about.
    pub(super) fn ask(self: &Arc<Self>) {
        let Some(approver) = &self.session.engine.gate.approver else {
            return;
        };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.work.as_ref().is_some_and(|work| work.ask) {
                let index = index(at);
                self.ask_about(index, approver.clone());
            }
        }
    }

    fn ask_about(self: &Arc<Self>, index: u32, approver: Arc<dyn Approver>) {
        let engine = &self.session.engine;
        let within = engine.gate.confirmations.answer_within();
        let mut phase = self.slots[index as usize].phase();
        if !matches!(*phase, Phase::Waiting) {
            return; // stopped meanwhile
        }
        *phase = Phase::Asking { run_begun: false };
        self.emit(index, None, || EventKind::ConfirmationRequested {
            tool_name: self.shown_name(index),
            side_effects: self.work(index).entry.spec().side_effects,
            expires_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
        });
        drop(phase);
        let (batch, request, or_end) = (self.clone(), self.request(index), OrEnd::new(self, index));
        let (question, withdraw) = abortable(async move {
            let asked = AssertUnwindSafe(async { approver.ask(&request).await }).catch_unwind();
            match tokio::time::timeout(within, asked).await {
                Ok(Ok(Answer::Allow)) => batch.approved(index),
                answer => {
                    batch.end_unstarted(index, || refusal(answer));
                }
            }
            or_end.disarm();
        });
        engine.tasks.spawn(question.map(|_| ()));
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push((index, withdraw));
        // Ended before this one could be seen.
        if self.stopped.get().is_some() {
            self.withdraw_questions();
        } else if !matches!(*self.slots[index as usize].phase(), Phase::Asking { .. }) {
            self.withdraw_question(index);
        }
    }

    fn request(&self, index: u32) -> ApprovalRequest {
        let (call, work, caller) = (self.call(index), self.work(index), self.caller());
        ApprovalRequest::new(
            caller.session.clone(),
            caller.agent.clone(),
            call.id.clone(),
            call.name.clone(),
            work.args.clone(),
            work.entry.spec().side_effects,
        )
    }

    /// Lets a call go on that was asked about: at once when its run waits for the answer, else with its run.
    fn approved(self: &Arc<Self>, index: u32) {
        let mut phase = self.slots[index as usize].phase();
        let Phase::Asking { run_begun } = *phase else {
            return;
        };
        *phase = Phase::Waiting;
        self.emit(index, None, || EventKind::ConfirmationResolved { approved: true, error: None });
        drop(phase);
        if run_begun {
            self.go(index, self.session.engine.clock.now());
        }
    }
}

/// Why a call may not run for which the answer was not yes.
fn refusal<P>(answer: Result<Result<Answer, P>, Elapsed>) -> CallError {
    match answer {
        Ok(Ok(_)) => CallError::new(ErrorKind::UserDenied, wording::USER_DENIED),
        Ok(Err(_)) => CallError::new(ErrorKind::Internal, "the approver panicked"),
        Err(_) => CallError::new(ErrorKind::ConfirmationTimeout, "Nobody approved this operation in time."),
    }
}
