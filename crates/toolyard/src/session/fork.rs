//! Forks: sub-agents, which are sessions under a session (CL-7).
//!
//! ```text
//!   root session ── read pool of the engine, serial lease and tree cap of the tree ──┐ shared
//!     └─ root/1 ── its own concurrent pool and tool limits, opened by the first call that needs them
//!          └─ root/1/2 ── ...                                                    at most 8 deep
//! ```

use super::{Session, settings::settings_of_both};
use crate::{
    agent::ForkParts,
    batch::{OpenBatch, Order, Owner},
    call::{BatchState, CallGone, CallRef, NameTaken, SessionCore, TurnOf},
    config::FORK_DEPTH_MAX,
    tool::ToolEntry,
};
use std::{error::Error, num::NonZeroUsize, sync::Arc};
use toolyard_core::{AgentPath, Capabilities, ToolContext, ToolErrorKind, error::ForModel};

/// The settings in which a sub-agent differs from its parent.
///
/// By default it has the same tools, policy and approval as its parent and shares the read pool and the serial lease.
/// Its concurrent pool and tool limits are its own, with the same widths as its parent's (CL-7).
///
/// # Examples
/// ```
/// use toolyard::ForkPolicy;
/// let policy = ForkPolicy::default().only_tools(["read_file", "list_dir"]).share_concurrent();
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ForkPolicy(ForkParts);

settings_of_both! {
    impl ForkPolicy [.0];
    /// Limits the sub-agent to these of its parent's tools: it and its own forks see no others. Names that the parent
    /// does not have are ignored.
    only_tools;
    /// Sets what it may touch, within what its parent may: a fork can only narrow (PO-5).
    capabilities;
    /// Sets its role. Tools that are hidden from its parent's role stay hidden.
    role;
    /// Bounds the calls that it runs at once, over all classes. By default it has its parent's bound, counted
    /// separately.
    max_in_flight;
    /// Adds a text to its record, which another life of the engine finds with its session
    /// ([`PastAgent::description`](crate::PastAgent::description)). The engine itself does nothing with it.
    described;
}

impl ForkPolicy {
    /// Names it: the agent of `root` with the name `researcher` is `root/researcher` in events, questions and policies,
    /// where without a name it would be `root/1`. By that name its parent [finds](Session::sub_agent) it. It must be a
    /// [name](AgentPath::is_name), and is free again when the sub-agent has ended (SM-8).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, ForkError, ForkPolicy};
    /// let session = Engine::builder().build().await.unwrap().session("demo");
    /// let policy = ForkPolicy::default().name("researcher");
    /// let agent = session.fork(policy.clone()).unwrap();
    /// assert_eq!(agent.agent().as_str(), "root/researcher");
    /// assert_eq!(session.fork(policy).unwrap_err(), ForkError::NameTaken);
    /// assert_eq!(session.sub_agent("researcher").unwrap().agent(), agent.agent());
    /// # }
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// Whether its name may be one.
    fn has_good_name(&self) -> bool {
        self.0.name.as_deref().is_none_or(AgentPath::is_name)
    }

    /// Makes it share its parent's concurrent pool, so that one bound holds for both.
    #[must_use]
    pub fn share_concurrent(mut self) -> Self {
        self.0.shares_concurrent = true;
        self
    }
}

/// Why a sub-agent could not be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkError {
    /// The parent is already at the greatest depth, [`FORK_DEPTH_MAX`].
    TooDeep,
    /// The call whose handler would make it has ended, with a timeout for example: nothing more is done for it.
    CallEnded,
    /// The context does not belong to an engine.
    NoEngine,
    /// The parent has another sub-agent of this name, which has not ended.
    NameTaken,
    /// This cannot be a name; see [`ForkPolicy::name`].
    BadName,
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooDeep => {
                write!(f, "sub-agents cannot nest deeper than {FORK_DEPTH_MAX} levels: do this work here")
            }
            Self::CallEnded => {
                f.write_str("the call that makes this sub-agent has ended: nothing more is done for it")
            }
            Self::NoEngine => {
                f.write_str("this context does not belong to an engine, so it cannot fork sub-agents")
            }
            Self::NameTaken => f.write_str(
                "another sub-agent has this name and is still there: use that one, or another name",
            ),
            Self::BadName => write!(
                f,
                "the name of a sub-agent must be a letter and then letters, digits, '.', '_' or '-', at most \
                 {} in all",
                AgentPath::NAME_BYTES_MAX
            ),
        }
    }
}

/// Marked as fit for the model, because the message says what to do instead.
impl Error for ForkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&ForModel(ToolErrorKind::Execution))
    }
}

impl Session {
    /// Creates a sub-agent of this session. Cancelling this session cancels it too; its end affects no other agent.
    ///
    /// Everything that a sub-agent made by a handler dispatches, from any task, belongs to that handler's call, which is
    /// parked meanwhile (CC-6, CC-7b), and so do its own forks. It ends with that call: later calls through it are
    /// `cancelled`, not started, unless another handler makes them on its own task, whose calls they then are. A
    /// sub-agent made outside a handler belongs to no call.
    ///
    /// # Errors
    /// [`ForkError::TooDeep`] when this session is already at [`FORK_DEPTH_MAX`]; [`ForkError::CallEnded`] when it is
    /// called by a handler whose call has ended, or through a sub-agent that such a handler made;
    /// [`ForkError::NameTaken`] and [`ForkError::BadName`] for a [name](ForkPolicy::name) that it cannot have.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Call, Engine, ForkPolicy, ToolContext, ToolSpec, tool_fn};
    /// let who = tool_fn(ToolSpec::pure("who"), |(): (), cx: ToolContext| async move { Ok(cx.agent().to_string()) });
    /// let engine = Engine::builder().tool(who).build().await.unwrap();
    /// let child = engine.session("demo").fork(ForkPolicy::default()).unwrap();
    /// assert_eq!(child.call(Call::new("call_1", "who", "{}")).await.to_text(), "root/1");
    /// # }
    /// ```
    pub fn fork(&self, policy: ForkPolicy) -> Result<Self, ForkError> {
        fork(&self.core, policy, self.core.caller_call())
    }

    /// The agent: `root`, or what it is of it; see [`ForkPolicy::name`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, ForkPolicy};
    /// let session = Engine::builder().build().await.unwrap().session("demo");
    /// assert_eq!(session.agent().as_str(), "root");
    /// assert_eq!(session.fork(ForkPolicy::default()).unwrap().agent().as_str(), "root/1");
    /// # }
    /// ```
    pub fn agent(&self) -> &AgentPath {
        &self.core.path
    }

    /// The sub-agent of this one that has this name, or this number; `None` if there is none, or if it has ended with
    /// the call whose handler made it (SM-8).
    pub fn sub_agent(&self, name: &str) -> Option<Self> {
        Some(Self { core: self.core.fork_named(name)? })
    }
}

/// What a handler's context can do beside dispatching: make sub-agents, tell them of their tools, and make calls one by one.
pub trait SubAgents {
    /// Creates a sub-agent of the session that the handler's call belongs to; see [`Session::fork`].
    ///
    /// # Errors
    /// Those of [`Session::fork`], and [`ForkError::NoEngine`] for a context made only for a tool's own test.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{Batch, Call, ForkPolicy, SubAgents, ToolContext, ToolError, ToolOutput};
    /// async fn research(cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    ///     let agent = cx.fork(ForkPolicy::default().only_tools(["read_file"]))?;
    ///     let outcome = agent.call(Call::new("call_1", "read_file", r#"{"path": "notes.md"}"#)).await;
    ///     Ok(ToolOutput::text(outcome.to_text()))
    /// }
    /// ```
    fn fork(&self, policy: ForkPolicy) -> Result<Session, ForkError>;

    /// Opens a batch in the turn of the handler's call, whose calls are added and answered one by one, as those of
    /// [`ToolContext::dispatch`] are together (CL-4, CL-5): what the turn may spend they spend, and it announces no turn of
    /// its own. `None` for a context made only for a tool's own test.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{Call, SubAgents, ToolContext, ToolError, ToolOutput};
    /// async fn first_line(cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    ///     let Some(batch) = cx.open_batch() else { return Ok(ToolOutput::text("")) };
    ///     let mut ends = batch.ends();
    ///     batch.push(Call::new("call_1", "read_file", r#"{"path": "notes.md"}"#));
    ///     let (_, outcome) = ends.next().await; // others may be pushed meanwhile
    ///     batch.finish().await;
    ///     Ok(ToolOutput::text(outcome.to_text()))
    /// }
    /// ```
    fn open_batch(&self) -> Option<OpenBatch>;

    /// The sub-agent of this name that the session of the handler's call has; see [`Session::sub_agent`].
    fn sub_agent(&self, name: &str) -> Option<Session>;

    /// The tools that the agent of the handler's call can call; see [`Session::definitions`]. None for a context made
    /// only for a tool's own test.
    fn definitions(&self) -> Vec<Arc<ToolEntry>>;
}

impl SubAgents for ToolContext {
    fn fork(&self, policy: ForkPolicy) -> Result<Session, ForkError> {
        let CallRef { batch, index } = call_of(self).ok_or(ForkError::NoEngine)?;
        let session = batch.session.clone();
        fork(&session, policy, Ok(Some(CallRef { batch, index })))
    }

    fn open_batch(&self) -> Option<OpenBatch> {
        let CallRef { batch, .. } = call_of(self)?;
        let turn = TurnOf { number: batch.turn, is_whole: false, allowance: batch.allowance().cloned() };
        Some(OpenBatch::new(&batch.session, Order::Runs, turn, Owner::Handler))
    }

    fn sub_agent(&self, name: &str) -> Option<Session> {
        Session { core: call_of(self)?.batch.session.clone() }.sub_agent(name)
    }

    fn definitions(&self) -> Vec<Arc<ToolEntry>> {
        let session = |call: CallRef| Session { core: call.batch.session.clone() };
        call_of(self).map_or_else(Vec::new, |call| session(call).definitions())
    }
}

/// The call that a handler's context belongs to.
fn call_of(cx: &ToolContext) -> Option<CallRef> {
    let (scope, index) = cx.place();
    let batch = scope.into_any().downcast::<BatchState>().ok()?;
    Some(CallRef { batch, index })
}

fn fork(
    parent: &Arc<SessionCore>,
    policy: ForkPolicy,
    made_by: Result<Option<CallRef>, CallGone>,
) -> Result<Session, ForkError> {
    if parent.depth >= FORK_DEPTH_MAX {
        return Err(ForkError::TooDeep);
    }
    let made_by = made_by.map_err(|CallGone| ForkError::CallEnded)?;
    if made_by.as_ref().is_some_and(|call| !call.runs()) {
        return Err(ForkError::CallEnded);
    }
    if !policy.has_good_name() {
        return Err(ForkError::BadName);
    }
    let core = SessionCore::fork(parent, policy.0, made_by).map_err(|NameTaken| ForkError::NameTaken)?;
    Ok(Session { core })
}
