//! The engine as a contender: one tool, one session, and batches that call that tool.

use crate::{
    contender::{Contender, Work},
    handler::Handler,
};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicU64, Ordering},
};
use toolyard::{Answer, Batch, Call, CallId, Engine, EngineBuilder, Outcome, Session, ToolSpec, from_fn};

/// The largest number of calls in a batch.
pub(crate) const CALLS_MAX: usize = Batch::CALLS_MAX;

/// Made once and ahead of time: ids come from the provider, and making them is not the engine's work.
static IDS: LazyLock<Vec<CallId>> =
    LazyLock::new(|| (0..CALLS_MAX).map(|n| CallId::from(format!("call_{n}"))).collect());

/// The id of the call at this index of its batch.
pub(crate) fn id(n: usize) -> CallId {
    IDS[n].clone()
}

/// The tool that most contenders use: read-only, with a schema, under this name.
pub fn spec(name: &str) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ToolSpec::read(name).input_schema(schema)
}

/// Builds an engine that approves everything.
///
/// # Errors
/// A sentence, if it cannot be built.
pub async fn engine(builder: EngineBuilder) -> Result<Engine, String> {
    let engine = builder.approver(Answer::allow("ada")).build().await;
    engine.map_err(|error| format!("cannot build the engine: {error}"))
}

/// An engine with one tool.
#[derive(Clone)]
pub struct Yard {
    name: &'static str,
    session: Session,
    tool: Arc<str>,
    keys: Option<Arc<Keys>>,
    // Keeps the pools alive.
    engine: Engine,
}

/// State for calls with idempotency keys.
#[derive(Default)]
struct Keys {
    /// The next key, so that no key is used twice.
    next: AtomicU64,
    /// The session of the current work, which keeps the results of its keys.
    session: Mutex<Option<Session>>,
}

impl Keys {
    fn next(&self) -> Arc<str> {
        self.next.fetch_add(1, Ordering::Relaxed).to_string().into()
    }
}

impl Yard {
    /// Builds an engine with this tool added to the builder's.
    ///
    /// # Errors
    /// A sentence, if it cannot be built.
    pub async fn new(
        name: &'static str,
        builder: EngineBuilder,
        spec: ToolSpec,
        handler: Handler,
    ) -> Result<Self, String> {
        let tool = spec.name.as_str().into();
        let engine = engine(builder.tool(from_fn(spec, move || handler))).await?;
        Ok(Self { name, session: engine.session("bench"), tool, keys: None, engine })
    }

    /// Gives each call a new idempotency key, and each piece of work a new session.
    #[must_use]
    pub fn keyed(mut self) -> Self {
        self.keys = Some(Arc::default());
        self
    }

    /// The same engine through another session, under another name.
    #[must_use]
    pub(crate) fn through(mut self, name: &'static str, session: Session) -> Self {
        (self.name, self.session) = (name, session);
        self
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn batch(&self, calls: usize) -> Batch {
        (0..calls).map(|n| self.call(n)).collect()
    }

    fn call(&self, n: usize) -> Call {
        let mut call = Call::with_arguments(id(n), self.tool.clone(), json!({"n": n}));
        if let Some(keys) = &self.keys {
            call.idempotency_key = Some(keys.next());
        }
        call
    }
}

/// Runs a batch and asserts that every call succeeds.
pub(crate) async fn run(session: &Session, batch: Batch) {
    let outcomes = session.dispatch(batch).await;
    assert!(outcomes.iter().all(Outcome::success));
    std::hint::black_box(outcomes);
}

/// Runs batches one after the other.
pub(crate) fn one_by_one(session: &Session, batches: Vec<Batch>) -> Work {
    let session = session.clone();
    Box::pin(async move {
        for batch in batches {
            run(&session, batch).await;
        }
    })
}

impl Contender for Yard {
    fn name(&self) -> &str {
        self.name
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let batches = (0..batches).map(|_| self.batch(calls)).collect();
        let Some(keys) = &self.keys else { return one_by_one(&self.session, batches) };
        let session = self.engine.session("keyed");
        // Kept until `forget`, so that dropping all results is not measured as work of the last call.
        *keys.session.lock() = Some(session.clone());
        one_by_one(&session, batches)
    }

    fn forget(&self) {
        if let Some(keys) = &self.keys {
            *keys.session.lock() = None;
        }
    }
}
