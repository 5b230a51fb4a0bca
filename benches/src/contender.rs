//! Those who are measured: the same batch of tools that do nothing, run in different ways.

use crate::{
    floor::Floor,
    full::{Full, Stages},
};
use serde_json::Value;
use toolyard::Batch;

/// One way of running a batch.
#[derive(Clone)]
pub(crate) enum Contender {
    Floor(Floor),
    Full(Full),
}

/// A batch, made before the clock runs.
pub(crate) enum Input {
    Values(Vec<Value>),
    Batch(Batch),
}

impl Contender {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Floor(_) => "floor",
            Self::Full(full) => full.name(),
        }
    }

    pub(crate) fn prepare(&self, size: usize) -> Input {
        match self {
            Self::Floor(_) => Input::Values((0..size).map(|n| serde_json::json!({"n": n})).collect()),
            Self::Full(full) => Input::Batch(full.batch(size)),
        }
    }

    /// Runs one batch to its end.
    pub(crate) async fn run(&self, input: Input) {
        match (self, input) {
            (Self::Floor(floor), Input::Values(values)) => floor.run(values).await,
            (Self::Full(full), Input::Batch(batch)) => full.run(batch).await,
            _ => unreachable!("a contender runs what it prepared"),
        }
    }
}

/// The floor first, then the engine in each of its ways.
pub(crate) async fn all() -> Result<Vec<Contender>, String> {
    let mut all = vec![Contender::Floor(Floor::new())];
    for stages in [Stages::Full, Stages::Inline, Stages::Guarded, Stages::Keyed] {
        all.push(Contender::Full(Full::new(stages).await?));
    }
    Ok(all)
}
