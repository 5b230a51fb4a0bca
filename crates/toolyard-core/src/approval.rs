//! Asking before a call runs (PO-3, PO-4).

use crate::{AgentPath, CallId, SessionId, SideEffects};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// What happens with a call of some kind before it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationMode {
    /// It runs.
    Auto,
    /// The [`Approver`] is asked. With nobody to ask, the call ends as `user_denied` at once.
    Prompt,
    /// It ends as `user_denied`.
    Deny,
}

/// Which calls are asked about: a mode per side effect, and overrides by tool name (PO-3).
///
/// The default lets none and read through and asks about write, execute and network.
///
/// # Examples
/// ```
/// use toolyard_core::{ConfirmationMode, Confirmations, SideEffects};
/// let confirm = Confirmations::default().tool("deploy", ConfirmationMode::Deny);
/// assert_eq!(confirm.mode("read_file", SideEffects::Read), ConfirmationMode::Auto);
/// assert_eq!(confirm.mode("write_file", SideEffects::Write), ConfirmationMode::Prompt);
/// assert_eq!(confirm.mode("deploy", SideEffects::Execute), ConfirmationMode::Deny);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmations {
    write: ConfirmationMode,
    execute: ConfirmationMode,
    network: ConfirmationMode,
    read: ConfirmationMode,
    none: ConfirmationMode,
    per_tool: HashMap<String, ConfirmationMode>,
    timeout: Duration,
}

impl Confirmations {
    /// How long an answer is waited for unless said otherwise (PO-4).
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Every call runs without being asked about.
    pub fn auto() -> Self {
        Self {
            write: ConfirmationMode::Auto,
            execute: ConfirmationMode::Auto,
            network: ConfirmationMode::Auto,
            ..Self::default()
        }
    }

    /// Sets the mode of tools with these side effects.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects, mode: ConfirmationMode) -> Self {
        *match side_effects {
            SideEffects::None => &mut self.none,
            SideEffects::Read => &mut self.read,
            SideEffects::Write => &mut self.write,
            SideEffects::Execute => &mut self.execute,
            SideEffects::Network => &mut self.network,
        } = mode;
        self
    }

    /// Sets the mode of one tool, whatever its side effects.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, mode: ConfirmationMode) -> Self {
        self.per_tool.insert(name.into(), mode);
        self
    }

    /// Sets how long an answer is waited for.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The mode of a tool.
    pub fn mode(&self, tool: &str, side_effects: SideEffects) -> ConfirmationMode {
        if !self.per_tool.is_empty()
            && let Some(mode) = self.per_tool.get(tool)
        {
            return *mode;
        }
        match side_effects {
            SideEffects::None => self.none,
            SideEffects::Read => self.read,
            SideEffects::Write => self.write,
            SideEffects::Execute => self.execute,
            SideEffects::Network => self.network,
        }
    }

    /// How long an answer is waited for.
    pub fn answer_within(&self) -> Duration {
        self.timeout
    }
}

impl Default for Confirmations {
    fn default() -> Self {
        Self {
            write: ConfirmationMode::Prompt,
            execute: ConfirmationMode::Prompt,
            network: ConfirmationMode::Prompt,
            read: ConfirmationMode::Auto,
            none: ConfirmationMode::Auto,
            per_tool: HashMap::new(),
            timeout: Self::TIMEOUT,
        }
    }
}

/// What an [`Approver`] is asked about: exactly the call that runs if it says yes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The session.
    pub session: SessionId,
    /// The agent in it.
    pub agent: AgentPath,
    /// The call's id.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments, parsed and checked.
    pub arguments: Arc<Value>,
    /// The worst the tool can do.
    pub side_effects: SideEffects,
}

impl ApprovalRequest {
    /// A request about this call.
    pub fn new(
        session: SessionId,
        agent: AgentPath,
        call_id: CallId,
        tool: Arc<str>,
        arguments: Arc<Value>,
        side_effects: SideEffects,
    ) -> Self {
        Self { session, agent, call_id, tool, arguments, side_effects }
    }
}

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Allow,
    /// The call ends as `user_denied`.
    Deny,
}

/// Answers for the person whose machine this is.
///
/// Requests of one batch are asked at once and side by side; a request that is not answered in time ends
/// its call as `confirmation_timeout`. No permit is held meanwhile. An [`Answer`] is itself the approver
/// that always gives it.
#[async_trait]
pub trait Approver: Send + Sync {
    /// The answer.
    ///
    /// # Panics
    /// A panic ends the call as `internal`: what was not allowed does not run.
    ///
    /// # Cancel safety
    /// The future is dropped when the call is cancelled or the time is over: the request is withdrawn.
    async fn ask(&self, request: &ApprovalRequest) -> Answer;
}

#[async_trait]
impl Approver for Answer {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        *self
    }
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for std::sync::Arc<A> {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        (**self).ask(request).await
    }
}
