//! What it costs to be told of a call: the engine with its defaults, and with somebody who follows or records calls.

use super::stages::see;
use crate::{
    axis::{Axis, Building, Unit},
    contender::Contenders,
    floor::Floor,
    handler::Handler,
    listened::Listened,
    yard::{Yard, spec},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};
use toolyard::{Engine, EngineBuilder, Event, EventSink, NoHooks, Recorder};

pub(crate) const AXIS: Axis = Axis {
    name: "listeners",
    about: "the engine with its defaults, and with somebody who follows or records calls",
    sizes: &[1, 40],
    rounds: 101,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

fn build() -> Building {
    Box::pin(async {
        let full = Engine::builder;
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        all.push(Arc::new(yard("full", full()).await?));
        all.push(Arc::new(yard("a sink", full().events(see)).await?));
        all.push(Arc::new(yard("a sink that keeps events", full().events(Kept::default())).await?));
        all.push(Arc::new(yard("hooks", full().hooks(NoHooks)).await?));
        all.push(Arc::new(yard("a recorder", full().recorder(Unread)).await?));
        all.push(Arc::new(yard("a key", full()).await?.keyed()));
        all.push(Arc::new(Listened::new(yard("a subscriber", full()).await?)));
        Ok(all)
    })
}

async fn yard(name: &'static str, builder: EngineBuilder) -> Result<Yard, String> {
    Yard::new(name, builder, spec("nothing"), Handler::Ready).await
}

/// Keeps the last events.
#[derive(Default)]
struct Kept(Mutex<VecDeque<Event>>);

/// How many it keeps.
const KEPT_MAX: usize = 1024;

impl EventSink for Kept {
    fn accept(&self, event: &Event) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(event.clone());
    }
}

/// Takes every record, and lets nobody wait.
struct Unread;

impl Recorder for Unread {}
