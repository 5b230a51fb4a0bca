//! Many agents: what a call costs as the number of agents grows, with all of them working.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    handler::Handler,
    yard::{self, Yard, spec},
};
use std::sync::Arc;
use tokio::task::JoinSet;
use toolyard::{Engine, ForkPolicy, Session};

pub(crate) const AXIS: Axis = Axis {
    name: "agents",
    about: "1 to 10 000 agents of one tree, 64 of them at a time, each with its own batch",
    sizes: &[8],
    rounds: 15,
    calls_per_sample: 80_000,
    unit: Unit::Call,
    build,
};

/// Number of agents that work at once, if there are that many.
const CONCURRENT: usize = 64;

const CROWDS: [(&str, usize); 5] =
    [("1 agent", 1), ("10 agents", 10), ("100 agents", 100), ("1000 agents", 1000), ("10000 agents", 10_000)];

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = Vec::new();
        for (name, count) in CROWDS {
            let yard = Yard::new(name, Engine::builder(), spec("nothing"), Handler::Ready).await?;
            let fork = |_| yard.session().fork(ForkPolicy::default()).map_err(|error| error.to_string());
            let agents = (0..count).map(fork).collect::<Result<_, _>>()?;
            all.push(Arc::new(Crowd { yard, agents }));
        }
        Ok(all)
    })
}

struct Crowd {
    yard: Yard,
    agents: Vec<Session>,
}

impl Contender for Crowd {
    fn name(&self) -> &str {
        self.yard.name()
    }

    /// Gives each agent the same number of batches, and splits the agents evenly over [`CONCURRENT`] tasks.
    fn work(&self, calls: usize, batches: usize) -> Work {
        let mut lots: Vec<Vec<_>> = (0..CONCURRENT.min(self.agents.len())).map(|_| Vec::new()).collect();
        let tasks = lots.len();
        for (n, agent) in self.agents.iter().cycle().take(batches).enumerate() {
            lots[n % tasks].push((agent.clone(), self.yard.batch(calls)));
        }
        Box::pin(async move {
            let mut working = JoinSet::new();
            for lot in lots {
                working.spawn(async move {
                    for (agent, batch) in lot {
                        yard::run(&agent, batch).await;
                    }
                });
            }
            while let Some(done) = working.join_next().await {
                done.expect("an agent does not panic");
            }
        })
    }
}
