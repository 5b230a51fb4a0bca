//! A tool that answers as told.

use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::VecDeque, fmt, future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard_core::{CallId, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// What a [`ScriptedTool`] does in one attempt.
#[derive(Debug, Clone)]
pub struct Reply {
    after: Duration,
    end: End,
}

#[derive(Debug, Clone)]
enum End {
    Answer(Result<ToolOutput, ToolError>),
    Panic(String),
    Never,
    WhenCancelled,
}

impl Reply {
    fn of(end: End) -> Self {
        Self { after: Duration::ZERO, end }
    }

    /// Answers with this output.
    pub fn output(output: impl Into<ToolOutput>) -> Self {
        Self::of(End::Answer(Ok(output.into())))
    }

    /// Answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::output(ToolOutput::text(text))
    }

    /// Fails with this error. A transient one is tried again if the tool's policy says so; the next attempt gets the next
    /// reply.
    pub fn error(error: ToolError) -> Self {
        Self::of(End::Answer(Err(error)))
    }

    /// Panics with this message.
    pub fn panic(message: impl Into<String>) -> Self {
        Self::of(End::Panic(message.into()))
    }

    /// Does not end, and ignores a cancel: the engine's timeout or grace ends the call.
    pub fn never() -> Self {
        Self::of(End::Never)
    }

    /// Waits until it is cancelled, and then stops.
    pub fn when_cancelled() -> Self {
        Self::of(End::WhenCancelled)
    }

    /// Waits so long before that, on tokio's clock.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.after = wait;
        self
    }
}

/// One attempt that a [`ScriptedTool`] has seen.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Seen {
    /// The call's id.
    pub call_id: CallId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The arguments that it ran with.
    pub arguments: Value,
    /// When it started.
    pub from: Instant,
    /// When it ended or was dropped; `None` while it runs.
    pub to: Option<Instant>,
}

/// A tool that gives its replies in turn, an attempt each, and remembers its attempts. The last reply serves all further
/// attempts; without any, it answers `ok`. Cheap to clone; all clones are the same tool.
#[derive(Clone)]
pub struct ScriptedTool {
    spec: ToolSpec,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    seen: Vec<Seen>,
    running: usize,
    most: usize,
}

impl ScriptedTool {
    /// A tool of this spec.
    pub fn new(spec: ToolSpec) -> Self {
        Self { spec, shared: Arc::default() }
    }

    /// Adds a reply, after those that it has.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.shared.lock().replies.push_back(reply);
        self
    }

    /// Its attempts so far, in the order of their starts.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// How many attempts run now.
    pub fn running(&self) -> usize {
        self.shared.lock().running
    }

    /// How many attempts ran at once, at most.
    pub fn most_at_once(&self) -> usize {
        self.shared.lock().most
    }

    /// Notes that an attempt has started; the note of its end is made when the guard is dropped.
    fn start(&self, args: &Value, cx: &ToolContext) -> (Reply, Started) {
        let mut state = self.shared.lock();
        let (call_id, attempt, from) = (cx.call_id().clone(), cx.attempt(), Instant::now());
        state.seen.push(Seen { call_id, attempt, arguments: args.clone(), from, to: None });
        state.running += 1;
        state.most = state.most.max(state.running);
        let next = match state.replies.len() {
            0 | 1 => state.replies.front().cloned(),
            _ => state.replies.pop_front(),
        };
        let started = Started { shared: self.shared.clone(), at: state.seen.len() - 1 };
        (next.unwrap_or_else(|| Reply::text("ok")), started)
    }
}

impl ToolFactory for ScriptedTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (reply, _started) = self.start(args, cx);
        if !reply.after.is_zero() {
            sleep(reply.after).await;
        }
        match reply.end {
            End::Answer(answer) => answer,
            End::Panic(message) => panic!("{message}"),
            End::Never => pending().await,
            End::WhenCancelled => {
                cx.cancelled().await;
                Err(ToolError::cancelled("stopped"))
            }
        }
    }
}

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

/// An attempt that runs.
struct Started {
    shared: Arc<Mutex<State>>,
    at: usize,
}

impl Drop for Started {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.shared.lock();
        state.seen[self.at].to = Some(now);
        state.running -= 1;
    }
}
