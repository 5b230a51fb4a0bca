//! Open questions, and what became of the others (PO-4).
//!
//! ```text
//!   event ─► announced ─► ask ─► open ── answer ─► desk ─► engine ─► receipt: taken ─► settled: answered, by whom and how
//!                                  │                                          refused, outdated ─► asked again, under the same id
//!                                  └── dropped: cancelled, expired, settled by another ──────────► settled: withdrawn, expired
//! ```

mod announced;
mod lives;
mod settled;
mod tally;

pub(crate) use settled::{How, Settled};

use crate::{access::PARENT, notify::Outbox, wall};
use announced::Announced;
use lives::Lives;
use parking_lot::Mutex;
use settled::SettledQuestions;
use std::{
    collections::{BTreeMap, HashMap},
    pin::pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};
use tally::Tally;
use tokio::sync::watch;
use toolyard::{
    Answer, AnswerError, ApprovalDesk, ApprovalRequest, Approver as _, CallDigest, Event, EventKind, Receipt,
    RequestId, SessionId, event::Epoch,
};

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: ApprovalRequest,
    pub(crate) asked_ms: u64,
    pub(crate) expires_ms: u64,
}

/// The questions of an engine.
#[derive(Default)]
pub(crate) struct Questions {
    desk: ApprovalDesk,
    announced: Announced,
    state: Mutex<State>,
    /// Somebody with a token or the page's link can answer.
    has_approvers: AtomicBool,
    /// The parent program can (AG-14).
    has_parent: AtomicBool,
    /// Counts what happens to questions, for those who follow them.
    changes: watch::Sender<u64>,
    /// How many of each owner may be open.
    most: AtomicUsize,
    /// Where those are put that somebody elsewhere is told of (HT-5).
    outbox: OnceLock<Outbox>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<RequestId, Asked>,
    /// Answers that the engine has, and has not taken yet.
    given: HashMap<RequestId, Answer>,
    settled: SettledQuestions,
    tally: Tally,
    lives: Lives,
}

impl Questions {
    /// Says whether there is anybody to ask over HTTP.
    pub(crate) fn set_audience(&self, has_approvers: bool) {
        self.has_approvers.store(has_approvers, Ordering::Relaxed);
    }

    /// Says whether the parent program is asked (AG-14).
    pub(crate) fn set_parent(&self, is_asked: bool) {
        self.has_parent.store(is_asked, Ordering::Relaxed);
        self.changed();
    }

    /// Whether the parent program is asked.
    pub(crate) fn asks_parent(&self) -> bool {
        self.has_parent.load(Ordering::Relaxed)
    }

    /// Whether nobody can answer questions of a session: they end at once (HT-6). The parent program is asked about its own
    /// alone.
    fn has_nobody(&self, session: &SessionId) -> bool {
        let asks_parent = || self.asks_parent() && self.state.lock().tally.is_of(session, PARENT);
        !self.has_approvers() && !asks_parent()
    }

    /// Whether somebody over HTTP can answer.
    pub(crate) fn has_approvers(&self) -> bool {
        self.has_approvers.load(Ordering::Relaxed)
    }

    /// What changes with each question that is opened or settled.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Sets how many questions of each owner may be open (HT-10).
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Says which lives of the engine were before this one, the oldest first.
    pub(crate) fn come_after(&self, earlier: &[Epoch]) {
        self.state.lock().lives = Lives::new(earlier);
    }

    /// Says whose the questions of a session are.
    pub(crate) fn belong(&self, session: SessionId, owner: &str) {
        self.state.lock().tally.belongs(session, owner);
    }

    /// Forgets whose the questions of a session were that is gone.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.state.lock().tally.forget(session);
    }

    /// Takes notice of an event: who reads it may answer before the question is here.
    pub(crate) fn accept(&self, event: &Event) {
        if let EventKind::ConfirmationRequested(asked) = &event.kind
            && asked.shares.is_none()
        {
            self.announced.add(asked.request);
        }
    }

    /// A question is asked elsewhere.
    pub(crate) fn is_elsewhere(&self, id: RequestId) {
        self.announced.remove(id);
    }

    /// Sets where questions are put that somebody elsewhere is told of. A front serves one server, so that there is one.
    pub(crate) fn tell_of_each(&self, outbox: Outbox) {
        let _ = self.outbox.set(outbox);
    }

    pub(crate) async fn ask(&self, request: &ApprovalRequest) -> Answer {
        if self.has_nobody(request.session()) {
            self.announced.remove(request.id());
            return Answer::nobody();
        }
        let most = self.most.load(Ordering::Relaxed);
        if !self.state.lock().tally.add(request.session(), request.turn(), most) {
            self.announced.remove(request.id());
            let why = format!("{most} questions are open already: call again when some have been answered");
            return Answer::deny("server").because(why);
        }
        // Polled once before it is shown here: whoever sees a question finds it on the desk.
        let mut asking = pin!(self.desk.ask(request));
        let asked = futures::poll!(&mut asking);
        let mut open = self.open(request);
        if self.has_nobody(request.session()) {
            return Answer::nobody(); // whoever could answer has gone meanwhile
        }
        let answer = match asked {
            Poll::Ready(answer) => answer,
            Poll::Pending => asking.await,
        };
        open.is_answered = true;
        self.state.lock().given.insert(request.id(), answer.clone());
        answer
    }

    fn open(&self, request: &ApprovalRequest) -> OpenQuestion<'_> {
        let now = wall::now_ms();
        let within = u64::try_from(request.expires_in().as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        // One that is asked again keeps its time.
        let before = state.settled.take(request.id()).map(|before| before.asked_ms);
        let asked_ms = before.unwrap_or(now);
        let expires_ms = asked_ms.saturating_add(within);
        let asked = Asked { request: request.clone(), asked_ms, expires_ms };
        state.open.insert(request.id(), asked.clone());
        drop(state);
        self.changed();
        self.announced.remove(request.id());
        // Of one that is asked again somebody knows already.
        if let Some(outbox) = self.outbox.get().filter(|_| before.is_none()) {
            outbox.put(&asked);
        }
        OpenQuestion { questions: self, id: request.id(), is_answered: false }
    }

    pub(crate) fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        let id = request.id();
        {
            let mut state = self.state.lock();
            let answer = state.given.remove(&id);
            match (&receipt, answer) {
                (Receipt::Taken, Some(answer)) => state.settle(id, How::Answered(answer)),
                (Receipt::Outdated | Receipt::Refused(_), _) => state.settle(id, How::NotTaken),
                _ => state.settle(id, How::Withdrawn),
            }
        }
        self.changed();
        // Whoever answered second is told now, and finds what was settled.
        self.desk.receipt(request, receipt);
    }

    pub(crate) fn no_more(&self) {
        self.desk.no_more_questions();
    }

    /// Brings an answer to the engine, and waits for what becomes of it.
    pub(crate) async fn answer(
        &self,
        id: RequestId,
        digest: &CallDigest,
        answer: Answer,
    ) -> Result<(), AnswerError> {
        self.desk.answer(id, digest, answer).await
    }

    /// The open questions after this one for which `wanted` holds, as many as that, in the order in which they were asked: one
    /// that is asked again keeps its place.
    pub(crate) fn pending(
        &self,
        this_life: Epoch,
        after: Option<RequestId>,
        most: usize,
        wanted: impl Fn(&Asked) -> bool,
    ) -> Vec<Asked> {
        let state = self.state.lock();
        let order = |one: RequestId, other: RequestId| state.lives.compare(one, other, this_life);
        let is_after = |id: RequestId| after.is_none_or(|after| order(id, after).is_gt());
        let mut open: Vec<_> = state.open.iter().filter(|(id, _)| is_after(**id)).collect();
        open.sort_by(|(one, _), (other, _)| order(**one, **other));
        let open = open.into_iter().map(|(_, asked)| asked);
        open.filter(|asked| wanted(asked)).take(most).cloned().collect()
    }

    /// How many questions are open.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().open.len()
    }

    /// How many are open in a session.
    pub(crate) fn count_of(&self, session: &SessionId) -> usize {
        self.state.lock().tally.of_session(session)
    }

    /// Whether a turn waits for an answer.
    pub(crate) fn waits(&self, session: &SessionId, turn: u64) -> bool {
        self.state.lock().tally.of_turn(session, turn) > 0
    }

    /// Whether a question waits for its answer.
    pub(crate) fn is_open(&self, id: RequestId) -> bool {
        self.state.lock().open.contains_key(&id)
    }

    /// An open question, also one that is about to be asked.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(crate) async fn find(&self, id: RequestId) -> Option<Asked> {
        self.announced.asked(id).await;
        self.state.lock().open.get(&id).cloned()
    }

    /// What became of a question that is not open.
    pub(crate) fn settled(&self, id: RequestId) -> Option<Settled> {
        self.state.lock().settled.find(id)
    }
}

impl State {
    fn settle(&mut self, id: RequestId, how: How) {
        let Some(asked) = self.open.remove(&id) else { return };
        self.tally.remove(asked.request.session(), asked.request.turn());
        let now = wall::now_ms();
        let how = match how {
            How::Withdrawn if now >= asked.expires_ms => How::Expired,
            how => how,
        };
        self.settled.add(Settled::new(&asked, how, now));
    }
}

/// A question while it waits. Dropping it withdraws it, unless the engine has an answer.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    id: RequestId,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.questions.state.lock().settle(self.id, How::Withdrawn);
            self.questions.changed();
        }
    }
}
