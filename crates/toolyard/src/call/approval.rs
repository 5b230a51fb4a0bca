//! Asking for approval before a call runs: all questions of a batch at once, none of them holding a permit (CC-5).
//!
//! What happens to one question is in [`question`](super::question).

use crate::{
    call::{batch::BatchState, in_flight::InFlight, question::Question, ready::EndOnDrop, run::index},
    gate::{self, ApprovalSubject},
    record::PastQuestion,
    tasks::Contained,
};
use futures::{FutureExt, future::abortable};
use std::sync::Arc;
use toolyard_core::{
    ApprovalRequest, Approver, EventKind, LinkedPath, RequestId, event::ConfirmationRequest,
};

/// How many bytes of a call's arguments events about its question show.
const SHOWN_MAX: usize = 1024;

/// How many of the paths and hosts that a call names such events show.
const PROJECTED_MAX: usize = 32;

impl BatchState {
    /// Asks about every call that needs approval.
    pub(crate) fn ask(self: &Arc<Self>) {
        let Some(approver) = &self.session.engine.approver else {
            return;
        };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.work.as_ref().is_some_and(|work| work.consent.asks()) {
                self.at(index(at)).ask_about(approver);
            }
        }
    }
}

impl InFlight<'_> {
    fn ask_about(self, approver: &Contained<Arc<dyn Approver>>) {
        // With a recorder, it is shown once its record is durable.
        let shown_now = self.engine().recorder.is_none();
        let mut life = self.slot().life();
        if !life.asks(shown_now) {
            return; // stopped meanwhile
        }
        let question = self.question(approver.clone());
        if shown_now {
            self.emit(None, || self.requested_event(question.request(), question.shares()));
        }
        drop(life);
        let end_on_drop = EndOnDrop::new(self);
        let (asking, withdraw) = abortable(async move {
            question.ask().await;
            end_on_drop.disarm();
        });
        self.engine().tasks.spawn(asking.map(|_| ()));
        self.batch.make_rare().questions.lock().insert(self.index, withdraw);
        // The batch or the call may have ended before the question was in the list.
        if self.batch.stopped.get().is_some() {
            self.batch.withdraw_questions();
        } else if !self.slot().life().is_asking() {
            self.withdraw_question();
        }
    }

    fn question(self, approver: Contained<Arc<dyn Approver>>) -> Question {
        let work = self.work();
        let digest = *work.digest_at_gate().expect("a call with an open question has a digest").get();
        let (entry, args, call_id) = (&work.entry, self.args(), &self.call().id);
        let (session, turn) = (self.session(), self.batch.turn);
        let subject = ApprovalSubject { session, entry, args, turn, call_id, digest, paths: work.paths() };
        let before = self.question_before();
        let request = gate::request(&subject, before.map(|before| before.request));
        // What is approved was seen: where its paths led, too (PO-4). Where those of an edit led is not recorded.
        let names_paths = !work.entry.spec().requires_fs.is_empty();
        let leads_as_before = |before: &&PastQuestion| {
            let is_edited = before.answer.as_ref().is_some_and(|(_, answer)| answer.arguments().is_some());
            let links = request.links().iter().map(LinkedPath::to_string);
            links.eq(before.links.iter().cloned()) && !(is_edited && names_paths)
        };
        let recalled = before.filter(leads_as_before).and_then(|before| before.answer.clone());
        Question::new(self.owned(), approver, request).recalling(recalled)
    }

    /// Shows the question. `false` if nobody is to be asked any more.
    pub(super) fn show(self, request: &ApprovalRequest, shares: Option<RequestId>) -> bool {
        let mut life = self.slot().life();
        let shows = life.shows();
        if shows {
            self.emit(None, || self.requested_event(request, shares));
        }
        shows
    }

    fn requested_event(self, request: &ApprovalRequest, shares: Option<RequestId>) -> EventKind {
        EventKind::ConfirmationRequested(Box::new(ConfirmationRequest {
            tool_name: self.recorded_name(),
            side_effects: request.side_effects(),
            expires_ms: u64::try_from(request.expires_in().as_millis()).unwrap_or(u64::MAX),
            request: request.id(),
            digest: *request.digest(),
            input_summary: shortened(self.batch.redacted_arguments(request.arguments())),
            projected_modifications: self.projected(),
            shares,
        }))
    }
}

impl InFlight<'_> {
    /// What the person who approved the call changed, as events show it: the arguments, and the paths and resources
    /// that they name.
    pub(super) fn edit_shown(self) -> Option<(String, Vec<String>)> {
        let edit = self.work().edit()?;
        Some((shortened(self.batch.redacted_arguments(&edit.args)), self.projected()))
    }

    /// The paths and resources that the call names, as far as events show them.
    fn projected(self) -> Vec<String> {
        let names = gate::projected(&self.work().entry, self.args());
        names.into_iter().take(PROJECTED_MAX).map(shortened).collect()
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
