//! Tools that wait: not at all, once, and for a millisecond.

use crate::{
    axis::{Axis, Building, Unit},
    contender::Contenders,
    floor::Floor,
    handler::Handler,
    yard::{Yard, spec},
};
use std::{sync::Arc, time::Duration};
use toolyard::Engine;

pub(crate) const YIELDS: Axis = Axis {
    name: "yields",
    about: "tools that are pending once, and woken at once",
    sizes: &[1, 8, 40, 1000],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build: || build(Handler::Yields),
};

pub(crate) const SLEEPS: Axis = Axis {
    name: "sleeps",
    about: "tools that sleep for a millisecond, 20 at once",
    sizes: &[1, 8, 40, 1000],
    rounds: 9,
    calls_per_sample: 200,
    unit: Unit::Call,
    build: || build(Handler::Sleeps(Duration::from_millis(1))),
};

fn build(handler: Handler) -> Building {
    Box::pin(async move {
        let full = Yard::new("full", Engine::builder(), spec("waits"), handler).await?;
        let inline = Yard::new("inline", Engine::builder(), spec("waits").inline(), handler).await?;
        let all: Contenders = vec![Floor::of(handler), Arc::new(full), Arc::new(inline)];
        Ok(all)
    })
}
