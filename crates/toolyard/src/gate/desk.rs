//! A desk of open approval questions, for programs that answer them elsewhere (PO-4).
//!
//! ```text
//!   engine ─► pending ─► shown by the program ─► answered ─► the engine has it ─┬─ takes it ──► it counts
//!                ▲                               (later answers wait)           └─ does not ──► it does not count
//!                └── asked anew: something else would run, or what it changed may not ─┘
//! ```

use async_trait::async_trait;
use futures::Stream;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{Notify, futures::OwnedNotified, oneshot};
use toolyard_core::{Answer, ApprovalRequest, Approver, CallDigest, EditRefused, Receipt, RequestId};

/// How many questions can be open at once. Further ones are not asked, and their calls do not run.
const PENDING_MAX: usize = 65_536;

/// How many settled questions are remembered, to tell a late answer from an answer to a question that never existed.
const SETTLED_MAX: usize = 4096;

/// Why an answer was refused. A refused answer changes nothing (PO-4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such question, or it was settled long ago.
    #[error("there is no question {0}")]
    Unknown(RequestId),
    /// The question has been answered already: the first answer that the engine took counts.
    #[error("question {0} has already been answered: the first answer counts")]
    Answered(RequestId),
    /// The question ended without an answer: its call was cancelled, its time ran out, or an answer to another
    /// question settled it too.
    #[error("question {0} was withdrawn")]
    Withdrawn(RequestId),
    /// The answer is for something other than what would run now. If that may run, the question is on the desk again:
    /// [`next`](ApprovalDesk::next) gives it.
    #[error("the answer to question {0} is for something other than what would run")]
    Digest(RequestId),
    /// The arguments that the answer gives may not run, and why (SM-5). The question is on the desk again, unless that
    /// has happened too often: then its call is refused.
    #[error("the changed arguments of question {0} may not run: {1}")]
    Refused(RequestId, EditRefused),
    /// The question is being asked again, because what another answer changed may not run; or its call is refused,
    /// because that has happened too often.
    #[error(
        "the arguments of another answer to question {0} may not run: answer it when it is asked again, if it is"
    )]
    Again(RequestId),
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
///     desk.answer(question.id(), question.digest(), Answer::allow("ada")).await.unwrap();
///     let late = desk.answer(question.id(), question.digest(), Answer::deny("ada")).await;
///     assert!(late.is_err()); // the first counts
/// };
/// let session = engine.session("demo");
/// let (outcome, ()) = tokio::join!(session.call(Call::new("call_1", "save", "{}")), person);
/// assert_eq!(outcome.to_text(), "saved");
/// # }
/// ```
///
/// It is a [`Stream`] of questions as well (KT-5), which takes them as [`next`](Self::next) does: each is taken once, by
/// one of the desk's clones. Dropping what polled it takes nothing.
#[derive(Default)]
pub struct ApprovalDesk {
    shared: Arc<Shared>,
    /// As a stream: what it waits for.
    told: Option<Pin<Box<OwnedNotified>>>,
}

impl Clone for ApprovalDesk {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), told: None }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<OpenQuestions>,
    /// Wakes one of those in `next`, which passes it on if it does not take the question.
    new_question: Notify,
    /// Wakes all streams: one that is kept and not polled must not keep a question from the others.
    for_streams: Arc<Notify>,
}

#[derive(Default)]
struct OpenQuestions {
    pending: BTreeMap<RequestId, Pending>,
    /// Settled questions, oldest first, and how.
    settled: VecDeque<(RequestId, Settled)>,
    /// Whether the engine asks nothing more.
    closed: bool,
}

struct Pending {
    request: ApprovalRequest,
    answer: AnswerState,
    taken: bool,
    /// Wakes those whose answers came second when the question is settled.
    over: Arc<Notify>,
}

/// The answer to a pending question.
enum AnswerState {
    /// There is none.
    Open(oneshot::Sender<Answer>),
    /// Somebody gave one, and waits for what becomes of it.
    Given(oneshot::Sender<Receipt>),
}

/// How a question was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Answered,
    Withdrawn,
    /// It is asked anew, if what would run now is allowed.
    Outdated,
    /// It is asked again, since what its answer changed may not run.
    Refused,
}

impl Settled {
    /// What a later answer is told.
    fn error(self, id: RequestId) -> AnswerError {
        match self {
            Self::Answered => AnswerError::Answered(id),
            Self::Withdrawn => AnswerError::Withdrawn(id),
            Self::Outdated => AnswerError::Digest(id),
            Self::Refused => AnswerError::Again(id),
        }
    }
}

/// What happens to an answer that is brought to the desk.
enum Brought {
    /// The engine gets it here, and then says what becomes of it.
    First(oneshot::Sender<Answer>, oneshot::Receiver<Receipt>),
    /// The engine has another one, and has not taken that yet.
    Second(OwnedNotified),
}

impl OpenQuestions {
    /// Takes an answer for what has this digest.
    fn bring(&mut self, id: RequestId, digest: &CallDigest) -> Result<Brought, AnswerError> {
        let Some(pending) = self.pending.get_mut(&id) else {
            let settled = self.settled.iter().rev().find(|(of, _)| *of == id);
            return Err(settled.map_or(AnswerError::Unknown(id), |(_, how)| how.error(id)));
        };
        if pending.request.digest() != digest {
            return Err(AnswerError::Digest(id));
        }
        let (tell, told) = oneshot::channel();
        match std::mem::replace(&mut pending.answer, AnswerState::Given(tell)) {
            AnswerState::Open(give) => Ok(Brought::First(give, told)),
            given @ AnswerState::Given(_) => {
                pending.answer = given;
                Ok(Brought::Second(pending.over.clone().notified_owned()))
            }
        }
    }

    /// Takes a question off the desk, and remembers how it was settled. What this returns wakes others and may be the
    /// last to hold a tool, so it is told, and dropped, without the lock.
    #[must_use]
    fn settle(&mut self, id: RequestId, how: Settled) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if self.settled.len() == SETTLED_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back((id, how));
        Some(pending)
    }
}

impl Pending {
    /// Tells those who answered.
    fn tell(self, receipt: Receipt) {
        if let AnswerState::Given(tell) = self.answer {
            // Whoever answered may not wait for this any more.
            let _ = tell.send(receipt);
        }
        self.over.notify_waiters();
    }
}

impl Shared {
    /// Takes the oldest question that has not been taken, if there is one.
    fn take(&self) -> Option<ApprovalRequest> {
        let mut state = self.state.lock();
        let mut untaken = state.pending.values_mut().filter(|pending| !pending.taken);
        let pending = untaken.next()?;
        pending.taken = true;
        // Two questions that arrive at once wake only one waiter; it wakes the next.
        if untaken.next().is_some() {
            self.new_question.notify_one();
        }
        Some(pending.request.clone())
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
            if let Some(request) = self.shared.take() {
                return Some(request);
            }
            if self.state().closed {
                return None;
            }
            new_question.await;
        }
    }

    /// All unanswered questions, oldest first, taken or not.
    pub fn pending(&self) -> Vec<ApprovalRequest> {
        self.state().pending.values().map(|pending| pending.request.clone()).collect()
    }

    /// Answers a question, and waits until the engine has taken the answer, or has not: it counts from then on, and not
    /// before (SM-6). `digest` is that of the request that was answered. If the policy changes at this very moment, the
    /// question comes back to the desk, with what would run now.
    ///
    /// # Errors
    /// Returns an [`AnswerError`]: the answer does not count. A question that is open stays open.
    ///
    /// # Cancel safety
    /// If the future is dropped, nobody is told whether the answer counts.
    pub async fn answer(
        &self,
        id: RequestId,
        digest: &CallDigest,
        answer: Answer,
    ) -> Result<(), AnswerError> {
        loop {
            let brought = self.state().bring(id, digest)?;
            match brought {
                Brought::Second(over) => over.await,
                Brought::First(give, told) => {
                    // Nothing receives it if the question is withdrawn at this very moment: then that is what is told.
                    let _ = give.send(answer);
                    return match told.await {
                        Ok(Receipt::Taken) => Ok(()),
                        Ok(Receipt::Outdated) => Err(AnswerError::Digest(id)),
                        Ok(Receipt::Refused(why)) => Err(AnswerError::Refused(id, why)),
                        _ => Err(AnswerError::Withdrawn(id)),
                    };
                }
            }
        }
    }

    fn settle(&self, id: RequestId, how: Settled, receipt: Receipt) {
        let pending = self.state().settle(id, how);
        if let Some(pending) = pending {
            pending.tell(receipt);
        }
    }

    /// Puts a question on the desk; `None` if there is no room.
    fn open(&self, request: &ApprovalRequest) -> Option<OpenQuestion<'_>> {
        let (answer, wait) = oneshot::channel();
        let mut state = self.state();
        if state.pending.len() >= PENDING_MAX {
            return None;
        }
        let (request_of, answer) = (request.clone(), AnswerState::Open(answer));
        let pending = Pending { request: request_of, answer, taken: false, over: Arc::default() };
        state.settled.retain(|(id, _)| *id != request.id());
        state.pending.insert(request.id(), pending);
        drop(state);
        self.shared.new_question.notify_one();
        self.shared.for_streams.notify_waiters();
        Some(OpenQuestion { desk: self, id: request.id(), wait, is_answered: false })
    }
}

/// A question on the desk. Dropping this withdraws it, unless it was answered: then the engine says what becomes of it.
struct OpenQuestion<'a> {
    desk: &'a ApprovalDesk,
    id: RequestId,
    wait: oneshot::Receiver<Answer>,
    is_answered: bool,
}

impl OpenQuestion<'_> {
    /// Waits for the answer. It is the last await: what is answered is in the engine's hands.
    async fn answered(mut self) -> Answer {
        let answer = (&mut self.wait).await;
        self.is_answered = answer.is_ok();
        answer.unwrap_or(Answer::nobody())
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.desk.settle(self.id, Settled::Withdrawn, Receipt::Withdrawn);
        }
    }
}

#[async_trait]
impl Approver for ApprovalDesk {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        match self.open(request) {
            Some(question) => question.answered().await,
            None => {
                tracing::warn!(max = PENDING_MAX, "too many open approval questions; this one is not asked");
                Answer::nobody()
            }
        }
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        let how = match receipt {
            Receipt::Taken => Settled::Answered,
            Receipt::Outdated => Settled::Outdated,
            Receipt::Refused(_) => Settled::Refused,
            _ => Settled::Withdrawn,
        };
        self.settle(request.id(), how, receipt);
    }

    fn no_more_questions(&self) {
        self.state().closed = true;
        self.shared.new_question.notify_waiters();
        self.shared.for_streams.notify_waiters();
    }
}

impl Stream for ApprovalDesk {
    type Item = ApprovalRequest;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ApprovalRequest>> {
        let Self { shared, told } = self.get_mut();
        loop {
            // Created before the checks, so that what happens in between is not missed.
            let waits = told.get_or_insert_with(|| Box::pin(shared.for_streams.clone().notified_owned()));
            let is_told = waits.as_mut().poll(cx).is_ready();
            if let Some(request) = shared.take() {
                return Poll::Ready(Some(request));
            }
            if shared.state.lock().closed {
                return Poll::Ready(None);
            }
            if !is_told {
                return Poll::Pending;
            }
            *told = None;
        }
    }
}

impl std::fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalDesk").field("pending", &self.state().pending.len()).finish_non_exhaustive()
    }
}
