//! A person who answers as told.

use parking_lot::Mutex;
use std::{collections::VecDeque, fmt, future::pending, sync::Arc};
use toolyard_core::{Answer, ApprovalRequest, Approver, Receipt, async_trait};

/// An [`Approver`] that gives its answers in turn and remembers what it was asked. The last answer serves all further
/// questions. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct ScriptedApprover {
    shared: Arc<Mutex<State>>,
}

struct State {
    /// Empty if it never answers.
    answers: VecDeque<Answer>,
    asked: Vec<ApprovalRequest>,
    receipts: Vec<Receipt>,
}

impl ScriptedApprover {
    /// One that gives these answers, one after another. Without any, it [never](Self::never) answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let state = State { answers: answers.into_iter().collect(), asked: Vec::new(), receipts: Vec::new() };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// One that is asked and never answers: its questions end when their time is over.
    pub fn never() -> Self {
        Self::new([])
    }

    /// What it was asked so far, in order.
    pub fn asked(&self) -> Vec<ApprovalRequest> {
        self.shared.lock().asked.clone()
    }

    /// What became of its answers, in order.
    pub fn receipts(&self) -> Vec<Receipt> {
        self.shared.lock().receipts.clone()
    }
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let answer = {
            let mut state = self.shared.lock();
            state.asked.push(request.clone());
            if state.answers.len() > 1 { state.answers.pop_front() } else { state.answers.front().cloned() }
        };
        match answer {
            Some(answer) => answer,
            None => pending().await,
        }
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.shared.lock().receipts.push(receipt);
    }
}

impl fmt::Debug for ScriptedApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedApprover")
            .field("asked", &self.shared.lock().asked.len())
            .finish_non_exhaustive()
    }
}
