//! The life of one call in a log.

use super::WhatFault;
use crate::{
    AgentPath, CallDigest, CallId, ErrorKind,
    event::{Approval, CallGrammar, Event, EventKind, Failure},
};
use std::{fmt::Display, sync::Arc};

/// The state of one call, as read from its events so far.
#[derive(Debug, Clone)]
pub(super) struct CallLog {
    /// The position of its first event.
    at: u64,
    grammar: CallGrammar,
    /// Whether an event was out of order. From then on only the common fields are checked.
    is_broken: bool,
    call_id: Option<CallId>,
    turn: Option<u64>,
    run: Option<u32>,
    agent: AgentPath,
    tool_name: Option<Arc<str>>,
    /// The digest in `tool.call.received`.
    digest: Option<CallDigest>,
    answer: Answer,
    /// Whether it was called, with arguments that the person who approved it had changed.
    called: Option<bool>,
    attempt: Option<u32>,
}

/// The answer to the confirmation of this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    NotAsked,
    Yes { digest: Option<CallDigest>, edited: bool },
    No(Option<ErrorKind>),
}

impl CallLog {
    pub(super) fn new(at: u64, event: &Event) -> Self {
        let digest = match &event.kind {
            EventKind::Received { .. } => event.kind.digest(),
            _ => None,
        };
        Self {
            at,
            grammar: CallGrammar::default(),
            is_broken: false,
            call_id: event.call_id.clone(),
            turn: event.turn,
            run: event.run,
            agent: event.agent.clone(),
            tool_name: event.kind.tool_name().cloned(),
            digest,
            answer: Answer::NotAsked,
            called: None,
            attempt: None,
        }
    }

    /// A call whose first event is missing.
    pub(super) fn broken(at: u64, event: &Event) -> Self {
        Self { is_broken: true, ..Self::new(at, event) }
    }

    /// The number of the call's last attempt.
    pub(super) fn attempt(&self) -> Option<u32> {
        self.attempt
    }

    /// The fault that the call has not ended.
    pub(super) fn open(&self) -> (u64, Option<CallId>, WhatFault) {
        (self.at, self.call_id.clone(), WhatFault::CallOpen)
    }

    /// Reads the next event of the call.
    pub(super) fn read(&mut self, event: &Event, faults: &mut Vec<WhatFault>) {
        self.check_common_fields(event, faults);
        if let Err(error) = self.grammar.next(&event.kind) {
            if !self.is_broken {
                faults.push(error.into());
            }
            self.is_broken = true;
        }
        if !self.is_broken {
            self.check_history(event, faults);
        }
    }

    /// Compares the fields that all events of a call have in common.
    fn check_common_fields(&self, event: &Event, faults: &mut Vec<WhatFault>) {
        let name = event.kind.name();
        let shown = |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |n| n.to_string());
        if event.call_id != self.call_id {
            let id = |id: &Option<CallId>| id.as_ref().map_or_else(|| "none".to_owned(), CallId::to_string);
            faults.push(contradicts(name, "call_id", id(&event.call_id), id(&self.call_id)));
        }
        if event.turn != self.turn {
            faults.push(contradicts(name, "turn", shown(event.turn), shown(self.turn)));
        }
        if event.run != self.run {
            let [is, was] = [event.run, self.run].map(|run| shown(run.map(u64::from)));
            faults.push(contradicts(name, "run", is, was));
        }
        if event.agent != self.agent {
            faults.push(contradicts(name, "agent", &event.agent, &self.agent));
        }
        if let (Some(is), Some(was)) = (event.kind.tool_name(), &self.tool_name)
            && is != was
        {
            faults.push(contradicts(name, "tool_name", is, was));
        }
    }

    /// Compares this event with the earlier ones.
    fn check_history(&mut self, event: &Event, faults: &mut Vec<WhatFault>) {
        match &event.kind {
            EventKind::ConfirmationResolved(it) => {
                let yes = Answer::Yes { digest: it.digest, edited: it.input_summary.is_some() };
                self.answer = if it.approved { yes } else { Answer::No(it.error) };
            }
            EventKind::Called { approval, policy_version, edited, .. } => {
                self.called(*approval, event.kind.digest(), *policy_version, faults);
                let approved = matches!(self.answer, Answer::Yes { edited: true, .. });
                faults.extend(WhatFault::of_edit(event, *edited, approved));
                self.called = Some(*edited);
            }
            EventKind::Attempt => self.attempted(event, faults),
            // An earlier life of the engine has made its attempts so far.
            EventKind::Retry { code: ErrorKind::Interrupted, .. } if self.attempt.is_none() => {
                self.attempt = event.attempt;
            }
            EventKind::OutputDelta { .. } | EventKind::Retry { .. } => {
                let attempt = self.attempt.unwrap_or_default();
                if event.attempt != Some(attempt) {
                    faults.push(WhatFault::of_attempt(event, attempt));
                }
            }
            EventKind::Denied(failure) | EventKind::Failed(failure) => self.failed(event, failure, faults),
            EventKind::Completed { edited, dedupe, .. } if dedupe.is_fresh() => {
                self.ended(event, *edited, faults);
            }
            _ => {}
        }
    }

    /// SM-5: the end of a call that has run says what it ran with.
    fn ended(&self, event: &Event, edited: bool, faults: &mut Vec<WhatFault>) {
        if let Some(called) = self.called {
            faults.extend(WhatFault::of_edit(event, edited, called));
        }
    }

    /// I14: the call that runs is the one that was approved, and states how it was approved.
    fn called(
        &self,
        approval: Option<Approval>,
        digest: Option<CallDigest>,
        policy_version: u64,
        faults: &mut Vec<WhatFault>,
    ) {
        match (self.answer, approval) {
            (Answer::Yes { digest: approved, .. }, Some(Approval::Asked)) => {
                if let (Some(is), Some(was)) = (digest, approved)
                    && is != was
                {
                    faults.push(WhatFault::NotApproved { is: is.to_string(), was: was.to_string() });
                }
            }
            (Answer::Yes { .. }, says) => {
                faults.push(WhatFault::Approval { says: shown(says), told: "the approver was asked" });
            }
            (_, Some(Approval::Asked)) => {
                faults.push(WhatFault::Approval { says: "asked", told: "the approver was not asked" });
            }
            _ => {}
        }
        // The first policy was in force when the call arrived; under a later one, and with other arguments, the same
        // call has another digest.
        let as_received = policy_version <= 1 && !matches!(self.answer, Answer::Yes { edited: true, .. });
        if let (Some(is), Some(was)) = (digest, self.digest)
            && as_received
            && is != was
        {
            faults.push(contradicts("tool.called", "digest", is, was));
        }
    }

    /// Checks that attempts count up by one. The first one is not number 1 if the call has taken over a flight that
    /// already made attempts.
    fn attempted(&mut self, event: &Event, faults: &mut Vec<WhatFault>) {
        let expected = self.attempt.map_or_else(|| event.attempt.unwrap_or(1).max(1), |last| last + 1);
        if event.attempt != Some(expected) {
            faults.push(WhatFault::of_attempt(event, expected));
        }
        self.attempt = Some(expected);
    }

    fn failed(&self, event: &Event, failure: &Failure, faults: &mut Vec<WhatFault>) {
        if let Answer::No(Some(error)) = self.answer
            && error != failure.code
        {
            faults.push(WhatFault::Answer { settled: error.code(), ended: failure.code });
        }
        // The last attempt may have been announced without starting, for lack of a thread or a sandbox.
        if let Some(attempt) = self.attempt
            && failure.dedupe.is_fresh()
            && failure.attempts != attempt
            && failure.attempts + 1 != attempt
        {
            faults.push(contradicts(event.kind.name(), "attempts", failure.attempts, attempt));
        }
        if failure.dedupe.is_fresh() {
            self.ended(event, failure.edited, faults);
        }
    }
}

impl WhatFault {
    /// An event of an attempt other than the current one.
    pub(super) fn of_attempt(event: &Event, expected: u32) -> Self {
        let is = event.attempt.map_or_else(|| "none".to_owned(), |attempt| attempt.to_string());
        contradicts(event.kind.name(), "attempt", is, expected)
    }

    /// An event that says otherwise than an earlier one whether the call's arguments were changed.
    fn of_edit(event: &Event, is: bool, was: bool) -> Option<Self> {
        (is != was).then(|| contradicts(event.kind.name(), "edited", is, was))
    }
}

fn contradicts(event: &'static str, field: &'static str, is: impl Display, was: impl Display) -> WhatFault {
    WhatFault::Contradicts { event, field, is: is.to_string(), was: was.to_string() }
}

const fn shown(approval: Option<Approval>) -> &'static str {
    match approval {
        None => "none",
        Some(Approval::Asked) => "asked",
        Some(Approval::Remembered) => "remembered",
    }
}
