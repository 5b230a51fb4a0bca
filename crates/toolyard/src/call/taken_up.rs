//! What a call goes on from that an earlier life of the engine has left open (JR-5, JR-9).

use crate::{
    call::{
        before::Before,
        in_flight::InFlight,
        progress::{Bid, Progress},
        refusals::interrupted_error,
    },
    record::{Foundation, PastQuestion},
    tasks::Contained,
    tool::Paid,
};
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_core::{
    Answer, ApprovalRequest, Approver, CallDigest, Decision, ErrorKind, EventKind, Receipt, async_trait,
};

impl<'a> InFlight<'a> {
    /// What was done for the call before.
    fn before(self) -> Option<&'a Before> {
        self.batch.rare()?.before.get()?.get(self.index as usize)
    }

    /// The question that an earlier life of the engine has asked about it.
    #[cold]
    pub(super) fn question_before(self) -> Option<&'a PastQuestion> {
        self.before()?.question.as_ref()
    }

    /// The bid for the call's first attempt in this life of the engine.
    #[inline(always)]
    pub(super) fn first_bid(self, ready_at: Instant) -> Bid {
        match self.batch.rare() {
            Some(rare) if rare.before.get().is_some() => self.next_bid(ready_at),
            _ => Bid::first(ready_at),
        }
    }

    #[cold]
    #[inline(never)]
    fn next_bid(self, ready_at: Instant) -> Bid {
        let Some(before) = self.before().filter(|before| before.attempts > 0) else {
            return Bid::first(ready_at);
        };
        let attempts = before.attempts;
        let error = before.error.clone().unwrap_or_else(|| Box::new(interrupted_error(attempts)));
        self.emit(Some(attempts), || EventKind::Retry { delay_ms: 0, code: ErrorKind::Interrupted });
        let progress = Progress {
            attempts,
            error,
            ready_at,
            granted_at: ready_at,
            not_before: ready_at,
            paid: Paid::default(),
            span: tracing::Span::none(),
            inherited: true,
            recorded: Foundation::default(),
        };
        Bid { ready_at, progress: Some(Box::new(progress)) }
    }
}

/// Gives the answer that an earlier life of the engine was given, if it is about what would run now; asks otherwise.
pub(super) struct Recalled {
    pub(super) digest: CallDigest,
    pub(super) answer: Answer,
    pub(super) approver: Contained<Arc<dyn Approver>>,
}

impl Recalled {
    /// The answer, for this call alone: what was remembered is not (JR-10).
    pub(super) fn new(digest: CallDigest, answer: &Answer, approver: Contained<Arc<dyn Approver>>) -> Self {
        let who = answer.who().unwrap_or_default();
        let mut for_this = match (answer.decision(), answer.arguments()) {
            (Decision::Allow | Decision::Always, None) => Answer::allow(who),
            (Decision::Allow | Decision::Always, Some(edited)) => Answer::edit(who, edited.clone()),
            (Decision::Deny | Decision::Never, _) => Answer::deny(who),
            (Decision::Nobody, _) => Answer::nobody(),
            (Decision::TooLong, _) => Answer::too_long(),
        };
        if let Some(reason) = answer.reason() {
            for_this = for_this.because(reason);
        }
        Self { digest, answer: for_this, approver }
    }
}

#[async_trait]
impl Approver for Recalled {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        // Asked again because what was changed may not run: whoever changed it is not here.
        let still_holds = *request.digest() == self.digest && request.refused().is_none();
        if still_holds { self.answer.clone() } else { self.approver.ask(request).await }
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        self.approver.receipt(request, receipt);
    }
}
