//! Batches of several classes: how many runs they form, and what that costs.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    floor::Floor,
    handler::Handler,
    yard::{self, engine, id, spec},
};
use serde_json::json;
use std::sync::Arc;
use toolyard::{Batch, Call, Confirmations, Engine, Session, SideEffects, ToolSpec, from_fn};

pub(crate) const AXIS: Axis = Axis {
    name: "classes",
    about: "batches of one class and of several",
    sizes: &[8, 40, 1000],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

/// The contenders: a name, and the tools that its calls cycle through.
const MIXES: &[(&str, &[&str])] = &[
    ("reads", &["read"]),
    ("concurrent", &["concurrent"]),
    ("writes, one at a time", &["write"]),
    ("3 reads, 1 concurrent", &["read", "read", "read", "concurrent"]),
    ("7 reads, 1 write", &["read", "read", "read", "read", "read", "read", "read", "write"]),
    ("read, write, in turn", &["read", "write"]),
    (ASKED, &["write"]),
];

/// The mix in which an approver is asked about each call and approves at once. The other mixes ask nobody.
const ASKED: &str = "writes, each asked about";

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        for (name, tools) in MIXES {
            all.push(Arc::new(Mix::new(name, tools).await?));
        }
        Ok(all)
    })
}

struct Mix {
    name: &'static str,
    tools: Vec<Arc<str>>,
    session: Session,
    // Keeps the pools alive.
    _engine: Engine,
}

impl Mix {
    async fn new(name: &'static str, tools: &[&str]) -> Result<Self, String> {
        let ready = |spec: ToolSpec| from_fn(spec, || Handler::Ready);
        let writes = |name| {
            let mut spec = spec(name);
            spec.side_effects = SideEffects::Write;
            spec
        };
        let builder = Engine::builder().tool(ready(spec("read"))).tool(ready(writes("write")));
        let asks = if name == ASKED { Confirmations::default() } else { Confirmations::auto() };
        let builder = builder.confirmations(asks);
        let engine = engine(builder.tool(ready(writes("concurrent").concurrent()))).await?;
        let tools = tools.iter().map(|tool| Arc::from(*tool)).collect();
        Ok(Self { name, tools, session: engine.session("mix"), _engine: engine })
    }

    fn batch(&self, calls: usize) -> Batch {
        let tools = self.tools.iter().cycle();
        tools
            .take(calls)
            .enumerate()
            .map(|(n, tool)| Call::with_arguments(id(n), tool.clone(), json!({"n": n})))
            .collect()
    }
}

impl Contender for Mix {
    fn name(&self) -> &str {
        self.name
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        yard::one_by_one(&self.session, (0..batches).map(|_| self.batch(calls)).collect())
    }
}
