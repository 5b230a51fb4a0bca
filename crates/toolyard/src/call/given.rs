//! An answer between its giver and the engine: it counts when the engine has taken it, and its giver is told (SM-6).

use crate::tasks::{Contained, caught};
use std::sync::Arc;
use toolyard_core::{ApprovalRequest, Approver, Receipt};
use toolyard_redact::Redactor;

/// An answer of which its giver has not been told what became of it. Dropping it says that it came too late.
pub(super) struct Given {
    approver: Contained<Arc<dyn Approver>>,
    request: ApprovalRequest,
    redactor: Option<Redactor>,
    is_told: bool,
}

impl Given {
    pub(super) fn new(
        approver: Contained<Arc<dyn Approver>>,
        request: ApprovalRequest,
        redactor: Option<Redactor>,
    ) -> Self {
        Self { approver, request, redactor, is_told: false }
    }

    /// Tells the giver. Callers must hold no lock: this is the embedder's code.
    pub(super) fn tell(mut self, receipt: Receipt) {
        self.tell_once(receipt);
    }

    fn tell_once(&mut self, receipt: Receipt) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        if let Err(panic) = caught(|| self.approver.receipt(&self.request, receipt)) {
            let what = "an approver panicked when it was told what became of its answer";
            panic.log(what, Some(self.request.tool()), self.redactor.as_ref());
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.tell_once(Receipt::Withdrawn);
    }
}
