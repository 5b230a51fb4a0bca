//! The execution of a handler within the layers around its tool (KT-7).
//!
//! The handler starts when the innermost layer runs it, so a layer that answers by itself starts nothing. What the sandbox
//! refuses or fails at is kept beside the layers: it is the attempt's end, whatever they make of it.

use crate::{
    call::{
        attempt::{
            Attempt,
            backend::{Execution, Failure, InHand, Running, SandboxError, Stopped, Work},
            execute::Executed,
            supervise::{Verdict, supervise},
        },
        nested::within,
    },
    tasks::Contained,
    tool::Layers,
};
use parking_lot::Mutex;
use std::pin::Pin;
use toolyard_core::{AttemptResult, Next, ToolError};

/// What happened inside of the layers, beside the tool's own result.
#[derive(Default)]
struct Inside {
    refused: Mutex<Option<SandboxError>>,
    failed: Mutex<Option<Failure>>,
    stopped: Mutex<Option<Stopped>>,
}

impl Attempt {
    /// Executes the handler within these layers.
    pub(super) async fn execute_within(
        &self,
        layers: &Layers,
        mut execution: Contained<Execution<'_>>,
    ) -> Executed {
        let inside = Inside::default();
        let (verdict, stopped) = {
            let handler = Box::pin(self.handler(&execution, &inside));
            let spec = self.work().entry.spec();
            let next = Next::new(layers.all(), spec, execution.args, &execution.cx, handler);
            let work = Work::sandboxed(async {
                let result = next.run().await;
                match inside.failed.lock().take() {
                    Some(failure) => Err(failure),
                    None => result.map_err(Failure::Tool),
                }
            });
            let mut whole = within(&self.call, InHand(work));
            let verdict = supervise(Pin::new(&mut whole), &execution).await;
            if verdict.stopped_waiting() {
                execution.cx.cancel_own(); // a blocking handler may check it
            }
            let verdict = verdict.after_drop(whole.end());
            let verdict = inside.refused.lock().take().map_or(verdict, Verdict::Refused);
            // A handler that was withdrawn does not start any more.
            let was_taken = !matches!(verdict, Verdict::NotTaken(_));
            let stopped = inside.stopped.lock().take().filter(|_| was_taken);
            (verdict, stopped.and_then(Stopped::after))
        };
        (verdict.after_drop(execution.end()), stopped)
    }

    /// The handler, as the innermost layer runs it.
    async fn handler(&self, execution: &Execution<'_>, inside: &Inside) -> AttemptResult {
        let running = match self.engine().backend.execute(execution) {
            Ok(Running { result, stopped }) => {
                *inside.stopped.lock() = Some(stopped);
                result
            }
            Err(error) => {
                let told = ToolError::execution(error.to_string()).no_side_effect();
                *inside.refused.lock() = Some(error);
                return Err(told);
            }
        };
        match running.await {
            Ok(output) => Ok(output),
            Err(Failure::Tool(error)) => Err(error),
            Err(failure) => {
                *inside.failed.lock() = Some(failure);
                Err(ToolError::execution("the sandbox of the call failed"))
            }
        }
    }
}
