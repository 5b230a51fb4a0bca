//! Questions laid on a desk, for whoever comes to answer them (PO-4).

use async_trait::async_trait;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, oneshot};
use toolyard_core::{Answer, ApprovalRequest, Approver, CallDigest, RequestId};

/// Questions that lie on a desk at once. More are answered no.
const PENDING_MAX: usize = 65_536;

/// Settled questions that are remembered, so that a late answer is told apart from one to nothing.
const SETTLED_MAX: usize = 4096;

/// Why an answer was refused. Nothing has changed by it (PO-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such question, or it is long over.
    #[error("there is no question {0}")]
    Unknown(RequestId),
    /// The question has been answered: the first answer counts.
    #[error("question {0} has its answer: the first one counts")]
    Answered(RequestId),
    /// The question is over without an answer: its call was cancelled, its time was over, or another answer was for it
    /// too.
    #[error("question {0} was withdrawn")]
    Withdrawn(RequestId),
    /// The answer is for something else than what would run now: look at the question again.
    #[error("the answer to question {0} is for something else than what would run")]
    Digest(RequestId),
}

/// An [`Approver`] for programs that ask elsewhere: in a window, in a chat, over a wire. The engine lays its questions
/// on the desk, the program takes them up and answers, each with the digest of what it was asked about. Cheap to clone;
/// clones are the same desk. A desk serves one engine.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Answer, ApprovalDesk, Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let save = tool_fn(ToolSpec::write("save"), |(): (), _: ToolContext| async { Ok("saved") });
/// let desk = ApprovalDesk::default();
/// let engine = Engine::builder().tool(save).approver(desk.clone()).build().await.unwrap();
///
/// let person = async {
///     let question = desk.next().await;
///     assert_eq!(&**question.tool(), "save");
///     desk.answer(question.id(), question.digest(), Answer::Allow).unwrap();
///     assert!(desk.answer(question.id(), question.digest(), Answer::Deny).is_err()); // the first counts
/// };
/// let session = engine.session("demo");
/// let (outcome, ()) = tokio::join!(session.call(Call::new("call_1", "save", "{}")), person);
/// assert_eq!(outcome.to_text(), "saved");
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ApprovalDesk {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    laid: Notify,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<RequestId, Pending>,
    /// Questions that are over, oldest first, and whether they were answered.
    settled: VecDeque<(RequestId, bool)>,
}

struct Pending {
    request: ApprovalRequest,
    answer: oneshot::Sender<Answer>,
    taken: bool,
}

impl State {
    /// A question is over.
    fn settle(&mut self, id: RequestId, answered: bool) {
        if self.settled.len() == SETTLED_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back((id, answered));
    }
}

impl ApprovalDesk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest question that nobody has taken up, taken up now; waits for one. A question that is asked anew, as
    /// after a change of policy, is there to be taken up again.
    ///
    /// # Cancel safety
    /// Dropping the future takes up nothing.
    pub async fn next(&self) -> ApprovalRequest {
        loop {
            let laid = self.shared.laid.notified();
            if let Some(request) = self.take() {
                return request;
            }
            laid.await;
        }
    }

    fn take(&self) -> Option<ApprovalRequest> {
        let mut state = self.state();
        let mut untaken = state.pending.values_mut().filter(|pending| !pending.taken);
        let pending = untaken.next()?;
        pending.taken = true;
        // Two that are laid at once wake one.
        if untaken.next().is_some() {
            self.shared.laid.notify_one();
        }
        Some(pending.request.clone())
    }

    /// Every question without an answer, oldest first, whether or not somebody has taken it up.
    pub fn pending(&self) -> Vec<ApprovalRequest> {
        self.state().pending.values().map(|pending| pending.request.clone()).collect()
    }

    /// Answers a question. `digest` is that of the request which the answer is for. Should the policy change in the very
    /// moment, the question is laid on the desk again, about what would run now.
    ///
    /// # Errors
    /// [`AnswerError`]; a question that is still open stays so.
    pub fn answer(&self, id: RequestId, digest: &CallDigest, answer: Answer) -> Result<(), AnswerError> {
        let mut state = self.state();
        let Some(pending) = state.pending.get(&id) else {
            let settled = state.settled.iter().rev().find(|(of, _)| *of == id);
            return Err(match settled {
                None => AnswerError::Unknown(id),
                Some((_, true)) => AnswerError::Answered(id),
                Some((_, false)) => AnswerError::Withdrawn(id),
            });
        };
        if pending.request.digest() != digest {
            return Err(AnswerError::Digest(id));
        }
        let given = state.pending.remove(&id).map(|pending| pending.answer.send(answer));
        // Withdrawn at this very moment.
        let answered = given.is_some_and(|given| given.is_ok());
        state.settle(id, answered);
        if answered { Ok(()) } else { Err(AnswerError::Withdrawn(id)) }
    }

    /// Lays a question on the desk; `None` when there is no room for more.
    fn lay(&self, request: &ApprovalRequest) -> Option<Laid<'_>> {
        let (answer, wait) = oneshot::channel();
        let mut state = self.state();
        if state.pending.len() >= PENDING_MAX {
            return None;
        }
        let pending = Pending { request: request.clone(), answer, taken: false };
        state.settled.retain(|(id, _)| *id != request.id());
        state.pending.insert(request.id(), pending);
        drop(state);
        self.shared.laid.notify_one();
        Some(Laid { desk: self, id: request.id(), wait })
    }
}

/// A question on the desk. Dropping it withdraws it.
struct Laid<'a> {
    desk: &'a ApprovalDesk,
    id: RequestId,
    wait: oneshot::Receiver<Answer>,
}

impl Drop for Laid<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        if state.pending.remove(&self.id).is_some() {
            state.settle(self.id, false);
        }
    }
}

#[async_trait]
impl Approver for ApprovalDesk {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let Some(mut laid) = self.lay(request) else {
            tracing::warn!(max = PENDING_MAX, "too many questions lie on the desk; this one is answered no");
            return Answer::Deny;
        };
        (&mut laid.wait).await.unwrap_or(Answer::Deny)
    }
}

impl std::fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalDesk").field("pending", &self.state().pending.len()).finish_non_exhaustive()
    }
}
