//! The floor F: the least a correct engine could do for a batch.
//!
//! Tools behind a trait object, one task per call in a `JoinSet`, a permit acquired in the task, results in input
//! order. No lookup, no schema, no order of classes, no timeout, no cancel, no panic isolation.

use crate::{
    contender::{Contender, Work},
    handler::Handler,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{sync::Semaphore, task::JoinSet};
use toolyard::async_trait;

/// As wide as the engine's read pool.
const WIDTH: usize = 20;

#[async_trait]
trait Call: Send + Sync {
    async fn call(&self, args: &Value) -> Result<String, String>;
}

#[async_trait]
impl Call for Handler {
    async fn call(&self, _: &Value) -> Result<String, String> {
        self.handle().await;
        Ok(String::new())
    }
}

/// The floor.
#[derive(Clone)]
pub struct Floor {
    name: &'static str,
    tool: Arc<dyn Call>,
    permits: Arc<Semaphore>,
}

impl Floor {
    /// The floor over a tool with this handler.
    pub fn of(handler: Handler) -> Arc<Self> {
        Self::named("floor", handler, WIDTH)
    }

    /// The floor under another name, with this many permits.
    pub fn named(name: &'static str, handler: Handler, width: usize) -> Arc<Self> {
        Arc::new(Self { name, tool: Arc::new(handler), permits: Arc::new(Semaphore::new(width)) })
    }

    pub(crate) async fn run(&self, batch: Vec<Value>) {
        let mut results: Vec<Option<Result<String, String>>> = vec![None; batch.len()];
        let mut tasks = JoinSet::new();
        for (at, args) in batch.into_iter().enumerate() {
            let (tool, permits) = (self.tool.clone(), self.permits.clone());
            tasks.spawn(async move {
                let _permit = permits.acquire().await.expect("the semaphore is never closed");
                (at, tool.call(&args).await)
            });
        }
        while let Some(done) = tasks.join_next().await {
            let (at, result) = done.expect("the handlers do not panic");
            results[at] = Some(result);
        }
        assert!(results.iter().all(Option::is_some));
        std::hint::black_box(results);
    }
}

impl Contender for Floor {
    fn name(&self) -> &str {
        self.name
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let inputs: Vec<_> = (0..batches).map(|_| arguments(calls)).collect();
        let floor = self.clone();
        Box::pin(async move {
            for input in inputs {
                floor.run(input).await;
            }
        })
    }
}

/// The arguments of a batch, parsed.
pub fn arguments(calls: usize) -> Vec<Value> {
    (0..calls).map(|n| json!({"n": n})).collect()
}
