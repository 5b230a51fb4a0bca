//! Nested agents: what a call costs at each depth.

use crate::{
    axis::{Axis, Building, Unit},
    contender::Contenders,
    floor::Floor,
    handler::Handler,
    yard::{Yard, spec},
};
use std::sync::Arc;
use toolyard::{Engine, ForkPolicy};

pub(crate) const AXIS: Axis = Axis {
    name: "depths",
    about: "calls of forks, at depth 0 to 7",
    sizes: &[1, 40],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

const DEPTHS: [&str; 8] =
    ["depth 0", "depth 1", "depth 2", "depth 3", "depth 4", "depth 5", "depth 6", "depth 7"];

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        let root = Yard::new(DEPTHS[0], Engine::builder(), spec("nothing"), Handler::Ready).await?;
        let mut agent = root.session().clone();
        for depth in DEPTHS {
            all.push(Arc::new(root.clone().through(depth, agent.clone())));
            agent = agent.fork(ForkPolicy::default()).map_err(|error| error.to_string())?;
        }
        Ok(all)
    })
}
