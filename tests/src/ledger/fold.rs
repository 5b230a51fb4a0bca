//! What all records of a ledger come to.

use super::{
    described::Described,
    op::{BatchOp, CancelOp, Op, Place},
};
use std::{collections::BTreeMap, sync::Arc, time::SystemTime};
use tokio::time::Instant;
use toolyard::{
    AgentPath, Call, CallError, Dedupe, ErrorKind, OpenTurn, Past, PastAttempt, PastBatch, PastCall, PastEnd,
    PastKey, PastKeyEnd, PastKeyState, PastQuestion, PastRequest, PastSession, PastTurn, Routing, Sandbox,
    SessionId, ToolOutput, event::Epoch,
};

#[derive(Default)]
pub(super) struct World {
    /// How many attempts there were.
    starts: usize,
    pub(super) epoch: Option<Epoch>,
    sessions: BTreeMap<SessionId, Named>,
}

/// What was done under a name.
#[derive(Default)]
struct Named {
    is_named: bool,
    described: Described,
    /// The lives in which it was opened.
    opened_in: Vec<Option<Epoch>>,
    /// The names of its agents that somebody has named.
    named_agents: Vec<AgentPath>,
    forks: u64,
    batches: Vec<Batch>,
    /// Cancels that hold for calls to come.
    cancelled: Vec<(AgentPath, Option<u64>)>,
    /// The same of a batch, or of one place in it.
    cancelled_calls: Vec<(u64, Option<u32>)>,
}

struct Batch {
    op: BatchOp,
    is_open: bool,
    epoch: Option<Epoch>,
    calls: Vec<Recorded>,
}

struct Recorded {
    call: Call,
    is_cancelled: bool,
    attempts: Vec<(PastAttempt, Instant)>,
    /// The place of the last one among all attempts.
    started: usize,
    end: Option<PastEnd>,
    question: Option<PastQuestion>,
    /// The links that it was asked about with last.
    links: Vec<String>,
    ended_at: Option<SystemTime>,
    reconciled: u32,
    done: Option<ToolOutput>,
    key_result: Option<Result<ToolOutput, CallError>>,
}

impl Batch {
    /// When it and its calls ended; `None` for what has not.
    fn ends(&self) -> impl Iterator<Item = Option<SystemTime>> {
        let arrived = (!self.is_open).then_some(self.op.arrived);
        self.calls.iter().map(|call| call.ended_at).chain([arrived])
    }
}

impl Recorded {
    fn of(call: &Call) -> Self {
        Self {
            call: call.clone(),
            is_cancelled: false,
            attempts: Vec::new(),
            started: 0,
            end: None,
            ended_at: None,
            question: None,
            links: Vec::new(),
            reconciled: 0,
            done: None,
            key_result: None,
        }
    }
}

/// Whether `agent` is `above` or one of its sub-agents.
fn is_under(agent: &AgentPath, above: &AgentPath) -> bool {
    agent == above || agent.as_str().strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

impl World {
    pub(super) fn of<'a>(ops: impl Iterator<Item = &'a Op>) -> Self {
        let mut world = Self::default();
        ops.for_each(|op| world.add(op));
        world
    }

    fn named(&mut self, session: &SessionId) -> &mut Named {
        self.sessions.entry(session.clone()).or_default()
    }

    fn call(&mut self, place: &Place) -> &mut Recorded {
        let batch = self.named(&place.session).batch(place.batch);
        &mut batch.calls[place.index as usize]
    }

    fn add(&mut self, op: &Op) {
        match op {
            Op::Engine(epoch) => self.epoch = Some(*epoch),
            Op::Session { session, is_named, description } => {
                let epoch = self.epoch;
                let named = self.named(session);
                named.is_named = *is_named;
                named.opened_in.push(epoch);
                named.described.opened(description.clone());
            }
            Op::Fork { session, agent, is_named, description, made_by_handler } => {
                let named = self.named(session);
                // What was cancelled as a whole is the last agent of this name: its calls are marked.
                named.cancelled.retain(|(of, turn)| of != agent || turn.is_some());
                if *is_named && !made_by_handler {
                    named.described.forked(agent, description.clone());
                }
                match agent.name().parse() {
                    Ok(number) if !is_named => named.forks = named.forks.max(number),
                    _ => named.named_agents.push(agent.clone()),
                }
            }
            Op::Batch(op) => {
                let epoch = self.epoch;
                let calls = op.calls.iter().map(Recorded::of).collect();
                let batch = Batch { op: BatchOp::clone(op), is_open: op.is_open, epoch, calls };
                self.named(&op.session).batches.push(batch);
            }
            Op::Pushed { session, batch, calls } => {
                self.named(session).batch(*batch).calls.extend(calls.iter().map(Recorded::of));
            }
            Op::Closed { session, batch, request } => {
                let batch = self.named(session).batch(*batch);
                (batch.is_open, batch.op.request) = (false, request.clone());
            }
            Op::Question { call, request, links } => {
                let call = self.call(call);
                let before = call.question.take().filter(|before| before.request == *request);
                let (answer, links_then) = before.map_or((None, Vec::new()), |it| (it.answer, it.links));
                call.question = Some(PastQuestion { request: *request, answer, links: links_then });
                call.links = links.clone();
            }
            Op::Answer { call, request, digest, answer } => {
                let call = self.call(call);
                let answer = Some((*digest, answer.clone()));
                call.question = Some(PastQuestion { request: *request, answer, links: call.links.clone() });
            }
            Op::Attempt { call, attempt, until } => {
                self.starts += 1;
                let started = self.starts;
                let call = self.call(call);
                call.attempts.push((PastAttempt::clone(attempt), *until));
                call.started = started;
            }
            Op::AttemptEnded { call, status, is_retried } => {
                let call = self.call(call);
                let last = call.attempts.last_mut();
                match (status, is_retried, last) {
                    (Err(error), true, Some((last, _))) => last.retried_after = Some(error.clone()),
                    _ => call.key_result = Some(status.clone()),
                }
            }
            Op::Ended { call, end, at } => self.call(call).ends(PastEnd::clone(end), *at),
            Op::Cancelled { session, agent, what } => {
                self.named(session).cancel(agent, what);
                if matches!(what, CancelOp::Session) && *agent == AgentPath::root() {
                    self.named(session).described.cancelled();
                }
            }
            Op::Verdict { call, done } => {
                let call = self.call(call);
                call.reconciled += 1;
                call.done = call.done.take().or_else(|| done.clone());
            }
            Op::Resumed { session, agent, turn, ended, at } => {
                let epoch = self.epoch;
                for (place, end) in ended {
                    self.call(place).ends(end.clone(), *at);
                }
                self.named(session).resumed(agent, *turn, epoch, *at);
            }
        }
    }

    pub(super) fn past(&self, session: &SessionId) -> Past {
        let Some(named) = self.sessions.get(session) else { return Past::default() };
        let open: Vec<_> = self.open_turns();
        Past {
            is_known: named.opened_in.iter().any(|epoch| *epoch != self.epoch),
            turns: named.batches.iter().map(|batch| batch.op.turn).max().unwrap_or(0),
            batches: named.batches.iter().map(|batch| batch.op.batch).max().unwrap_or(0),
            forks: named.forks,
            keys: named.keys(),
            open_turns: open.iter().filter(|turn| turn.session == *session).count() as u64,
            interrupted: named.interrupted(self.epoch),
        }
    }

    pub(super) fn open_turns(&self) -> Vec<OpenTurn> {
        let mut turns: Vec<OpenTurn> = Vec::new();
        for (session, named) in &self.sessions {
            for batch in named.batches.iter().filter(|batch| batch.op.parent.is_none()) {
                let (agent, turn) = (&batch.op.agent, batch.op.turn);
                let is_this_life = self.epoch.is_some() && batch.epoch == self.epoch;
                let open_calls = batch.calls.iter().filter(|call| call.end.is_none()).count() as u64;
                if is_this_life || (open_calls == 0 && !batch.is_open) {
                    continue;
                }
                let request = batch.op.request.clone();
                match turns.iter_mut().find(|it| it.session == *session && it.turn == turn) {
                    Some(known) => {
                        known.open_calls += open_calls;
                        known.requests.extend(request);
                    }
                    None => turns.push(OpenTurn {
                        session: session.clone(),
                        is_named: named.is_named,
                        agent: agent.clone(),
                        turn,
                        requests: request.into_iter().collect(),
                        open_calls,
                    }),
                }
            }
        }
        turns
    }

    pub(super) fn past_session(&self, session: &SessionId) -> Option<PastSession> {
        let named = self.sessions.get(session)?;
        Some(named.described.past(session, named.is_named))
    }

    pub(super) fn past_sessions(&self) -> Vec<PastSession> {
        let all = self.sessions.keys().filter_map(|session| self.past_session(session));
        all.filter(|past| !past.is_cancelled).collect()
    }

    pub(super) fn past_request(&self, session: &SessionId, request: &str) -> Option<PastRequest> {
        let batches = &self.sessions.get(session)?.batches;
        let is_refused = |call: &Recorded| {
            let error = call.end.as_ref().and_then(|end| end.status.as_ref().err());
            error.is_some_and(|error| error.kind == ErrorKind::ShuttingDown)
        };
        let is_of = |batch: &&Batch| {
            let is_of = batch.op.parent.is_none() && batch.op.request.as_deref() == Some(request);
            is_of && !batch.calls.iter().all(is_refused)
        };
        batches.iter().rev().find(is_of).map(|batch| PastRequest {
            turn: batch.op.turn,
            agent: batch.op.agent.clone(),
            calls: batch.calls.iter().map(|call| call.call.clone()).collect(),
        })
    }

    pub(super) fn turn(&self, session: &SessionId, turn: u64) -> Option<PastTurn> {
        let named = self.sessions.get(session)?;
        let roots = || {
            let all = named.batches.iter();
            all.filter(|batch| batch.op.turn == turn && batch.op.parent.is_none())
        };
        let first = roots().next()?;
        let epoch = roots().map(|batch| batch.epoch).find(|epoch| *epoch == self.epoch).or(Some(first.epoch));
        let batches = roots().map(|batch| PastBatch {
            batch: batch.op.batch,
            request: batch.op.request.clone(),
            is_sequential: batch.op.is_sequential,
            is_resend: batch.op.is_resend,
            is_open: batch.is_open,
            calls: (0u32..)
                .zip(&batch.calls)
                .map(|(index, call)| named.past_call(batch, index, call))
                .collect(),
        });
        Some(PastTurn {
            agent: first.op.agent.clone(),
            turn,
            began: roots().map(|batch| batch.op.arrived).min(),
            ended: roots()
                .flat_map(Batch::ends)
                .collect::<Option<Vec<_>>>()
                .and_then(|ends| ends.into_iter().max()),
            epoch: epoch.flatten(),
            is_cancelled: named.is_turn_cancelled(&first.op.agent, turn),
            batches: batches.collect(),
        })
    }
}

impl Named {
    fn batch(&mut self, number: u64) -> &mut Batch {
        let found = self.batches.iter_mut().find(|batch| batch.op.batch == number);
        found.expect("a record comes after that of its batch")
    }

    fn cancel(&mut self, agent: &AgentPath, what: &CancelOp) {
        match what {
            CancelOp::Session => self.cancelled.push((agent.clone(), None)),
            CancelOp::Turn(turn) => self.cancelled.push((agent.clone(), Some(*turn))),
            CancelOp::Batch(batch) => self.cancelled_calls.push((*batch, None)),
            CancelOp::Call { batch, index } => self.cancelled_calls.push((*batch, Some(*index))),
            CancelOp::InFlight | CancelOp::Calls { .. } => {}
        }
        for batch in self.batches.iter_mut().filter(|batch| is_under(&batch.op.agent, agent)) {
            let (number, turn) = (batch.op.batch, batch.op.turn);
            for (index, call) in (0u32..).zip(&mut batch.calls).filter(|(_, call)| call.end.is_none()) {
                call.is_cancelled |= match what {
                    CancelOp::Session | CancelOp::InFlight => true,
                    CancelOp::Turn(it) => *it == turn,
                    CancelOp::Batch(it) => *it == number,
                    CancelOp::Calls { turn: of, id } => {
                        of.is_none_or(|of| of == turn) && call.call.id.as_str() == id
                    }
                    CancelOp::Call { batch, index: at } => *batch == number && *at == index,
                };
            }
        }
    }

    fn is_turn_cancelled(&self, agent: &AgentPath, turn: u64) -> bool {
        self.cancelled.iter().any(|(above, of)| *of == Some(turn) && is_under(agent, above))
    }

    fn is_cancelled(&self, agent: &AgentPath, turn: u64) -> bool {
        self.cancelled.iter().any(|(above, of)| of.is_none_or(|of| of == turn) && is_under(agent, above))
    }

    /// A turn is taken up: what its handlers had dispatched, and what agents under it had left open that nobody has named,
    /// has ended.
    fn resumed(&mut self, agent: &AgentPath, turn: u64, epoch: Option<Epoch>, at: SystemTime) {
        let below = self.below(agent, turn);
        let named_agents = self.named_agents.clone();
        let parents: Vec<_> = self.batches.iter().filter_map(|batch| batch.op.parent.clone()).collect();
        for batch in &mut self.batches {
            let is_own = batch.op.turn == turn && batch.op.parent.is_none() && batch.op.agent == *agent;
            let is_below = below.contains(&batch.op.batch);
            let of_unnamed = batch.epoch != epoch
                && batch.op.agent != *agent
                && is_under(&batch.op.agent, agent)
                && !named_agents.iter().any(|named| {
                    named != agent && is_under(named, agent) && is_under(&batch.op.agent, named)
                });
            if batch.op.turn == turn {
                batch.epoch = epoch;
            }
            if is_own || is_below || of_unnamed {
                batch.is_open = false;
            }
            if is_below || of_unnamed {
                let (session, number) = (&batch.op.session, batch.op.batch);
                for (index, call) in (0u32..).zip(&mut batch.calls).filter(|(_, call)| call.end.is_none()) {
                    let place = Place { session: session.clone(), batch: number, index };
                    call.interrupt(parents.contains(&place), at);
                }
            }
        }
    }

    /// The batches that handlers of the turn's calls have dispatched, and those of their calls in turn.
    fn below(&self, agent: &AgentPath, turn: u64) -> Vec<u64> {
        let is_root = |batch: &&Batch| batch.op.turn == turn && batch.op.agent == *agent;
        let mut above: Vec<u64> = self.batches.iter().filter(is_root).map(|batch| batch.op.batch).collect();
        let mut below = Vec::new();
        while let Some(number) = above.pop() {
            let is_of = |batch: &&Batch| batch.op.parent.as_ref().is_some_and(|place| place.batch == number);
            for batch in self.batches.iter().filter(is_of).map(|batch| batch.op.batch) {
                if !below.contains(&batch) {
                    below.push(batch);
                    above.push(batch);
                }
            }
        }
        below
    }

    fn past_call(&self, batch: &Batch, index: u32, call: &Recorded) -> PastCall {
        let now = Instant::now();
        let place = Place { session: batch.op.session.clone(), batch: batch.op.batch, index };
        let timed = |(attempt, until): &(PastAttempt, Instant)| PastAttempt {
            time_left: until.saturating_duration_since(now),
            ..attempt.clone()
        };
        PastCall {
            call: call.call.clone(),
            is_cancelled: call.is_cancelled
                || self.is_cancelled(&batch.op.agent, batch.op.turn)
                || self
                    .cancelled_calls
                    .iter()
                    .any(|(of, at)| *of == batch.op.batch && at.is_none_or(|at| at == index)),
            is_unsure: false,
            has_dispatched: self.batches.iter().any(|batch| batch.op.parent.as_ref() == Some(&place)),
            attempts: call.attempts.iter().map(timed).collect(),
            end: call.end.clone().map(Box::new),
            question: call.question.clone(),
            reconciled: call.reconciled,
            done: call.done.clone(),
        }
    }

    fn interrupted(&self, now: Option<Epoch>) -> u64 {
        let all = self.batches.iter().filter(|batch| batch.epoch != now).flat_map(|batch| &batch.calls);
        let is_lost = |call: &&Recorded| {
            let last = call.attempts.last().map(|(last, _)| last);
            call.end.is_none() && last.is_some_and(|last| !last.side_effects.is_read_only())
        };
        all.filter(is_lost).count() as u64
    }

    fn keys(&self) -> Vec<PastKey> {
        let mut keys: BTreeMap<(Arc<str>, Arc<str>), PastKey> = BTreeMap::new();
        // That of the call that was started last counts, which need not be the one that came last.
        let mut calls: Vec<_> = self.batches.iter().flat_map(|batch| &batch.calls).collect();
        calls.sort_by_key(|call| call.started);
        for call in calls {
            let Some((last, _)) = call.attempts.last() else { continue };
            let Some(key) = &last.key else { continue };
            let ended = call.end.as_ref().map(|end| (end.status.clone(), end.attempts, end.sandbox));
            let result =
                call.key_result.clone().map(|status| (status, last.attempt, Sandbox::Host)).or(ended);
            let end = match result {
                Some((status, attempts, sandbox)) => {
                    PastKeyEnd::Ended { status, attempts, sandbox, no_side_effect: false }
                }
                None => PastKeyEnd::Open,
            };
            let known = PastKey {
                tool: call.call.name.clone(),
                key: key.clone(),
                arguments: match &call.question {
                    Some(PastQuestion { answer: Some((_, answer)), .. }) if answer.arguments().is_some() => {
                        call.call.arguments.to_value()
                    }
                    _ => last.arguments.clone(),
                },
                state: PastKeyState::Started {
                    version: last.version.clone(),
                    is_repeatable: last.is_repeatable,
                    end,
                },
            };
            keys.insert((call.call.name.clone(), key.clone()), known);
        }
        keys.into_values().collect()
    }
}

impl Recorded {
    fn ends(&mut self, end: PastEnd, at: SystemTime) {
        (self.end, self.ended_at) = (Some(end), Some(at));
    }

    /// Whoever has dispatched it has ended. That a read was started is known if its handler has dispatched something.
    fn interrupt(&mut self, has_dispatched: bool, at: SystemTime) {
        let attempts = self.attempts.last().map_or(u32::from(has_dispatched), |(last, _)| last.attempt);
        let message = "the engine's process ended while whoever has dispatched this call was running";
        let error = match attempts {
            0 => CallError::new(ErrorKind::Cancelled, message).not_started(),
            _ => CallError::new(ErrorKind::Interrupted, message),
        };
        let end = PastEnd {
            status: Err(error),
            attempts,
            dedupe: Dedupe::Fresh,
            routing: Routing::ShortCircuit,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            queued: std::time::Duration::ZERO,
            ran: std::time::Duration::ZERO,
        };
        self.ends(end, at);
    }
}
