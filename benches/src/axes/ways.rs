//! The floor, and the engine as most people use it: with all its default stages (lookup, policy, schema, confirmation,
//! runs, breaker, permits, a task per call, timeout, cancel, retries, panic isolation, a span, and events without a
//! reader). Then with the opt-in stages (a rate, budgets, a deadline, a back-end), and with idempotency keys too.

use crate::{
    axis::{Axis, Building, Unit},
    contender::Contenders,
    floor::Floor,
    handler::Handler,
    yard::{Yard, spec},
};
use std::{sync::Arc, time::Duration};
use toolyard::{Budget, Budgets, Engine, EngineBuilder, Rate, ToolSpec};

pub(crate) const AXIS: Axis = Axis {
    name: "ways",
    about: "the engine in its usual configurations, with every stage",
    sizes: &[1, 40, 1000],
    rounds: 101,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        for way in ["full", "inline", "guarded", "keyed"] {
            all.push(Arc::new(yard(way).await?));
        }
        Ok(all)
    })
}

/// Builds the engine in one of its ways.
async fn yard(way: &'static str) -> Result<Yard, String> {
    let (spec, builder) = (spec("nothing"), Engine::builder());
    let (spec, builder) = match way {
        "inline" => (spec.inline(), builder),
        "guarded" | "keyed" => (guarded(spec)?, unbounded(builder)),
        _ => (spec, builder),
    };
    let yard = Yard::new(way, builder, spec, Handler::Ready).await?;
    Ok(if way == "keyed" { yard.keyed() } else { yard })
}

/// Adds a rate that nothing here reaches, a budget and a back-end.
fn guarded(spec: ToolSpec) -> Result<ToolSpec, String> {
    Ok(spec.rate(unlimited_rate()?).budget(ENOUGH).backend("nowhere"))
}

/// A rate that nothing here reaches.
pub(crate) fn unlimited_rate() -> Result<Rate, String> {
    Rate::per_second(1_000_000_000).map_err(|error| error.to_string())
}

/// A budget that nothing here reaches.
pub(crate) const ENOUGH: Budget = Budget::calls(u64::MAX / 2);

/// A deadline that nothing here reaches.
pub(crate) const LATE: Duration = Duration::from_secs(3600);

/// Budgets for turn, agent and tree.
pub(crate) fn budgets() -> Budgets {
    Budgets::default().turn(ENOUGH).session(ENOUGH).tree(ENOUGH)
}

fn unbounded(builder: EngineBuilder) -> EngineBuilder {
    builder.budgets(budgets()).call_deadline(LATE)
}
