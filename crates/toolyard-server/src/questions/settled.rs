//! What became of questions that are not open any more.

use super::Asked;
use std::collections::VecDeque;
use toolyard::{Answer, RequestId, SessionId};

/// How many settled questions are remembered.
const SETTLED_MAX: usize = 4096;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// The engine took this answer.
    Answered(Answer),
    /// Its call was cancelled, or an answer to another question settled it.
    Withdrawn,
    /// Its time ran out.
    Expired,
    /// The engine did not take the answer: it is asked again, if it may be.
    NotTaken,
}

/// A question that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) id: RequestId,
    pub(crate) session: SessionId,
    pub(crate) turn: u64,
    pub(crate) how: How,
    pub(super) asked_ms: u64,
    pub(crate) at_ms: u64,
}

impl Settled {
    pub(super) fn new(asked: &Asked, how: How, at_ms: u64) -> Self {
        let request = &asked.request;
        let (session, turn) = (request.session().clone(), request.turn());
        Self { id: request.id(), session, turn, how, asked_ms: asked.asked_ms, at_ms }
    }
}

/// The latest of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct SettledQuestions(VecDeque<Settled>);

impl SettledQuestions {
    pub(super) fn add(&mut self, settled: Settled) {
        if self.0.len() == SETTLED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(settled);
    }

    pub(super) fn find(&self, id: RequestId) -> Option<Settled> {
        self.0.iter().rev().find(|settled| settled.id == id).cloned()
    }

    /// Takes out one that is asked again.
    pub(super) fn take(&mut self, id: RequestId) -> Option<Settled> {
        let at = self.0.iter().rposition(|settled| settled.id == id)?;
        self.0.remove(at)
    }
}
