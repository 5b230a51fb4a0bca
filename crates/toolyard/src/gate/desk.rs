//! A desk of open approval questions, for programs that answer them elsewhere (PO-4).

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tokio::sync::{Notify, oneshot};
use toolyard_core::{Answer, ApprovalRequest, Approver, CallDigest, RequestId};

/// How many questions can be open at once. Further ones are not asked, and their calls do not run.
const PENDING_MAX: usize = 65_536;

/// How many settled questions are remembered, to tell a late answer from an answer to a question that never existed.
const SETTLED_MAX: usize = 4096;

/// Why an answer was refused. A refused answer changes nothing (PO-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such question, or it was settled long ago.
    #[error("there is no question {0}")]
    Unknown(RequestId),
    /// The question has been answered already: the first answer counts.
    #[error("question {0} has already been answered: the first answer counts")]
    Answered(RequestId),
    /// The question ended without an answer: its call was cancelled, its time ran out, or an answer to another
    /// question settled it too.
    #[error("question {0} was withdrawn")]
    Withdrawn(RequestId),
    /// The answer is for something other than what would run now: look at the question again.
    #[error("the answer to question {0} is for something other than what would run")]
    Digest(RequestId),
}

/// An [`Approver`] for programs that ask elsewhere: in a window, in a chat, over a network. The engine puts its
/// questions on the desk; the program takes them and answers each with the digest of what it was asked about. Cheap
/// to clone; all clones are the same desk. A desk serves one engine.
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
///     let question = desk.next().await.expect("the engine still asks");
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
    state: Mutex<OpenQuestions>,
    new_question: Notify,
}

#[derive(Default)]
struct OpenQuestions {
    pending: BTreeMap<RequestId, Pending>,
    /// Settled questions, oldest first, and whether they were answered.
    settled: VecDeque<(RequestId, bool)>,
    /// Whether the engine asks nothing more.
    closed: bool,
}

struct Pending {
    request: ApprovalRequest,
    answer: oneshot::Sender<Answer>,
    taken: bool,
}

impl OpenQuestions {
    /// Remembers that a question is settled.
    fn settle(&mut self, id: RequestId, answered: bool) {
        if self.settled.len() == SETTLED_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back((id, answered));
    }
}

impl ApprovalDesk {
    fn state(&self) -> MutexGuard<'_, OpenQuestions> {
        self.shared.state.lock()
    }

    /// Waits for the oldest question that has not been taken, and takes it. A question that is asked anew, for
    /// example after a change of policy, can be taken again. `None` when the engine has
    /// [shut down](crate::engine::Engine::shutdown) or is gone.
    ///
    /// # Cancel safety
    /// If the future is dropped, no question has been taken.
    pub async fn next(&self) -> Option<ApprovalRequest> {
        loop {
            // Created before the checks, so that what happens in between is not missed.
            let new_question = self.shared.new_question.notified();
            if let Some(request) = self.take() {
                return Some(request);
            }
            if self.state().closed {
                return None;
            }
            new_question.await;
        }
    }

    fn take(&self) -> Option<ApprovalRequest> {
        let mut state = self.state();
        let mut untaken = state.pending.values_mut().filter(|pending| !pending.taken);
        let pending = untaken.next()?;
        pending.taken = true;
        // Two questions that arrive at once wake only one waiter; it wakes the next.
        if untaken.next().is_some() {
            self.shared.new_question.notify_one();
        }
        Some(pending.request.clone())
    }

    /// All unanswered questions, oldest first, taken or not.
    pub fn pending(&self) -> Vec<ApprovalRequest> {
        self.state().pending.values().map(|pending| pending.request.clone()).collect()
    }

    /// Answers a question. `digest` is that of the request that was answered. If the policy changes at this very
    /// moment, the question comes back to the desk, with what would run now.
    ///
    /// # Errors
    /// Returns an [`AnswerError`]; a question that is open stays open.
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
        let pending = state.pending.remove(&id);
        state.settle(id, true);
        drop(state); // the answer wakes the task of its question
        if pending.is_some_and(|pending| pending.answer.send(answer).is_ok()) {
            return Ok(());
        }
        // It was withdrawn at this very moment.
        self.state()
            .settled
            .iter_mut()
            .filter(|(of, _)| *of == id)
            .for_each(|(_, answered)| *answered = false);
        Err(AnswerError::Withdrawn(id))
    }

    /// Puts a question on the desk; `None` if there is no room.
    fn open(&self, request: &ApprovalRequest) -> Option<OpenQuestion<'_>> {
        let (answer, wait) = oneshot::channel();
        let mut state = self.state();
        if state.pending.len() >= PENDING_MAX {
            return None;
        }
        let pending = Pending { request: request.clone(), answer, taken: false };
        state.settled.retain(|(id, _)| *id != request.id());
        state.pending.insert(request.id(), pending);
        drop(state);
        self.shared.new_question.notify_one();
        Some(OpenQuestion { desk: self, id: request.id(), wait })
    }
}

/// A question on the desk. Dropping this withdraws it.
struct OpenQuestion<'a> {
    desk: &'a ApprovalDesk,
    id: RequestId,
    wait: oneshot::Receiver<Answer>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        let withdrawn = state.pending.remove(&self.id);
        if withdrawn.is_some() {
            state.settle(self.id, false);
        }
        drop(state); // before the question, which may be the last to hold its tool
    }
}

#[async_trait]
impl Approver for ApprovalDesk {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let Some(mut open_question) = self.open(request) else {
            tracing::warn!(max = PENDING_MAX, "too many open approval questions; this one is not asked");
            return Answer::Nobody;
        };
        (&mut open_question.wait).await.unwrap_or(Answer::Deny)
    }

    fn no_more_questions(&self) {
        self.state().closed = true;
        self.shared.new_question.notify_waiters();
    }
}

impl std::fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalDesk").field("pending", &self.state().pending.len()).finish_non_exhaustive()
    }
}
