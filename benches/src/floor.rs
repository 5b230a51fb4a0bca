//! The floor F: the least a correct engine could do for a batch.
//!
//! Tools behind a trait object, one task per call in a `JoinSet`, a permit taken in the task, results in
//! input order. No lookup, no schema, no order of classes, no timeout, no cancel, no panic kept apart.

use serde_json::Value;
use std::sync::Arc;
use tokio::{sync::Semaphore, task::JoinSet};
use toolyard::async_trait;

/// As wide as the engine's read pool.
const WIDTH: usize = 20;

#[async_trait]
trait Call: Send + Sync {
    async fn call(&self, args: &Value) -> Result<String, String>;
}

struct Nothing;

#[async_trait]
impl Call for Nothing {
    async fn call(&self, _: &Value) -> Result<String, String> {
        Ok(String::new())
    }
}

#[derive(Clone)]
pub(crate) struct Floor {
    tool: Arc<dyn Call>,
    permits: Arc<Semaphore>,
}

impl Floor {
    pub(crate) fn new() -> Self {
        Self { tool: Arc::new(Nothing), permits: Arc::new(Semaphore::new(WIDTH)) }
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
            let (at, result) = done.expect("a tool that does nothing does not panic");
            results[at] = Some(result);
        }
        assert!(results.iter().all(Option::is_some));
        std::hint::black_box(results);
    }
}
