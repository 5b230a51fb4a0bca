//! The answer that settled a call's question, and whose it was (SM-5).

use toolyard_core::{
    Answer, CallDigest, ErrorKind, EventKind,
    event::{ConfirmationResolution, SettledBy},
};

/// An answer, and how it came to settle this question.
pub(crate) struct Verdict {
    pub(super) answer: Answer,
    by: SettledBy,
}

impl Verdict {
    pub(super) fn new(answer: Answer, by: SettledBy) -> Self {
        Self { answer, by }
    }

    /// The event of a question that this settled: with the error of a no, or the digest of what a yes lets run, and what
    /// was changed of that.
    pub(super) fn event(
        &self,
        error: Option<ErrorKind>,
        digest: Option<CallDigest>,
        edit: Option<(String, Vec<String>)>,
    ) -> EventKind {
        let (input_summary, projected_modifications) = edit.unzip();
        EventKind::ConfirmationResolved(Box::new(ConfirmationResolution {
            approved: error.is_none(),
            decision: Some(self.answer.decision()),
            who: self.answer.who().map(str::to_owned),
            reason: self.answer.reason().map(str::to_owned),
            error,
            by: Some(self.by),
            digest,
            input_summary,
            projected_modifications: projected_modifications.unwrap_or_default(),
        }))
    }
}

/// The event of a question that ended without an answer.
pub(super) fn unanswered(error: ErrorKind) -> EventKind {
    EventKind::ConfirmationResolved(Box::new(ConfirmationResolution {
        approved: false,
        decision: None,
        who: None,
        reason: None,
        error: Some(error),
        by: None,
        digest: None,
        input_summary: None,
        projected_modifications: Vec::new(),
    }))
}
