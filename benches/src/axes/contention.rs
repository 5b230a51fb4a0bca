//! Contention: sessions that meet at one pool, which is as wide as one call, as twenty, or as all of them.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    floor::Floor,
    handler::Handler,
    yard::{Yard, spec},
};
use std::sync::Arc;
use tokio::task::JoinSet;
use toolyard::{Engine, PoolWidths};

pub(crate) const AXIS: Axis = Axis {
    name: "contention",
    about: "64 sessions at once, each with a batch, sharing one pool",
    sizes: &[1, 8],
    rounds: 31,
    calls_per_sample: 4096,
    unit: Unit::Call,
    build,
};

const SESSIONS: usize = 64;

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = Vec::new();
        for (floor, full, width) in [
            ("floor, 20 permits", "full, width 20", 20),
            ("floor, 1 permit", "full, width 1", 1),
            ("floor, 4096 permits", "full, width 4096", 4096),
        ] {
            let permits = Floor::named(floor, Handler::Ready, width);
            all.push(Arc::new(Sharing { members: vec![permits; SESSIONS] }));
            let mut widths = PoolWidths::default();
            widths.read = width;
            let yard =
                Yard::new(full, Engine::builder().pools(widths), spec("nothing"), Handler::Ready).await?;
            let session = |n| yard.engine().session(format!("session {n}"));
            let members = (0..SESSIONS).map(|n| Arc::new(yard.clone().through(full, session(n))));
            all.push(Arc::new(Sharing { members: members.collect() }));
        }
        Ok(all)
    })
}

struct Sharing<C> {
    members: Vec<Arc<C>>,
}

impl<C: Contender> Contender for Sharing<C> {
    fn name(&self) -> &str {
        self.members[0].name()
    }

    /// Splits the requested batches evenly over the sessions.
    fn work(&self, calls: usize, batches: usize) -> Work {
        let each = batches.div_ceil(SESSIONS);
        let works: Vec<_> = self.members.iter().map(|one| one.work(calls, each)).collect();
        Box::pin(async move {
            let mut working: JoinSet<()> = works.into_iter().collect();
            while let Some(done) = working.join_next().await {
                done.expect("a session does not panic");
            }
        })
    }
}
