//! What each stage costs: the bare engine, then the bare engine with one stage more, for every stage, and at last the
//! engine with its defaults.

use super::ways::{ENOUGH, LATE, budgets, unlimited_rate};
use crate::{
    axis::{Axis, Building, Unit},
    contender::Contenders,
    floor::Floor,
    handler::Handler,
    listened::Listened,
    yard::{Yard, spec},
};
use std::{io, sync::Arc, time::Duration};
use toolyard::{
    BreakerPolicy, Engine, EngineBuilder, Event, EventWriter, NoHooks, Redactor, RetryPolicy, ToolSpec,
};

pub(crate) const AXIS: Axis = Axis {
    name: "stages",
    about: "the bare engine, and the bare engine plus one stage",
    sizes: &[1, 40, 1000],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

/// A stage: its name, and the function that switches it on.
type Stage = (&'static str, fn(ToolSpec, EngineBuilder) -> Result<(ToolSpec, EngineBuilder), String>);

const STAGES: &[Stage] = &[
    ("bare", |tool, engine| Ok((tool, engine))),
    ("+ schema", |tool, engine| Ok((tool.input_schema(spec("any").schema()), engine))),
    ("+ timeout", |tool, engine| Ok((tool.timeout(Duration::from_secs(30)), engine))),
    ("+ retry", |tool, engine| Ok((tool.retry(RetryPolicy::default()), engine))),
    ("+ breaker", |tool, engine| Ok((tool.breaker(BreakerPolicy::default()), engine))),
    ("+ back-end", |tool, engine| Ok((tool.breaker(BreakerPolicy::default()).backend("nowhere"), engine))),
    ("+ rate", |tool, engine| Ok((tool.rate(unlimited_rate()?), engine))),
    ("+ budgets", |tool, engine| Ok((tool.budget(ENOUGH), engine.budgets(budgets())))),
    ("+ deadline", |tool, engine| Ok((tool, engine.call_deadline(LATE)))),
    ("+ redaction", |tool, engine| Ok((tool, engine.redact(Redactor::standard())))),
    ("+ hooks", |tool, engine| Ok((tool, engine.hooks(NoHooks)))),
    ("+ events to a sink", |tool, engine| Ok((tool, engine.events(see)))),
    ("+ events to a writer", |tool, engine| Ok((tool, engine.event_writer(NullWriter)))),
];

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        for (name, stage) in STAGES {
            let (tool, engine) = stage(bare(), Engine::builder())?;
            all.push(Arc::new(Yard::new(name, engine, tool, Handler::Ready).await?));
        }
        let more = |name| Yard::new(name, Engine::builder(), bare(), Handler::Ready);
        all.push(Arc::new(more("+ keys").await?.keyed()));
        let asks = Handler::AsksForToken;
        all.push(Arc::new(Yard::new("+ cancel token", Engine::builder(), bare(), asks).await?));
        all.push(Arc::new(Listened::new(more("+ events to a subscriber").await?)));
        let full = Yard::new("full", Engine::builder(), spec("nothing"), Handler::Ready).await?;
        all.push(Arc::new(full));
        Ok(all)
    })
}

/// A tool without schema, timeout, retries or breaker.
fn bare() -> ToolSpec {
    let spec = ToolSpec::read("nothing").timeout(Duration::MAX);
    spec.retry(RetryPolicy::NONE).breaker(BreakerPolicy::DISABLED)
}

/// A sink that looks at no event.
pub(super) fn see(event: &Event) {
    std::hint::black_box(event);
}

struct NullWriter;

impl EventWriter for NullWriter {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        std::hint::black_box(event);
        Ok(())
    }
}
