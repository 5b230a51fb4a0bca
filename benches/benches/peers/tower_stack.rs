//! tower's layers around a tool: retry, timeout, a buffer, a concurrency limit; a task per call, results in order. No
//! schema, no ordering of calls that change things, no cancel, no events.

use crate::{TIMEOUT, WIDTH};
use serde_json::Value;
use std::future::{Ready, ready};
use tokio::task::JoinSet;
use toolyard_bench::{Contender, Handler, Work, arguments};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, retry::Policy, util::BoxCloneSyncService};

/// Capacity of the buffer.
const BUFFER: usize = 1024;

#[derive(Clone)]
pub(crate) struct Tower {
    handler: Handler,
}

/// A retry policy of up to three attempts.
#[derive(Clone)]
struct Thrice {
    left: usize,
}

impl Policy<Value, String, BoxError> for Thrice {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Value, result: &mut Result<String, BoxError>) -> Option<Ready<()>> {
        self.left = self.left.checked_sub(1).filter(|_| result.is_err())?;
        Some(ready(()))
    }

    fn clone_request(&mut self, args: &Value) -> Option<Value> {
        Some(args.clone())
    }
}

impl Tower {
    pub(crate) fn new(handler: Handler) -> Self {
        Self { handler }
    }

    /// Must be called inside the runtime, because the buffer spawns a task.
    fn stack(&self) -> BoxCloneSyncService<Value, String, BoxError> {
        let handler = self.handler;
        let tool = tower::service_fn(move |_: Value| async move {
            handler.handle().await;
            Ok::<_, BoxError>(String::new())
        });
        let stack = ServiceBuilder::new()
            .retry(Thrice { left: 2 })
            .timeout(TIMEOUT)
            .buffer(BUFFER)
            .concurrency_limit(WIDTH)
            .service(tool);
        BoxCloneSyncService::new(stack)
    }
}

async fn dispatch(
    stack: &BoxCloneSyncService<Value, String, BoxError>,
    batch: Vec<Value>,
) -> Vec<Option<String>> {
    let mut results = vec![None; batch.len()];
    let mut tasks = JoinSet::new();
    for (at, args) in batch.into_iter().enumerate() {
        let mut stack = stack.clone();
        tasks.spawn(async move {
            let called = async { stack.ready().await?.call(args).await };
            (at, called.await)
        });
    }
    while let Some(done) = tasks.join_next().await {
        if let Ok((at, result)) = done {
            results[at] = result.ok();
        }
    }
    results
}

impl Contender for Tower {
    fn name(&self) -> &str {
        "tower"
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let inputs: Vec<_> = (0..batches).map(|_| arguments(calls)).collect();
        let stack = self.stack();
        Box::pin(async move {
            for input in inputs {
                let results = dispatch(&stack, input).await;
                assert!(results.iter().all(Option::is_some));
                std::hint::black_box(results);
            }
        })
    }
}
