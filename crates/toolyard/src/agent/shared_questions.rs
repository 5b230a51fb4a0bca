//! Questions that several waiting calls share: those with one idempotency key and one digest (ID-3).
//!
//! ```text
//!   first call  ─► leads: its approver is asked ─┬─ settled ─► every follower is settled alike
//!   equal calls ─► follow                        └─ dropped ─► the oldest follower leads
//! ```
//!
//! Followers are told what the answer was and what it was about. Whether that is still what they would run is for them
//! to check.

use foldhash::HashMap;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::oneshot;
use toolyard_core::{Answer, CallDigest, RequestId};

/// The identity of a shared question: the idempotency key, and the digest of the call but for the policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ShareKey {
    pub(crate) key: Arc<str>,
    pub(crate) call: CallDigest,
}

/// How a shared question was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The approver gave this answer about this digest.
    Answered(Answer, CallDigest),
    /// The approver panicked.
    Panicked,
    /// Nobody answered in time.
    Expired,
}

/// The open shared questions of one session tree.
#[derive(Default)]
pub(crate) struct SharedQuestions {
    open: Mutex<HashMap<ShareKey, Open>>,
}

struct Open {
    /// The request that the approver sees.
    request: RequestId,
    followers: VecDeque<(RequestId, oneshot::Sender<FromLead>)>,
}

/// What a follower is told.
pub(crate) enum FromLead {
    /// The question is settled like this.
    Settled(Settlement),
    /// The leader has left: the follower leads.
    Lead(Lead),
}

/// A call's part in a shared question.
pub(crate) enum Share {
    /// Its question is asked.
    Lead(Lead),
    /// The question of another call, with this request, is asked; the follower waits for what it is told.
    Follow(RequestId, oneshot::Receiver<FromLead>),
}

/// The right and the duty to have the question asked. Dropping it unsettled hands it to the oldest follower.
pub(crate) struct Lead {
    questions: Arc<SharedQuestions>,
    key: ShareKey,
    is_settled: bool,
}

impl SharedQuestions {
    /// Joins the open question with this key, or opens it with this request.
    pub(crate) fn share(self: &Arc<Self>, key: ShareKey, request: RequestId) -> Share {
        let mut open = self.open.lock();
        if let Some(question) = open.get_mut(&key) {
            let (tell, told) = oneshot::channel();
            question.followers.retain(|(_, follower)| !follower.is_closed());
            question.followers.push_back((request, tell));
            return Share::Follow(question.request, told);
        }
        open.insert(key.clone(), Open { request, followers: VecDeque::new() });
        Share::Lead(Lead { questions: self.clone(), key, is_settled: false })
    }
}

impl Lead {
    /// Settles the question for all who follow. Returns whether anyone did.
    pub(crate) fn settle(mut self, how: Settlement) -> bool {
        self.is_settled = true;
        let closed = self.questions.open.lock().remove(&self.key);
        let mut any = false;
        for (_, follower) in closed.into_iter().flat_map(|question| question.followers) {
            // A follower that has left needs no answer.
            any |= follower.send(FromLead::Settled(how.clone())).is_ok();
        }
        any
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        loop {
            let mut open = self.questions.open.lock();
            let Some(question) = open.get_mut(&self.key) else { return };
            let Some((request, follower)) = question.followers.pop_front() else {
                open.remove(&self.key);
                return;
            };
            question.request = request;
            drop(open);
            let lead = Self { questions: self.questions.clone(), key: self.key.clone(), is_settled: false };
            match follower.send(FromLead::Lead(lead)) {
                // This follower has left, and the loop goes on to the next: what comes back has nothing to hand on.
                Err(FromLead::Lead(mut unsent)) => unsent.is_settled = true,
                Ok(()) | Err(FromLead::Settled(_)) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_core::SessionId;

    fn key(of: &str) -> ShareKey {
        ShareKey { key: of.into(), call: CallDigest::of_text("t", "{}", &SessionId::from("s")) }
    }

    fn id(number: u64) -> RequestId {
        RequestId::new(0, number, 0)
    }

    fn questions() -> Arc<SharedQuestions> {
        Arc::default()
    }

    fn lead(share: Share) -> Lead {
        match share {
            Share::Lead(lead) => lead,
            Share::Follow(..) => panic!("it follows"),
        }
    }

    fn follow(share: Share) -> (RequestId, oneshot::Receiver<FromLead>) {
        match share {
            Share::Lead(_) => panic!("it leads"),
            Share::Follow(request, told) => (request, told),
        }
    }

    /// ID-3: one question per key, whose answer goes to all who wait for it.
    #[test]
    fn followers_get_the_leaders_answer() {
        let questions = questions();
        let first = lead(questions.share(key("k"), id(1)));
        let (request, mut told) = follow(questions.share(key("k"), id(2)));
        let _other = lead(questions.share(key("other"), id(3)));
        assert_eq!(request, id(1));
        let yes = Settlement::Answered(Answer::allow("ada"), key("k").call);
        assert!(first.settle(yes.clone()));
        assert!(matches!(told.try_recv(), Ok(FromLead::Settled(how)) if how == yes));
        let new = lead(questions.share(key("k"), id(4)));
        assert!(!new.settle(yes), "nobody follows");
    }

    /// ID-3: when the leader leaves, the oldest follower that is still there leads, and later ones follow it.
    #[test]
    fn the_oldest_follower_leads_when_the_leader_leaves() {
        let questions = questions();
        let first = lead(questions.share(key("k"), id(1)));
        let (_, gone) = follow(questions.share(key("k"), id(2)));
        let (_, mut told) = follow(questions.share(key("k"), id(3)));
        drop((gone, first));
        let Ok(FromLead::Lead(next)) = told.try_recv() else { panic!("nobody leads") };
        assert_eq!(follow(questions.share(key("k"), id(4))).0, id(3));
        drop(next);
        let _new = lead(questions.share(key("k"), id(5)));
        assert_eq!(questions.open.lock().len(), 1);
    }

    /// A lead that is sent but never taken is handed on too.
    #[test]
    fn a_lead_that_nobody_takes_is_handed_on() {
        let questions = questions();
        let first = lead(questions.share(key("k"), id(1)));
        let (_, untaken) = follow(questions.share(key("k"), id(2)));
        let (_, mut told) = follow(questions.share(key("k"), id(3)));
        drop(first);
        drop(untaken);
        assert!(matches!(told.try_recv(), Ok(FromLead::Lead(_))));
        assert!(questions.open.lock().is_empty());
    }
}
