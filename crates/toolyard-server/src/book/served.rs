//! One open session.

use super::{
    turn::{Phase, ServedTurn},
    turns::{TurnBounds, Turns},
};
use crate::{access::Token, problem::Problem, wall};
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard::{ForkPolicy, Session, SessionId};

/// How many agents a session has at most, forks of forks included.
const AGENTS_MAX: usize = 1000;

/// The name of the agent that a session begins with.
pub(crate) const ROOT: &str = "root";

/// For whom a session is opened, and with what.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) owner: Arc<Token>,
    pub(crate) role: Option<String>,
    pub(crate) workspace: Option<String>,
    pub(crate) bounds: TurnBounds,
    /// When it was opened first, in milliseconds since 1970.
    pub(crate) opened_ms: u64,
    /// Whether there was a session of this name in an earlier life of the server, or in this one: it may have turns that are
    /// not here.
    pub(crate) is_past: bool,
}

/// An open session, its agents and its turns.
#[derive(Debug)]
pub(crate) struct Served {
    id: SessionId,
    opened: Opened,
    active: Mutex<Active>,
    /// By path; empty once it is closing.
    agents: Mutex<BTreeMap<String, Session>>,
    /// Fires when it is closing.
    closing: CancellationToken,
    pub(crate) turns: Turns,
    /// Held while a turn of an earlier life is taken up.
    pub(crate) recalling: tokio::sync::Mutex<()>,
    /// The turns of an earlier life that go on by themselves and are not taken up yet.
    to_take_up: Mutex<BTreeSet<u64>>,
    /// How many calls run that are no turns.
    calls: Arc<AtomicUsize>,
}

/// A call that is no turn, while it runs.
pub(crate) struct CallGuard(Arc<AtomicUsize>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When somebody last did something in a session.
#[derive(Debug, Clone, Copy)]
struct Active {
    at: Instant,
    wall_ms: u64,
}

impl Active {
    fn now() -> Self {
        Self { at: Instant::now(), wall_ms: wall::now_ms() }
    }
}

impl Served {
    pub(super) fn new(session: Session, opened: Opened) -> Self {
        Self {
            id: session.id().clone(),
            active: Mutex::new(Active::now()),
            turns: Turns::new(opened.bounds),
            recalling: tokio::sync::Mutex::default(),
            to_take_up: Mutex::default(),
            calls: Arc::default(),
            closing: CancellationToken::new(),
            agents: Mutex::new([(ROOT.to_owned(), session)].into()),
            opened,
        }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn owner(&self) -> &Token {
        &self.opened.owner
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Notes that something happens in it, and returns when, in milliseconds since 1970.
    pub(crate) fn touch(&self) -> u64 {
        let now = Active::now();
        *self.active.lock() = now;
        now.wall_ms
    }

    pub(crate) fn active_ms(&self) -> u64 {
        self.active.lock().wall_ms
    }

    /// Whether nothing has happened in it for this long, and nothing is going on.
    pub(crate) fn is_idle(&self, within: Duration) -> bool {
        // A parent program says itself what it needs no longer (AG-14).
        let is_busy =
            self.opened.owner.is_parent() || self.turns.is_busy() || self.calls.load(Ordering::Relaxed) > 0;
        !is_busy && self.active.lock().at.elapsed() >= within
    }

    /// Notes that a call begins that is no turn.
    ///
    /// # Errors
    /// A [`Problem`]: as many run as there may be open turns.
    pub(crate) fn begin_call(&self) -> Result<CallGuard, Problem> {
        let begun = CallGuard(self.calls.clone());
        if self.calls.fetch_add(1, Ordering::Relaxed) >= self.opened.bounds.open_max {
            return Err(Problem::too_many("this session has too many calls at once: wait for some to end"));
        }
        Ok(begun)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.agents.lock().is_empty()
    }

    /// Waits until it is closing.
    pub(crate) async fn until_closing(&self) {
        self.closing.cancelled().await;
    }

    /// The agent of this path.
    pub(crate) fn agent(&self, path: Option<&str>) -> Result<Session, Problem> {
        self.among(&self.agents.lock(), path)
    }

    fn among(&self, agents: &BTreeMap<String, Session>, path: Option<&str>) -> Result<Session, Problem> {
        if agents.is_empty() {
            let detail = format!("the session '{}' is closing", self.id);
            return Err(Problem::new(StatusCode::CONFLICT, "session_closing", detail));
        }
        let path = path.unwrap_or(ROOT);
        let agent = agents.get(path).cloned();
        agent.ok_or_else(|| Problem::not_found(format!("agent '{}'", path.escape_debug())))
    }

    /// The paths of its agents.
    pub(crate) fn agents(&self) -> Vec<String> {
        self.agents.lock().keys().cloned().collect()
    }

    /// Makes a sub-agent of one of its agents.
    ///
    /// It is made under the lock, so that a session that closes meanwhile has it among its agents or does not make it, and
    /// that there are never more than there may be.
    pub(crate) fn fork(&self, of: Option<&str>, policy: ForkPolicy) -> Result<Session, Problem> {
        let mut agents = self.agents.lock();
        let parent = self.among(&agents, of)?;
        if agents.len() >= AGENTS_MAX {
            return Err(Problem::too_many(format!("a session has at most {AGENTS_MAX} agents")));
        }
        let child = parent.fork(policy).map_err(|error| match error {
            toolyard::ForkError::BadName => Problem::invalid("/name", error),
            error => Problem::new(StatusCode::CONFLICT, "not_forked", error),
        })?;
        let path = child.agent().as_str().to_owned();
        agents.insert(path, child.clone());
        Ok(child)
    }

    /// Forgets a sub-agent of which nobody was told that it is there, with those that others have made of it meanwhile.
    pub(crate) fn unmake(&self, agent: &Session) {
        let path = agent.agent().as_str();
        let is_under = |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        let mut agents = self.agents.lock();
        let unmade: Vec<_> =
            agents.extract_if(.., |other, _| other.as_str() == path || is_under(other)).collect();
        drop(agents);
        drop(unmade); // outside of the lock
    }

    /// Notes that a turn of an earlier life is going to be taken up.
    pub(crate) fn will_go_on(&self, turn: u64) {
        self.to_take_up.lock().insert(turn);
    }

    /// Notes that it is, or that it cannot be.
    pub(crate) fn is_taken_up(&self, turn: u64) {
        self.to_take_up.lock().remove(&turn);
    }

    /// Whether a turn of an earlier life is going to be taken up.
    pub(crate) fn goes_on_by_itself(&self, turn: u64) -> bool {
        self.to_take_up.lock().contains(&turn)
    }

    /// Cancels its calls and lets go of it: it ends once they have. Returns its agent, if it was not closing already: its record
    /// says when that is durable.
    pub(crate) fn close(&self) -> Option<Session> {
        let mut agents = std::mem::take(&mut *self.agents.lock());
        let root = agents.remove(ROOT);
        if let Some(root) = &root {
            root.cancel();
        }
        drop(agents);
        self.closing.cancel();
        for turn in self.turns.list() {
            turn.cancel();
            turn.let_go();
        }
        root
    }

    /// The stream of this turn has broken off. It goes on only if its session does.
    pub(crate) fn has_broken(&self, turn: &ServedTurn) {
        turn.moves(&[Phase::Streaming], Phase::Broken);
        // Looked at afterwards: a session that begins to close after this lets go of it itself.
        if self.is_closing() {
            turn.let_go();
        }
    }
}
