//! Asking for approval before a call runs: all questions of a batch at once, none of them holding a permit (CC-5).
//!
//! What happens to one question is in [`question`](super::question).

use super::batch::{BatchState, index};
use super::question::Question;
use super::ready::EndOnDrop;
use super::slot::Phase;
use crate::{
    gate::{self, ApprovalSubject},
    tasks::Contained,
};
use futures::{FutureExt, future::abortable};
use std::sync::{Arc, PoisonError};
use toolyard_core::{ApprovalRequest, Approver, EventKind, RequestId};

/// How many bytes of a call's arguments events about its question show.
const SHOWN_MAX: usize = 1024;

impl BatchState {
    /// Asks about every call that needs approval.
    pub(crate) fn ask(self: &Arc<Self>) {
        let Some(approver) = &self.session.engine.approver else {
            return;
        };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.work.as_ref().is_some_and(|work| work.consent.asks()) {
                self.ask_about(index(at), approver);
            }
        }
    }

    fn ask_about(self: &Arc<Self>, index: u32, approver: &Contained<Arc<dyn Approver>>) {
        let mut phase = self.slots[index as usize].phase();
        if !matches!(*phase, Phase::Waiting) {
            return; // stopped meanwhile
        }
        *phase = Phase::Asking { run_begun: false };
        let question = self.question(index, approver.clone());
        self.emit(index, None, || self.requested_event(index, question.request(), question.shares()));
        drop(phase);
        let end_on_drop = EndOnDrop::new(self, index);
        let (asking, withdraw) = abortable(async move {
            question.ask().await;
            end_on_drop.disarm();
        });
        self.session.engine.tasks.spawn(asking.map(|_| ()));
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(index, withdraw);
        // The batch or the call may have ended before the question was in the list.
        if self.stopped.get().is_some() {
            self.withdraw_questions();
        } else if !matches!(*self.slots[index as usize].phase(), Phase::Asking { .. }) {
            self.withdraw_question(index);
        }
    }

    fn question(self: &Arc<Self>, index: u32, approver: Contained<Arc<dyn Approver>>) -> Question {
        let work = self.work(index);
        let (_, digest) = work.digest_at_gate().expect("a call with an open question has a digest");
        let (entry, args, call_id) = (&work.entry, self.args(index), &self.call(index).id);
        let subject =
            ApprovalSubject { session: &self.session, entry, args, call_id, digest, paths: work.paths() };
        let request = gate::request(&subject);
        Question::new(self.clone(), index, approver, request)
    }

    fn requested_event(&self, index: u32, request: &ApprovalRequest, shares: Option<RequestId>) -> EventKind {
        EventKind::ConfirmationRequested {
            tool_name: self.shown_name(index),
            side_effects: request.side_effects(),
            expires_ms: u64::try_from(request.expires_in().as_millis()).unwrap_or(u64::MAX),
            request: request.id(),
            digest: *request.digest(),
            arguments: shortened(self.shown_arguments(request)),
            shares,
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
