//! What people write by hand: a table of tools, a task per call in a `JoinSet`, a semaphore, a timeout, panics
//! isolated, results in order. No schema, no order of mutating calls, no retry, no cancel, no events, no bounds.

use crate::{TIMEOUT, WIDTH};
use serde_json::Value;
use std::{collections::HashMap, pin::Pin, sync::Arc};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use toolyard_bench::{Contender, Handler, Work, arguments};

type Answer = Result<String, String>;
type Tool = Arc<dyn Fn(Value) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct ByHand {
    tools: Arc<HashMap<String, Tool>>,
    permits: Arc<Semaphore>,
}

impl ByHand {
    pub(crate) fn new(handler: Handler) -> Self {
        let tool: Tool = Arc::new(move |_| {
            Box::pin(async move {
                handler.handle().await;
                Ok(String::new())
            })
        });
        let tools = Arc::new(HashMap::from([("nothing".to_owned(), tool)]));
        Self { tools, permits: Arc::new(Semaphore::new(WIDTH)) }
    }

    async fn dispatch(&self, batch: Vec<(&'static str, Value)>) -> Vec<Answer> {
        let mut results = vec![Err("the tool panicked".to_owned()); batch.len()];
        let mut tasks = JoinSet::new();
        for (at, (name, args)) in batch.into_iter().enumerate() {
            let Some(tool) = self.tools.get(name).cloned() else {
                results[at] = Err(format!("no tool '{name}'"));
                continue;
            };
            let permits = self.permits.clone();
            tasks.spawn(async move {
                let _permit = permits.acquire_owned().await.expect("the semaphore is never closed");
                let done = timeout(TIMEOUT, tool(args)).await;
                (at, done.unwrap_or_else(|_| Err("the tool took too long".to_owned())))
            });
        }
        while let Some(done) = tasks.join_next().await {
            // A call that panicked keeps the error that its slot was initialised with.
            if let Ok((at, result)) = done {
                results[at] = result;
            }
        }
        results
    }
}

impl Contender for ByHand {
    fn name(&self) -> &str {
        "JoinSet by hand"
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let batch = || arguments(calls).into_iter().map(|args| ("nothing", args)).collect::<Vec<_>>();
        let inputs: Vec<_> = (0..batches).map(|_| batch()).collect();
        let me = self.clone();
        Box::pin(async move {
            for input in inputs {
                let results = me.dispatch(input).await;
                assert!(results.iter().all(Result::is_ok));
                std::hint::black_box(results);
            }
        })
    }
}
