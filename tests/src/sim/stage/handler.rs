//! A handler that follows its call's script.

use super::{Stage, calls_back::OnDrop, sandbox::SANDBOX_GONE};
use crate::sim::{
    journal::{Fact, HandlerEnd, HandlerStep, PADDING, ResultView},
    nest::{self, Parent},
    program::{End, Nested, OnCancel, Script, Step},
};
use futures::future::join_all;
use serde_json::Value;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{Reconciled, Tool, ToolContext, ToolError, ToolOutput, async_trait};

/// A tool that follows its call's script, and its `on_cancel` once it is cancelled.
pub(super) struct Scripted {
    pub(super) stage: Arc<Stage>,
    pub(super) _on_drop: Option<OnDrop>,
}

#[async_trait]
impl Tool for Scripted {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let plan = self.stage.plan(cx.call_id());
        let attempt = Attempt { stage: &self.stage, node: plan.node, script: &plan.script, cx };
        self.stage.begin(plan.node, cx);
        self.stage.check_secret_given(plan.node, args);
        self.stage.journal.note(Fact::Given(plan.node, args.get("edited").is_some()));
        let _exit = Exit { stage: &self.stage, node: plan.node };
        if plan.script.on_cancel == OnCancel::Deaf {
            return attempt.play().await;
        }
        tokio::select! {
            biased;
            done = attempt.play() => done,
            () = cx.cancelled() => match plan.script.on_cancel {
                OnCancel::Finish => {
                    attempt.note_end(HandlerEnd::CutShort);
                    Ok(ToolOutput::text("cut short"))
                }
                OnCancel::Polite | OnCancel::Deaf => {
                    attempt.note_end(HandlerEnd::Stopped);
                    Err(ToolError::cancelled("stopped"))
                }
            },
        }
    }

    async fn reconcile(&self, _: &Value, _: Option<&str>, cx: &ToolContext) -> Reconciled {
        self.stage.shaker.nudge().await;
        self.find_out(cx)
    }
}

impl Scripted {
    /// What the world says of a call that no handler of this life has run. What its handler has dispatched it does not know.
    fn find_out(&self, cx: &ToolContext) -> Reconciled {
        let plan = self.stage.plan(cx.call_id());
        let life = self.stage.life.as_ref().filter(|life| life.plan().reconciles);
        let Some(life) = life.filter(|_| !plan.script.is_nested()) else { return Reconciled::Unknown };
        match life.effects_of(plan.node) {
            0 => Reconciled::NotDone { is_final: true },
            _ if plan.script.ends().all(|end| end == End::Ok) => {
                let text = self.stage.program.with_secret(cx.call_id().as_str());
                Reconciled::Done(ToolOutput::text(padded(text, plan.script.bytes)))
            }
            _ => Reconciled::Unknown,
        }
    }
}

/// This text with so many bytes more, which are not part of what it says.
fn padded(text: String, bytes: usize) -> String {
    text + &PADDING.to_string().repeat(bytes)
}

/// Records the end of a handler, however it ends.
struct Exit<'a> {
    stage: &'a Stage,
    node: u32,
}

impl Drop for Exit<'_> {
    fn drop(&mut self) {
        self.stage.end(self.node);
    }
}

/// Panics without printing to stderr.
pub(super) fn quiet_panic(message: String) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

/// One attempt at a script.
struct Attempt<'a> {
    stage: &'a Arc<Stage>,
    node: u32,
    script: &'a Script,
    cx: &'a ToolContext,
}

impl Attempt<'_> {
    async fn play(&self) -> Result<ToolOutput, ToolError> {
        for step in &self.script.steps {
            self.stage.shaker.nudge().await;
            match step {
                Step::Sleep(ms) => sleep(Duration::from_millis(*ms)).await,
                Step::Emit => self.emit().await,
                Step::Nest(nested) => drop(join_all(nested.iter().map(|one| self.nest(one))).await),
                Step::Fork(plan) => {
                    let parent = Parent::Handler(self.cx);
                    super::turns::play_fork(self.stage, parent, Some(self.node), plan).await;
                }
            }
        }
        self.note(HandlerStep::Wrote);
        let end = self.script.end_of(self.cx.attempt());
        if end != End::Hang {
            self.note_end(HandlerEnd::Scripted(end));
        }
        let text = |text: &str| self.stage.program.with_secret(text);
        match end {
            End::Ok => Ok(ToolOutput::text(padded(text(self.cx.call_id().as_str()), self.script.bytes))),
            End::Fail => Err(ToolError::execution(text("HTTP 404: no such thing"))),
            End::No => Ok(ToolOutput::failure(text("the tool says no"))),
            End::Transient => Err(ToolError::transient(text("HTTP 500: connection refused"))),
            End::Harmless => Err(ToolError::transient(text("connection refused")).no_side_effect()),
            End::Limited(after) => {
                Err(ToolError::rate_limited(text("HTTP 429: slow down"), after.map(Duration::from_millis)))
            }
            // A handler that starts all the same has no say in it.
            End::NoSandbox | End::SandboxGone => Err(ToolError::execution(SANDBOX_GONE)),
            End::Panic => quiet_panic(text("scripted panic")),
            End::Hang => pending().await,
        }
    }

    /// Streams some output; if a secret is planted, also the secret in two pieces.
    async fn emit(&self) {
        self.cx.emit("some");
        if let Some(secret) = &self.stage.program.secret {
            let (begin, end) = secret.pieces();
            self.cx.emit(begin);
            self.stage.shaker.nudge().await;
            self.cx.emit(end);
        }
    }

    fn note_end(&self, end: HandlerEnd) {
        self.stage.journal.note(Fact::HandlerEnd(self.node, end));
    }

    fn note(&self, step: HandlerStep) {
        self.stage.journal.note(Fact::Handler(self.node, step));
    }

    /// Runs a batch through the context. A handler whose nested batch was dropped counts as parked until its next
    /// dispatch yields (CC-6b).
    async fn nest(&self, nested: &Nested) {
        self.stage.shaker.nudge().await;
        // An empty batch is answered at once and does not park the handler.
        let parks = !nested.batch.calls.is_empty();
        let awaited = Awaited::new(self.stage, nested.batch.key());
        let calls = self.stage.calls(&nested.batch);
        let dispatch = async {
            if parks {
                self.note(HandlerStep::Parked);
            }
            nest::dispatch(self.cx, calls).await
        };
        let mut dispatch = self.stage.shaker.shake(Box::pin(dispatch));
        let dropped = async {
            match nested.dropped_ms {
                Some(ms) => sleep(Duration::from_millis(ms)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            outcomes = &mut dispatch => {
                if parks {
                    self.stage.note_given_up();
                    self.note(HandlerStep::Resumed);
                }
                awaited.record(self.stage.views(&outcomes));
            }
            () = dropped => {
                if parks {
                    self.note(HandlerStep::NestedDropped);
                }
            }
        }
    }
}

/// A guard for awaited results. If it is dropped before they arrive, it records the drop of the batch's future.
pub(super) struct Awaited<'a> {
    stage: &'a Stage,
    batch: Option<u32>,
}

impl<'a> Awaited<'a> {
    pub(super) fn new(stage: &'a Stage, batch: Option<u32>) -> Self {
        Self { stage, batch }
    }

    /// Records the results. An empty batch has no key, so it is recorded only if it has results after all.
    pub(super) fn record(mut self, results: Vec<ResultView>) {
        match self.batch.take() {
            Some(batch) => self.stage.journal.note(Fact::Results(batch, results)),
            None if results.is_empty() => {}
            None => self.stage.journal.note(Fact::Results(u32::MAX, results)),
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch {
            self.stage.journal.note(Fact::Drop(batch));
        }
    }
}
