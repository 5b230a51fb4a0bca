//! What an answer amounts to: whether it is about what would run now, and what it changes of that (SM-5).

use super::Question;
use crate::gate::{self, CheckedEdit, Edit, Fit, NotCleared};
use toolyard_core::{Answer, Arguments, CallError, EditRefused, ErrorKind};

/// What an answer amounts to.
pub(super) enum Weighed {
    /// It is about what would run.
    Counts,
    /// It is about something else.
    Outdated,
    /// The arguments that it gives may not run.
    Refused(EditRefused),
    /// The policy refuses the call.
    Denied(CallError),
}

impl Question {
    /// Whether an answer counts, and what it changes. One that changes nothing is a plain yes from here on.
    pub(super) async fn weigh(&mut self, answer: &mut Answer) -> Weighed {
        if !answer.allows() {
            return Weighed::Counts;
        }
        let asked = *self.request.digest();
        if let Err(error) = self.check_again() {
            return Weighed::Denied(error);
        }
        if asked != *self.request.digest() {
            return Weighed::Outdated;
        }
        let Some(edited) = answer.arguments() else { return Weighed::Counts };
        if !gate::changes(edited, self.at().args(), &self.at().engine().limits) {
            *answer = answer.clone().without_edit();
            return Weighed::Counts;
        }
        match self.check_edit(edited).await {
            Err(error) => Weighed::Refused(EditRefused::from(&error)),
            Ok(edit) => {
                self.edit = Some(edit);
                Weighed::Counts
            }
        }
    }

    /// Checks what an answer changes, and takes the grant that it gets.
    async fn check_edit(&self, edited: &Arguments) -> Result<Edit, CallError> {
        let call = self.at();
        let (work, session) = (call.work(), call.session());
        let check = |fit| gate::check_edit(edited, call.call(), work, session, fit);
        let checked = match check(Fit::Unknown) {
            Err(NotCleared::Unvalidated(unvalidated)) => {
                let until = gate::validations_end(&session.engine, session.engine.clock.now());
                gate::validate_at_length(&session.engine, unvalidated, until).await?;
                check(Fit::Known)
            }
            checked => checked,
        };
        match checked {
            Ok(CheckedEdit { edit, allowed, digest }) => {
                call.grant_anew(allowed, Some(digest))?;
                Ok(edit)
            }
            Err(NotCleared::Refused(error)) => Err(error),
            Err(NotCleared::Answered(..) | NotCleared::Replayed(..) | NotCleared::Unvalidated(_)) => {
                Err(CallError::new(ErrorKind::Internal, "the changed arguments could not be checked"))
            }
        }
    }
}
