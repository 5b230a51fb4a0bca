//! The engine with every stage it has: lookup, schema, policy, confirmation, runs, permits, a task per call,
//! timeout, cancel, panics kept apart, a span and events without a reader.

use serde_json::{Value, json};
use std::sync::Arc;
use toolyard::{
    Batch, Call, CallId, Engine, Session, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait,
    from_fn,
};

/// On what the tool runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Placed {
    Task,
    Inline,
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
    placed: Placed,
    session: Session,
    /// Ids and names are the provider's; making them is not the engine's work.
    ids: Arc<[CallId]>,
    name: Arc<str>,
    // Keeps the pools alive.
    _engine: Engine,
}

/// The most calls of a batch.
pub(crate) const IDS: usize = Batch::CALLS_MAX;

impl Full {
    pub(crate) async fn new(placed: Placed) -> Result<Self, String> {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let spec = ToolSpec::read("nothing").input_schema(schema);
        let spec = match placed {
            Placed::Task => spec,
            Placed::Inline => spec.inline(),
        };
        let engine = Engine::builder().tool(from_fn(spec, || Nothing)).build().await;
        let engine = engine.map_err(|error| format!("the engine cannot be built: {error}"))?;
        let ids = (0..IDS).map(|n| CallId::from(format!("call_{n}"))).collect();
        Ok(Self { placed, session: engine.session("bench"), ids, name: "nothing".into(), _engine: engine })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.placed {
            Placed::Task => "full",
            Placed::Inline => "inline",
        }
    }

    pub(crate) fn batch(&self, size: usize) -> Batch {
        let call = |n: usize| Call::new(self.ids[n].clone(), self.name.clone(), json!({"n": n}));
        (0..size).map(call).collect()
    }

    pub(crate) async fn run(&self, batch: Batch) {
        let outcomes = self.session.dispatch(batch).await;
        assert!(outcomes.iter().all(toolyard::Outcome::success));
        std::hint::black_box(outcomes);
    }
}
