//! Asking for approval before a call runs: all questions of a batch at once, none of them holding a permit (CC-5).
//!
//! ```text
//!   ask ─► question ─┬─ answered ─────────► still allowed? ─► approved, or refused
//!                    ├─ settled by the answer to another ───► approved, or refused
//!                    ├─ policy changed ───► still allowed? ─► asked anew, about what would run now
//!                    ├─ expired ────────────────────────────► confirmation_timeout
//!                    └─ cancelled ──────────────────────────► withdrawn
//! ```

use super::admit::EndOnDrop;
use super::ledger::Phase;
use super::state::{BatchState, index};
use crate::{
    gate::{self, ApprovalSubject, Consent, nobody_to_ask, too_long_to_ask, user_denied},
    session::Remembered,
};
use futures::{FutureExt, future::abortable};
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
};
use toolyard_core::{Answer, ApprovalRequest, Approver, CallError, ErrorKind, EventKind, event::SettledBy};

/// How many bytes of a call's arguments events about its question show.
const SHOWN_MAX: usize = 1024;

/// The permit that a faulty engine holds while it asks.
#[cfg(toolyard_faults)]
struct HeldInApproval {
    batch: Arc<BatchState>,
    held: crate::admission::Held,
}

#[cfg(toolyard_faults)]
impl Drop for HeldInApproval {
    fn drop(&mut self) {
        let engine = &self.batch.session.engine;
        engine.admission.finish(self.held, engine.clock.now());
    }
}

/// How a question was settled.
enum Settled {
    Answered(Answer),
    /// By the answer to another question of the same pattern.
    With(Remembered),
    PolicyChanged,
    Panicked,
    Expired,
}

impl BatchState {
    /// Asks about every call that needs approval.
    pub(super) fn ask(self: &Arc<Self>) {
        let Some(approver) = &self.session.engine.gate.approver else {
            return;
        };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.work.as_ref().is_some_and(|work| work.consent.asks()) {
                self.ask_about(index(at), approver);
            }
        }
    }

    fn ask_about(self: &Arc<Self>, index: u32, approver: &Arc<dyn Approver>) {
        let mut phase = self.slots[index as usize].phase();
        if !matches!(*phase, Phase::Waiting) {
            return; // stopped meanwhile
        }
        *phase = Phase::Asking { run_begun: false };
        let question = self.question(index, approver.clone());
        self.emit(index, None, || self.requested_event(index, &question.request));
        drop(phase);
        let end_on_drop = EndOnDrop::new(self, index);
        #[cfg(toolyard_faults)]
        let permit = self.held_in_approval(index);
        let (asking, withdraw) = abortable(async move {
            question.ask().await;
            #[cfg(toolyard_faults)]
            drop(permit);
            end_on_drop.disarm();
        });
        self.session.engine.tasks.spawn(asking.map(|_| ()));
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push((index, withdraw));
        // The batch or the call may have ended before the question was in the list.
        if self.stopped.get().is_some() {
            self.withdraw_questions();
        } else if !matches!(*self.slots[index as usize].phase(), Phase::Asking { .. }) {
            self.withdraw_question(index);
        }
    }

    #[cfg(toolyard_faults)]
    fn held_in_approval(self: &Arc<Self>, index: u32) -> Option<HeldInApproval> {
        let work = self.work(index);
        let (need, resized) = self.session.need(&work.entry, work.class);
        resized.into_iter().for_each(|resized| resized.start());
        let permit = || self.session.engine.admission.try_admit(self.session.root(), need);
        let permit = faulty!(PermitHeldInApproval).then(permit).flatten()?;
        Some(HeldInApproval { batch: self.clone(), held: permit.hand_over() })
    }

    fn question(self: &Arc<Self>, index: u32, approver: Arc<dyn Approver>) -> Question {
        let (work, engine) = (self.work(index), &self.session.engine);
        let (_, digest) = work.digest_at_gate().expect("a call with an open question has a digest");
        let (entry, args, call_id) = (&work.entry, self.args(index), &self.call(index).id);
        let subject = ApprovalSubject { session: &self.session, entry, args, call_id, digest };
        let request = engine.gate.request(&subject, &engine.blocking);
        Question { batch: self.clone(), index, approver, request }
    }

    fn requested_event(&self, index: u32, request: &ApprovalRequest) -> EventKind {
        EventKind::ConfirmationRequested {
            tool_name: self.shown_name(index),
            side_effects: request.side_effects(),
            expires_ms: u64::try_from(request.expires_in().as_millis()).unwrap_or(u64::MAX),
            request: request.id(),
            digest: *request.digest(),
            arguments: shortened(self.shown_arguments(request)),
        }
    }
}

/// Cuts a text to the length that events show.
fn shortened(mut text: String) -> String {
    if text.len() > SHOWN_MAX {
        let end = (0..=SHOWN_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A question about one call.
struct Question {
    batch: Arc<BatchState>,
    index: u32,
    approver: Arc<dyn Approver>,
    request: ApprovalRequest,
}

impl Question {
    /// Asks until there is an answer about what would run now.
    async fn ask(mut self) {
        let mut others = self.batch.session.approvals().wait(self.request.pattern().key());
        let policy = self.batch.session.engine.gate.rules.changed();
        let showing = self.request.showing().clone();
        // Unconstrained: an approver that is always busy would use up the task's budget, and its expiry would go
        // unnoticed.
        let over = showing.over(self.request.expires_in(), tokio::time::sleep);
        let mut over = std::pin::pin!(tokio::task::unconstrained(over));
        loop {
            // Made before the check below, so that no later change is missed.
            let changed = policy.notified();
            if let Err(error) = self.check_again() {
                return self.refuse(error);
            }
            let settled = tokio::select! {
                biased;
                with = others.settled() => Settled::With(with),
                () = changed => Settled::PolicyChanged,
                answer = self.answer() => answer,
                () = &mut over => Settled::Expired,
            };
            match settled {
                Settled::PolicyChanged => {}
                // The answer is not about what would run now.
                Settled::Answered(answer) if self.is_outdated() && answer.allows() => {}
                Settled::Answered(answer) => return self.answered(answer),
                Settled::With(_) if self.is_outdated() => {
                    if let Err(error) = self.check_again() {
                        return self.refuse(error);
                    }
                    return self.settled_with(settled);
                }
                settled => return self.settled_with(settled),
            }
        }
    }

    /// Whether the policy has changed since the call was last allowed.
    fn is_outdated(&self) -> bool {
        self.batch.policy_of(self.index) != self.batch.session.engine.gate.rules.version()
            && !faulty!(ApprovalNotRechecked)
    }

    /// Checks a call again after a change of the policy. If it is still allowed, the question is now about what would
    /// run.
    fn check_again(&mut self) -> Result<(), CallError> {
        if !self.is_outdated() {
            return Ok(());
        }
        let (batch, entry) = (&self.batch, &self.batch.work(self.index).entry);
        let args = batch.args(self.index);
        let allowed = batch.session.engine.gate.allow_again(entry, args, &batch.session)?;
        batch.grant_anew(self.index, allowed)?;
        let digest = gate::digest(entry, args, &batch.session, allowed.policy);
        self.request = self.request.renewed(digest);
        Ok(())
    }

    async fn answer(&self) -> Settled {
        let answer = AssertUnwindSafe(async { self.approver.ask(&self.request).await }).catch_unwind();
        answer.await.map_or(Settled::Panicked, Settled::Answered)
    }

    /// Applies the approver's answer, and remembers it if it is for other calls too.
    fn answered(self, answer: Answer) {
        let once = matches!(self.batch.work(self.index).consent, Consent::Ask { once: true });
        let remembered = match answer {
            Answer::Always => Some(Remembered::Allowed),
            Answer::Allow => once.then_some(Remembered::Allowed),
            Answer::Deny => once.then_some(Remembered::Refused),
            // Nobody has said anything about other calls.
            Answer::Nobody | Answer::TooLong => None,
        };
        if let Some(remembered) = remembered {
            self.batch.session.approvals().remember(self.request.pattern().key(), remembered);
        }
        self.settled_with(Settled::Answered(answer));
    }

    fn settled_with(self, settled: Settled) {
        match settled {
            Settled::Answered(Answer::Allow | Answer::Always) => self.approve(SettledBy::Approver),
            Settled::With(Remembered::Allowed) => self.approve(SettledBy::Pattern),
            Settled::Answered(Answer::Deny) | Settled::With(Remembered::Refused) => {
                self.refuse(user_denied())
            }
            Settled::Answered(Answer::Nobody) => self.refuse(nobody_to_ask()),
            Settled::Answered(Answer::TooLong) => self.refuse(too_long_to_ask()),
            Settled::Panicked => self.refuse(CallError::new(ErrorKind::Internal, "the approver panicked")),
            Settled::Expired => self.refuse(CallError::new(
                ErrorKind::ConfirmationTimeout,
                "Nobody approved this operation in time.",
            )),
            Settled::PolicyChanged => {}
        }
    }

    fn refuse(self, error: CallError) {
        self.batch.end_unstarted(self.index, || error);
    }

    /// Approves the call: it proceeds at once if its run waits for the answer, else with its run.
    fn approve(self, by: SettledBy) {
        let Self { batch, index, .. } = self;
        let mut phase = batch.slots[index as usize].phase();
        let Phase::Asking { run_begun } = *phase else {
            return;
        };
        *phase = Phase::Waiting;
        batch.emit(index, None, || EventKind::ConfirmationResolved {
            approved: true,
            error: None,
            by: Some(by),
            digest: batch.digest(index),
        });
        drop(phase);
        if run_begun {
            batch.start_or_wait(index, batch.session.engine.clock.now());
        }
    }
}
