//! The open sessions, and what is served of them.
//!
//! ```text
//!   Book ─► Served (a session, its owner) ─┬─ agents: root, root/1, …
//!                                          └─ turns: open ones, and the latest that have ended
//! ```

mod by_number;
mod served;
mod turn;
mod turns;

pub(crate) use served::{Opened, ROOT, Served};
pub(crate) use turn::{Ended, Phase, ServedTurn};
pub(crate) use turns::{Find, Room, TurnBounds};

use crate::problem::Problem;
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use toolyard::{Engine, SessionId, SessionOptions};

/// The open sessions by name.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    open: BTreeMap<String, Arc<Served>>,
    /// The names of those that are being opened, which may read a file, with their owners'.
    opening: BTreeMap<String, String>,
}

impl Shelf {
    /// How many a token has, those included that are being opened.
    fn of(&self, owner: &str) -> usize {
        let open = self.open.values().filter(|served| served.owner().name() == owner).count();
        open + self.opening.values().filter(|of| *of == owner).count()
    }

    fn add(&mut self, served: Arc<Served>) {
        self.open.insert(served.id().to_string(), served);
    }
}

impl Book {
    /// Opens a session. `looks_back` says whether there was one of its name before, if it has a name: nobody else opens one of
    /// that name between this look and the opening. `belongs` is told of it before anybody can find it. Its owner may have as
    /// many as `most`, if there is a bound.
    ///
    /// # Errors
    /// A [`Problem`]: a session of this name is open, its owner has as many as it may, or that of `looks_back`.
    pub(crate) fn open(
        &self,
        engine: &Engine,
        id: Option<SessionId>,
        (mut opened, options): (Opened, SessionOptions),
        most: Option<usize>,
        looks_back: impl FnOnce(&SessionId) -> Result<bool, Problem>,
        belongs: impl FnOnce(&SessionId),
    ) -> Result<Arc<Served>, Problem> {
        let mut all = self.0.lock();
        if let Some(most) = most {
            let own = all.of(opened.owner.name());
            if own >= most {
                return Err(Problem::too_many(format!("this token has {own} open sessions: close some")));
            }
        }
        let Some(id) = id else {
            let served = Arc::new(Served::new(engine.open_unnamed(options), opened));
            belongs(served.id());
            all.add(served.clone());
            return Ok(served);
        };
        if all.open.contains_key(id.as_str()) || all.opening.contains_key(id.as_str()) {
            return Err(taken(&id));
        }
        all.opening.insert(id.to_string(), opened.owner.name().to_owned());
        drop(all); // what the name has done before is read meanwhile
        let session = looks_back(&id).and_then(|is_past| {
            opened.is_past = is_past;
            engine.open(id.clone(), options).map_err(|_| taken(&id))
        });
        let mut all = self.0.lock();
        all.opening.remove(id.as_str());
        let served = Arc::new(Served::new(session?, opened));
        belongs(served.id());
        all.add(served.clone());
        Ok(served)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Served>> {
        self.0.lock().open.get(id).cloned()
    }

    /// The sessions after this name, as many as that, for which `wanted` holds.
    pub(crate) fn list(
        &self,
        after: Option<&str>,
        most: usize,
        wanted: impl Fn(&Served) -> bool,
    ) -> Vec<Arc<Served>> {
        let all = self.0.lock();
        let behind =
            all.open.values().skip_while(|served| after.is_some_and(|after| served.id().as_str() <= after));
        behind.filter(|served| wanted(served)).take(most).cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Forgets the closing sessions that nothing runs in any more, by what the engine says of them. `forget` is told of each
    /// while no other one of its name can be opened.
    pub(crate) fn forget_closed(&self, is_open: impl Fn(&SessionId) -> bool, forget: impl Fn(&SessionId)) {
        for served in self.list(None, usize::MAX, Served::is_closing) {
            if is_open(served.id()) {
                continue;
            }
            let mut all = self.0.lock();
            // Somebody else may have forgotten it meanwhile, and its name may be another one's.
            if all.open.get(served.id().as_str()).is_some_and(|now| Arc::ptr_eq(now, &served)) {
                forget(served.id());
                all.open.remove(served.id().as_str());
            }
        }
    }
}

fn taken(id: &SessionId) -> Problem {
    Problem::new(StatusCode::CONFLICT, "session_open", format!("a session named '{id}' is already open"))
}

/// A name that sessions may have in a URL (HT-7).
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(is_plain) && name.bytes().any(|byte| byte != b'.')
}

/// A session of somebody else is none (HT-7).
pub(crate) fn no_session(id: &str) -> Problem {
    Problem::not_found(format!("session '{}'", id.escape_debug()))
}
