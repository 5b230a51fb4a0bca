//! The engine with every stage it has: lookup, schema, policy, confirmation, runs, breaker, permits, a task per call,
//! timeout, cancel, retries, panics kept apart, a span and events without a reader. And with the stages that have to be
//! asked for: a rate, budgets, a deadline, a back-end; then with an idempotency key for each call as well.

use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Batch, Budget, Budgets, Call, CallId, Engine, EngineBuilder, Rate, Session, Tool, ToolContext, ToolError,
    ToolOutput, ToolSpec, async_trait, from_fn,
};

/// Which stages a call passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stages {
    /// Those of any call, on a task of its own.
    Full,
    /// The same in place.
    Inline,
    /// Those that have to be asked for too, but for a key.
    Guarded,
    /// All of them, each call with a key of its own.
    Keyed,
}

struct Nothing;

#[async_trait]
impl Tool for Nothing {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(String::new()))
    }
}

#[derive(Clone)]
pub(crate) struct Full {
    stages: Stages,
    session: Session,
    /// Ids and names are the provider's; making them is not the engine's work.
    ids: Arc<[CallId]>,
    name: Arc<str>,
    /// No key comes twice.
    keys: Arc<AtomicU64>,
    // Keeps the pools alive.
    _engine: Engine,
}

/// The most calls of a batch.
pub(crate) const IDS: usize = Batch::CALLS_MAX;

impl Full {
    pub(crate) async fn new(stages: Stages) -> Result<Self, String> {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let spec = ToolSpec::read("nothing").input_schema(schema);
        let builder = Engine::builder();
        let (spec, builder) = match stages {
            Stages::Full => (spec, builder),
            Stages::Inline => (spec.inline(), builder),
            Stages::Guarded | Stages::Keyed => (guarded(spec)?, unbounded(builder)),
        };
        let engine = builder.tool(from_fn(spec, || Nothing)).build().await;
        let engine = engine.map_err(|error| format!("the engine cannot be built: {error}"))?;
        let ids = (0..IDS).map(|n| CallId::from(format!("call_{n}"))).collect();
        Ok(Self {
            stages,
            session: engine.session("bench"),
            ids,
            name: "nothing".into(),
            keys: Arc::default(),
            _engine: engine,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.stages {
            Stages::Full => "full",
            Stages::Inline => "inline",
            Stages::Guarded => "guarded",
            Stages::Keyed => "keyed",
        }
    }

    pub(crate) fn batch(&self, size: usize) -> Batch {
        (0..size).map(|n| self.call(n)).collect()
    }

    fn call(&self, n: usize) -> Call {
        let mut call = Call::new(self.ids[n].clone(), self.name.clone(), json!({"n": n}));
        if self.stages == Stages::Keyed {
            let key = self.keys.fetch_add(1, Ordering::Relaxed);
            call.idempotency_key = Some(key.to_string().into());
        }
        call
    }

    pub(crate) async fn run(&self, batch: Batch) {
        let outcomes = self.session.dispatch(batch).await;
        assert!(outcomes.iter().all(toolyard::Outcome::success));
        std::hint::black_box(outcomes);
    }
}

/// A tool with a rate that nothing here comes up to, a budget, and a back-end.
fn guarded(spec: ToolSpec) -> Result<ToolSpec, String> {
    let rate = Rate::per_second(1_000_000_000).map_err(|error| error.to_string())?;
    Ok(spec.rate(rate).budget(ENOUGH).backend("nowhere"))
}

/// Bounds that nothing here comes up to.
const ENOUGH: Budget = Budget::calls(u64::MAX / 2);

fn unbounded(builder: EngineBuilder) -> EngineBuilder {
    let budgets = Budgets::default().turn(ENOUGH).session(ENOUGH).tree(ENOUGH);
    builder.budgets(budgets).call_deadline(Duration::from_secs(3600))
}
