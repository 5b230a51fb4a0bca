//! The turns of the parent that are open, by its names for them.

use super::ask::TURN_CALLS_MAX;
use crate::{book::ServedTurn, problem::Problem};
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard::{Call, CallId};

/// The open turns. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<Arc<str>, Open>>>);

/// An open turn.
enum Open {
    /// One of a session.
    Turn(OpenTurn),
    /// A batch of an invocation.
    Nested(CancellationToken),
}

struct OpenTurn {
    turn: Arc<ServedTurn>,
    /// Its calls, by their places.
    ids: Vec<CallId>,
    known: HashSet<CallId>,
    /// Where further calls go, until it is said that none follow.
    feed: Option<mpsc::UnboundedSender<Vec<Call>>>,
}

impl Turns {
    /// Passes if no turn of this name is open.
    ///
    /// # Errors
    /// A [`Problem`].
    pub(super) fn is_free(&self, name: &str) -> Result<(), Problem> {
        match self.0.lock().contains_key(name) {
            false => Ok(()),
            true => Err(Problem::new(
                StatusCode::CONFLICT,
                "turn_open",
                format!("the turn '{name}' has not ended"),
            )),
        }
    }

    /// Begins a turn whose calls are all known, or that goes on by what is fed.
    pub(super) fn begin(
        &self,
        name: Arc<str>,
        turn: Arc<ServedTurn>,
        ids: Vec<CallId>,
        feed: Option<mpsc::UnboundedSender<Vec<Call>>>,
    ) {
        let known = if feed.is_some() { ids.iter().cloned().collect() } else { HashSet::new() };
        self.0.lock().insert(name, Open::Turn(OpenTurn { turn, ids, known, feed }));
    }

    /// Begins a batch of an invocation.
    pub(super) fn begin_nested(&self, name: Arc<str>) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.0.lock().insert(name, Open::Nested(cancel.clone()));
        cancel
    }

    /// Adds calls to a turn that is open for more.
    ///
    /// # Errors
    /// A [`Problem`]: none of this name is, or it would have too many calls, or one of them twice.
    pub(super) fn add(&self, name: &str, calls: Vec<Call>, more: bool) -> Result<(), Problem> {
        let mut all = self.0.lock();
        let open = match all.get_mut(name) {
            Some(Open::Turn(open)) if open.feed.is_some() => open,
            Some(_) => return Err(closed(name)),
            None => return Err(not_open(name)),
        };
        check(&open.known, &calls)?;
        let ids: Vec<CallId> = calls.iter().map(|call| call.id.clone()).collect();
        if let Some(feed) = open.feed.as_ref().filter(|_| !calls.is_empty()) {
            feed.send(calls).map_err(|_| closed(name))?; // its session is closing
        }
        open.known.extend(ids.iter().cloned());
        open.ids.extend(ids);
        open.turn.grows(toolyard_wire::Format::Neutral, open.ids.len());
        if !more {
            open.feed = None;
        }
        Ok(())
    }

    /// Nothing more is added to a turn.
    ///
    /// # Errors
    /// A [`Problem`]: none of this name takes more.
    pub(super) fn end(&self, name: &str) -> Result<(), Problem> {
        match self.0.lock().get_mut(name) {
            Some(Open::Turn(open)) => open.feed.take().map(drop).ok_or_else(|| closed(name)),
            Some(Open::Nested(_)) => Err(closed(name)),
            None => Err(not_open(name)),
        }
    }

    /// Nothing more is added to any turn: the parent says nothing more.
    pub(super) fn end_all(&self) {
        for open in self.0.lock().values_mut() {
            if let Open::Turn(open) = open {
                open.feed = None;
            }
        }
    }

    /// Cancels a turn, or one of its calls; does nothing to what has ended.
    ///
    /// # Errors
    /// A [`Problem`]: calls of an invocation cannot be cancelled one by one.
    pub(super) fn cancel(&self, name: &str, call: Option<&CallId>) -> Result<(), Problem> {
        let (turn, at) = match (self.0.lock().get_mut(name), call) {
            (None, _) => return Ok(()),
            (Some(Open::Nested(cancel)), None) => {
                cancel.cancel();
                return Ok(());
            }
            (Some(Open::Nested(_)), Some(_)) => {
                let why = "calls within an invocation are cancelled together: leave out 'tool_call_id'";
                return Err(Problem::invalid("/tool_call_id", why));
            }
            (Some(Open::Turn(open)), None) => {
                open.feed = None; // what would follow would be cancelled too
                (open.turn.clone(), None)
            }
            (Some(Open::Turn(open)), Some(id)) => {
                let places = (0..).zip(&open.ids).filter(|(_, known)| *known == id).map(|(at, _)| at);
                (open.turn.clone(), Some(places.collect::<Vec<u32>>()))
            }
        };
        match at {
            None => drop(turn.cancel()),
            Some(places) => places.into_iter().for_each(|at| turn.clone().cancel_call(at)),
        }
        Ok(())
    }

    /// The turn of this name, if it is open.
    ///
    /// # Errors
    /// A [`Problem`]: it is a batch of an invocation.
    pub(super) fn find(&self, name: &str) -> Result<Option<Arc<ServedTurn>>, Problem> {
        match self.0.lock().get(name) {
            None => Ok(None),
            Some(Open::Turn(open)) => Ok(Some(open.turn.clone())),
            Some(Open::Nested(_)) => {
                Err(Problem::invalid("/after", "no turn waits for calls that are made within an invocation"))
            }
        }
    }

    /// A turn has ended: its name may be used again. Nobody can begin one of that name before `finish` is over.
    pub(super) fn ended(&self, name: &str, finish: impl FnOnce()) {
        let mut all = self.0.lock();
        let ended = all.remove(name);
        finish();
        drop(all);
        drop(ended); // outside of the lock
    }
}

/// Passes if a turn with these calls may have those too.
pub(super) fn check(known: &HashSet<CallId>, calls: &[Call]) -> Result<(), Problem> {
    has_room(known.len() + calls.len())?;
    let mut ids: HashSet<&CallId> = HashSet::with_capacity(calls.len());
    match calls.iter().position(|call| known.contains(&call.id) || !ids.insert(&call.id)) {
        None => Ok(()),
        Some(at) => {
            let field = format!("/calls/{at}/tool_call_id");
            Err(Problem::invalid(
                &field,
                format!("the turn has a call '{}' already", calls[at].id.as_str().escape_debug()),
            ))
        }
    }
}

/// Passes if a turn may have so many calls.
pub(super) fn has_room(calls: usize) -> Result<(), Problem> {
    match calls <= TURN_CALLS_MAX {
        true => Ok(()),
        false => Err(Problem::too_many(format!("a turn has at most {TURN_CALLS_MAX} calls"))),
    }
}

fn not_open(name: &str) -> Problem {
    Problem::not_found(format!("open turn '{}'", name.escape_debug()))
}

fn closed(name: &str) -> Problem {
    let detail = format!("the turn '{}' takes no more calls: begin another one", name.escape_debug());
    Problem::new(StatusCode::CONFLICT, "turn_closed", detail)
}
