//! Layers around tools: an embedder's own steps on what a tool is given and on what it answers (KT-7).
//!
//! ```text
//!   call ─► A.arguments ─► B.arguments ─► gate: policy, schema, digest, approval, key ─► permits
//!                                                                                          │ every attempt
//!   result ◄─ A.attempt ◄─ B.attempt ◄─ handler ◄─ B.attempt ◄─ A.attempt ◄────────────────┘
//! ```

use crate::{
    Abort, Caller, Form, Resources, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput,
    ToolSpec,
};
use async_trait::async_trait;
use serde_json::Value;
use std::{future::Future, pin::Pin, sync::Arc};

/// What an attempt ends with.
pub type AttemptResult = Result<ToolOutput, ToolError>;

/// A layer around the tools of an engine or around one tool, for caching, logging or quotas of one's own (KT-7).
///
/// Of several layers, the one that was added first is the outermost: its [`arguments`](Self::arguments) come first, and its
/// [`attempt`](Self::attempt) begins first and ends last. The engine's layers are outside of a tool's own.
///
/// # Examples
/// A cache:
/// ```
/// use serde_json::Value;
/// use std::{collections::HashMap, sync::Mutex};
/// use toolyard_core::{AttemptResult, Next, ToolContext, ToolLayer, ToolOutput, ToolSpec, async_trait};
///
/// #[derive(Default)]
/// struct Cache(Mutex<HashMap<(String, String), ToolOutput>>);
///
/// #[async_trait]
/// impl ToolLayer for Cache {
///     async fn attempt(&self, tool: &ToolSpec, args: &Value, _: &ToolContext, next: Next<'_>) -> AttemptResult {
///         let key = (tool.name.clone(), args.to_string());
///         if let Some(known) = self.0.lock().ok().and_then(|known| known.get(&key).cloned()) {
///             return Ok(known); // the handler does not start
///         }
///         let output = next.run().await?;
///         if let Ok(mut known) = self.0.lock() {
///             known.insert(key, output.clone());
///         }
///         Ok(output)
///     }
/// }
/// ```
#[async_trait]
pub trait ToolLayer: Send + Sync {
    /// Looks at the arguments of a call before the gate, and may replace them: `None` leaves them. Policy, schema, digest,
    /// approval, idempotency key, events and the outcome then have what runs, not what was sent. It sees arguments that are
    /// JSON within the engine's bounds, of a tool that the caller can call, before any other check: they may not fit its
    /// schema. The arguments that a person gives with an approval are the person's, and do not pass it.
    ///
    /// Equal arguments must give equal ones, and what it has given must pass it unchanged: a call that is sent again is
    /// recognised by what ran. It runs on the calls' path and must not wait; it runs for plans too, so it should
    /// count nothing.
    ///
    /// # Errors
    /// [`Abort`] ends the call as `aborted`; its handler does not start.
    ///
    /// # Panics
    /// A panic ends the call as `panic`, not started; its siblings go on.
    fn arguments(&self, tool: &ToolSpec, caller: &Caller<'_>, args: &Value) -> Result<Option<Value>, Abort> {
        let _ = (tool, caller, args);
        Ok(None)
    }

    /// Runs an attempt: `next` is what is inside of this layer, in the end the handler. It may leave `next` out, look at its
    /// result or replace it; what it returns is the result of the attempt, for the bounds, the redaction, the retry, the
    /// breaker and the caller. It has the attempt's permits, its timeout and its cancel, and runs within the call as the
    /// handler does, on a task even if the tool is a blocking one. A failure of a sandbox stays one, whatever it returns.
    ///
    /// # Errors
    /// [`ToolError`], as of a handler.
    ///
    /// # Panics
    /// A panic ends this call as `panic` and affects no other call.
    ///
    /// # Cancel safety
    /// The future is dropped when the attempt times out or is abandoned, like that of a handler.
    async fn attempt(
        &self,
        tool: &ToolSpec,
        args: &Value,
        cx: &ToolContext,
        next: Next<'_>,
    ) -> AttemptResult {
        let _ = (tool, args, cx);
        next.run().await
    }
}

/// What is inside of a layer: further layers, and the handler.
pub struct Next<'a> {
    layers: &'a [Arc<dyn ToolLayer>],
    tool: &'a ToolSpec,
    args: &'a Value,
    cx: &'a ToolContext,
    handler: Pin<Box<dyn Future<Output = AttemptResult> + Send + 'a>>,
}

impl<'a> Next<'a> {
    /// These layers, the outermost first, around a handler, which starts when it is polled. The engine makes it; tests of a
    /// layer may.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # use toolyard_core::{ContextParts, Next, ToolContext, ToolSpec};
    /// let (spec, cx) = (ToolSpec::pure("ping"), ToolContext::new(ContextParts::detached("ping")));
    /// let args = serde_json::json!({});
    /// let next = Next::new(&[], &spec, &args, &cx, Box::pin(async { Ok("pong".into()) }));
    /// assert_eq!(next.run().await.unwrap().to_text(), "pong");
    /// # }
    /// ```
    pub fn new(
        layers: &'a [Arc<dyn ToolLayer>],
        tool: &'a ToolSpec,
        args: &'a Value,
        cx: &'a ToolContext,
        handler: Pin<Box<dyn Future<Output = AttemptResult> + Send + 'a>>,
    ) -> Self {
        Self { layers, tool, args, cx, handler }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the handler and of the layers inside.
    pub async fn run(self) -> AttemptResult {
        let Self { layers, tool, args, cx, handler } = self;
        match layers.split_first() {
            Some((first, layers)) => {
                first.attempt(tool, args, cx, Next { layers, tool, args, cx, handler }).await
            }
            None => handler.await,
        }
    }
}

/// A tool with a layer around it: see [`ToolFactory::layer`].
pub struct Layered<F> {
    factory: F,
    layers: Vec<Arc<dyn ToolLayer>>,
}

impl<F: ToolFactory> Layered<F> {
    pub(crate) fn new(factory: F, layer: Arc<dyn ToolLayer>) -> Self {
        let mut layers = factory.layers();
        layers.push(layer);
        Self { factory, layers }
    }
}

impl<F: ToolFactory> ToolFactory for Layered<F> {
    fn spec(&self) -> ToolSpec {
        self.factory.spec()
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.factory.create()
    }

    fn forms(&self) -> &[Form] {
        self.factory.forms()
    }

    fn class_for(&self, args: &Value) -> Option<ToolClass> {
        self.factory.class_for(args)
    }

    fn preview(&self, args: &Value, resources: &Resources) -> Option<String> {
        self.factory.preview(args, resources)
    }

    fn layers(&self) -> Vec<Arc<dyn ToolLayer>> {
        self.layers.clone()
    }
}
