//! What all requests share.

use crate::{
    access::{Access, Caller},
    book::{Book, Served, no_session},
    front::Front,
    http::{Answered, Bodies, Places},
    notify::{Counts, Teller},
    options::ServerOptions,
    problem::Problem,
    routes::Gateways,
    wall,
};
use parking_lot::Mutex;
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, SessionId};

/// Shared by all requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) front: Front,
    pub(crate) access: Access,
    pub(crate) options: ServerOptions,
    pub(crate) book: Book,
    pub(crate) answered: Answered,
    pub(crate) streams: Places,
    pub(crate) connections: Places,
    pub(crate) bodies: Bodies,
    pub(crate) gateways: Gateways,
    pub(crate) started_ms: u64,
    /// The one-time code of the page's link.
    pub(crate) code: Option<Arc<str>>,
    /// Who tells of questions, until it is served.
    pub(crate) teller: Mutex<Option<Teller>>,
    /// What became of the questions that somebody elsewhere is told of, if there is somebody.
    pub(crate) told: Option<Arc<Counts>>,
    /// Held while the configuration is read again.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    /// Fires when streams are to end.
    pub(crate) stop: CancellationToken,
    draining: AtomicBool,
}

/// What a server has from its beginning.
pub(crate) struct Begun {
    pub(crate) code: Option<Arc<str>>,
    pub(crate) teller: Option<Teller>,
    pub(crate) told: Option<Arc<Counts>>,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(
        engine: Engine,
        front: Front,
        access: Access,
        options: ServerOptions,
        begun: Begun,
    ) -> Self {
        let stop = CancellationToken::new();
        let clients = front.clients().clone();
        Self(Arc::new(Shared {
            gateways: Gateways::new(engine.clone(), clients, options.clients, stop.clone()),
            streams: Places::new(options.bounds.streams_max, "streams"),
            connections: Places::new(options.bounds.connections_of_token_max, "connections"),
            bodies: Bodies::new(options.bounds.body_bytes_max, options.bounds.bodies_bytes_max),
            engine,
            front,
            access,
            options,
            book: Book::default(),
            answered: Answered::default(),
            started_ms: wall::now_ms(),
            code: begun.code,
            teller: Mutex::new(begun.teller),
            told: begun.told,
            reloading: tokio::sync::Mutex::default(),
            stop,
            draining: AtomicBool::new(false),
        }))
    }

    /// Starts nothing new from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Passes while something new may be started.
    pub(crate) fn starts(&self) -> Result<(), Problem> {
        if self.is_draining() { Err(Problem::draining()) } else { Ok(()) }
    }

    /// Closes idle sessions, and forgets those that have closed.
    pub(crate) fn sweep(&self) {
        let within = self.options.bounds.idle_timeout;
        for served in
            self.book.list(None, usize::MAX, |served| !served.is_closing() && served.is_idle(within))
        {
            if self.front.questions().count_of(served.id()) == 0 {
                tracing::info!(session = %served.id(), "closed a session that nothing has happened in");
                served.close();
            }
        }
        self.forget_closed();
    }

    /// Forgets the sessions that have closed.
    pub(crate) fn forget_closed(&self) {
        let questions = self.front.questions();
        self.book.forget_closed(|id| self.engine.find(id).is_some(), |id| questions.forget(id));
    }

    /// A session that this caller may see: its own, or any for those who look after all (HT-7).
    pub(crate) fn session(&self, caller: &Caller, id: &str) -> Result<Arc<Served>, Problem> {
        let served = self.book.find(id).filter(|served| caller.sees_all() || caller.is(served.owner()));
        served.ok_or_else(|| no_session(id))
    }

    /// The name of a session whose events and questions this caller may see. Those of MCP clients are among them, which
    /// are served at `/mcp` alone.
    pub(crate) fn seen(&self, caller: &Caller, id: &str) -> Result<SessionId, Problem> {
        let of_client = || self.engine.find(&SessionId::from(id)).filter(|_| caller.sees_all());
        match self.session(caller, id) {
            Ok(served) => Ok(served.id().clone()),
            Err(problem) => of_client().map(|session| session.id().clone()).ok_or(problem),
        }
    }

    /// A session in which this caller may make calls: one of its own.
    pub(crate) fn own_session(&self, caller: &Caller, id: &str) -> Result<Arc<Served>, Problem> {
        let served = self.book.find(id).filter(|served| caller.is(served.owner()));
        let served = served.ok_or_else(|| no_session(id))?;
        served.touch();
        Ok(served)
    }
}
