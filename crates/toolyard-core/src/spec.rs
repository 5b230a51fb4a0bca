//! The declaration of a tool: what the engine knows of it without running it.

use crate::{BreakerPolicy, Budget, FsMode, Rate, RetryPolicy, SideEffects, ToolClass};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};

/// Where the attempts of a tool run (SC-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In a task of its own. The default.
    #[default]
    Task,
    /// In place, on the dispatching task, up to its first wait. For handlers that are cheap and never block: if the
    /// first poll blocks, the timeout cannot cut it off.
    Inline,
    /// On a thread for blocking work, apart from the workers that drive tasks.
    Blocking,
}

/// The scope over which a tool's own limit counts (CL-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// One agent: a session, or one fork of it. The default.
    #[default]
    Agent,
    /// A session and all its forks.
    Tree,
    /// The whole engine.
    Engine,
}

/// What happens to a call whose idempotency key is that of a call in flight (ID-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyConflict {
    /// The call shares the result. The default.
    #[default]
    Join,
    /// The call ends as `key_in_progress`.
    Fail,
}

/// An argument that names a path (PO-1b).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsRequirement {
    /// How the tool uses the path.
    pub mode: FsMode,
    /// The argument's name.
    pub argument: String,
}

/// Who wrote a tool's schema, which decides how much of JSON Schema it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaOrigin {
    /// The author of this program: the subset that every provider reads alike. The default.
    #[default]
    Own,
    /// A third party, such as an MCP server: all of JSON Schema, bounded, with references only within the schema.
    Foreign,
}

/// The agents from which a tool is hidden: for them it is `not_found` (PO-1b).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HiddenFrom {
    /// Every sub-agent.
    #[serde(default)]
    pub sub_agents: bool,
    /// Agents in one of these roles.
    #[serde(default)]
    pub roles: BTreeSet<Arc<str>>,
}

/// The declaration of a tool.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::{ToolClass, ToolSpec};
/// let spec = ToolSpec::network("search")
///     .describe("Searches the web")
///     .concurrent()
///     .timeout(Duration::from_secs(5));
/// assert_eq!(spec.class(), ToolClass::Concurrent);
/// assert_eq!(spec.attempt_timeout(), Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that calls use: 1 to 128 visible characters without white space.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// The JSON Schema of the arguments; `None` accepts any object.
    pub input_schema: Option<Value>,
    /// Who wrote that schema.
    #[serde(default)]
    pub schema_origin: SchemaOrigin,
    /// The worst the tool can do.
    pub side_effects: SideEffects,
    /// The side effects by which approval is decided, if not by those: a tool that only reads may read where a person
    /// should be asked first (PO-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<SideEffects>,
    /// Whether a mutating tool is safe beside other calls, so that its calls use the concurrent pool (CL-1).
    pub promoted: bool,
    /// Whether the tool spawns sub-agents. Its calls always use the concurrent pool (CL-2), and it has no default
    /// attempt timeout (V3).
    pub recursive: bool,
    /// Whether running the tool twice with the same arguments has the same effect as running it once.
    pub idempotent: bool,
    /// Where its attempts run.
    pub placement: Placement,
    /// The attempt timeout; `None` is the default for its side effects (V3).
    pub timeout: Option<Duration>,
    /// How long a handler that exceeded its timeout may continue, with its cancel token fired, before it is dropped;
    /// `None` drops it at once (SC-5).
    pub timeout_grace: Option<Duration>,
    /// How often and when failures are retried; `None` is the engine's policy (RT-1).
    pub retry: Option<RetryPolicy>,
    /// When the engine stops calling the tool for a while; `None` is the engine's policy (CB-2).
    pub breaker: Option<BreakerPolicy>,
    /// The backend that the tool works through, such as a server. Besides their own breakers, tools with the same
    /// backend share one that counts transport failures (CB-9).
    pub backend: Option<Arc<str>>,
    /// How often its attempts may start; `None` is unlimited (RT-10).
    pub rate: Option<Rate>,
    /// The cost of one call, in units that the embedder chooses, counted against budgets (RT-11).
    pub cost: u64,
    /// How many calls of the tool one session tree may make, and at what cost (RT-11).
    pub budget: Budget,
    /// What happens to a call whose idempotency key is that of a call in flight (ID-3).
    pub key_conflict: KeyConflict,
    /// The most calls of the tool at once, per agent unless [`limit_scope`](Self::limit_scope) says otherwise (CL-6).
    pub max_concurrency: Option<NonZeroUsize>,
    /// The scope over which `max_concurrency` counts.
    pub limit_scope: LimitScope,
    /// The state that its serial calls share with those of other tools and sessions, such as a database. Of all calls
    /// with the same scope, the engine runs one at a time. `None` is the scope of the session tree (CC-8).
    pub serial_scope: Option<Arc<str>>,
    /// The arguments that are paths. They are checked against the workspace before anything runs.
    pub requires_fs: Vec<FsRequirement>,
    /// The arguments that are hosts or URLs. They are checked against the agent's grants.
    pub requires_net: Vec<String>,
    /// Whether the tool needs a workspace.
    pub requires_workspace: bool,
    /// Whether an agent with a list of tools may call this one only if the list names it. `true` by default.
    pub requires_capability: bool,
    /// The arguments that do not matter for approval: an answer for all calls of a pattern covers any value of them
    /// (PO-3).
    pub approval_ignores: Vec<String>,
    /// The agents from which the tool is hidden.
    pub hidden_from: HiddenFrom,
    /// The version of the tool, which changes when its meaning does.
    pub version: String,
}

impl ToolSpec {
    /// The side effects by which approval is decided.
    pub fn asked_as(&self) -> SideEffects {
        self.asked_as.unwrap_or(self.side_effects)
    }

    /// A tool with these side effects that accepts any object.
    pub fn new(name: impl Into<String>, side_effects: SideEffects) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            input_schema: None,
            schema_origin: SchemaOrigin::Own,
            side_effects,
            asked_as: None,
            promoted: false,
            recursive: false,
            idempotent: false,
            placement: Placement::Task,
            timeout: None,
            timeout_grace: None,
            retry: None,
            breaker: None,
            backend: None,
            rate: None,
            cost: 0,
            budget: Budget::UNLIMITED,
            key_conflict: KeyConflict::Join,
            max_concurrency: None,
            limit_scope: LimitScope::Agent,
            serial_scope: None,
            requires_fs: Vec::new(),
            requires_net: Vec::new(),
            requires_workspace: false,
            requires_capability: true,
            approval_ignores: Vec::new(),
            hidden_from: HiddenFrom::default(),
            version: "1".to_owned(),
        }
    }

    /// A tool that touches nothing outside its arguments.
    pub fn pure(name: impl Into<String>) -> Self {
        Self::new(name, SideEffects::None)
    }

    /// A tool that only reads.
    pub fn read(name: impl Into<String>) -> Self {
        Self::new(name, SideEffects::Read)
    }

    /// A tool that changes state.
    pub fn write(name: impl Into<String>) -> Self {
        Self::new(name, SideEffects::Write)
    }

    /// A tool that runs code.
    pub fn execute(name: impl Into<String>) -> Self {
        Self::new(name, SideEffects::Execute)
    }

    /// A tool that talks to other machines.
    pub fn network(name: impl Into<String>) -> Self {
        Self::new(name, SideEffects::Network)
    }

    /// Sets the description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Sets a JSON Schema that a third party wrote; see [`SchemaOrigin::Foreign`].
    #[must_use]
    pub fn foreign_schema(mut self, schema: Value) -> Self {
        self.schema_origin = SchemaOrigin::Foreign;
        self.input_schema(schema)
    }

    /// Declares the tool safe beside other calls (CL-1).
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.promoted = true;
        self
    }

    /// Declares that the tool spawns sub-agents (CL-2).
    #[must_use]
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Declares the tool idempotent.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Lets its attempts run in place; see [`Placement::Inline`].
    #[must_use]
    pub fn inline(mut self) -> Self {
        self.placement = Placement::Inline;
        self
    }

    /// Declares that its handler blocks; see [`Placement::Blocking`].
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.placement = Placement::Blocking;
        self
    }

    /// Sets the attempt timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives a handler that exceeded its timeout time to clean up; see the field (SC-5).
    #[must_use]
    pub fn timeout_grace(mut self, grace: Duration) -> Self {
        self.timeout_grace = Some(grace);
        self
    }

    /// Sets how failures are retried (RT-1). Use [`RetryPolicy::NONE`] for a handler that retries internally, because
    /// only one layer may retry (RT-7).
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets when the engine stops calling the tool for a while (CB-2).
    #[must_use]
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.breaker = Some(policy);
        self
    }

    /// Names the backend that the tool works through; see the field (CB-9).
    #[must_use]
    pub fn backend(mut self, name: impl Into<Arc<str>>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// Sets how often its attempts may start (RT-10).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ToolSpec;
    /// let spec = ToolSpec::network("search").rate("5/s burst 10".parse()?);
    /// # Ok::<(), toolyard_core::RateError>(())
    /// ```
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets the cost of one call (RT-11).
    #[must_use]
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Limits how many calls of the tool one session tree may make, and at what cost (RT-11).
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets what happens to a call whose idempotency key is that of a call in flight (ID-3).
    #[must_use]
    pub fn key_conflict(mut self, conflict: KeyConflict) -> Self {
        self.key_conflict = conflict;
        self
    }

    /// Limits how many calls of the tool run at once, per agent by default.
    #[must_use]
    pub fn max_concurrency(mut self, max: NonZeroUsize) -> Self {
        self.max_concurrency = Some(max);
        self
    }

    /// Sets the scope over which [`max_concurrency`](Self::max_concurrency) counts.
    #[must_use]
    pub fn limit_scope(mut self, scope: LimitScope) -> Self {
        self.limit_scope = scope;
        self
    }

    /// Names the state that its serial calls change; see the field (CC-8).
    #[must_use]
    pub fn serial_scope(mut self, name: impl Into<Arc<str>>) -> Self {
        self.serial_scope = Some(name.into());
        self
    }

    /// Declares that an argument is a path; the tool then also needs a workspace.
    #[must_use]
    pub fn requires_fs(mut self, mode: FsMode, argument: impl Into<String>) -> Self {
        self.requires_fs.push(FsRequirement { mode, argument: argument.into() });
        self.requires_workspace = true;
        self
    }

    /// Declares that an argument is a host or a URL.
    #[must_use]
    pub fn requires_net(mut self, argument: impl Into<String>) -> Self {
        self.requires_net.push(argument.into());
        self
    }

    /// Lets every agent call the tool, even one whose list of tools does not name it.
    #[must_use]
    pub fn without_capability(mut self) -> Self {
        self.requires_capability = false;
        self
    }

    /// Declares that an argument does not matter for approval; see the field (PO-3).
    #[must_use]
    pub fn approval_ignores(mut self, argument: impl Into<String>) -> Self {
        self.approval_ignores.push(argument.into());
        self
    }

    /// Hides the tool from sub-agents (PO-1b).
    #[must_use]
    pub fn hidden_from_sub_agents(mut self) -> Self {
        self.hidden_from.sub_agents = true;
        self
    }

    /// Hides the tool from agents in this role (PO-1b).
    #[must_use]
    pub fn hidden_from_role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.hidden_from.roles.insert(role.into());
        self
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// The class of its calls, unless they are classified by their arguments (CL-1, CL-2).
    pub fn class(&self) -> ToolClass {
        if self.recursive { ToolClass::Concurrent } else { self.side_effects.class(self.promoted) }
    }

    /// The attempt timeout in force (V3). A recursive tool that sets none has none: `Duration::MAX`.
    pub fn attempt_timeout(&self) -> Duration {
        match self.timeout {
            Some(timeout) => timeout,
            None if self.recursive => Duration::MAX,
            None => self.side_effects.default_timeout(),
        }
    }

    /// Whether an attempt whose effect is unknown may be repeated (RT-1).
    pub fn is_repeatable(&self) -> bool {
        self.idempotent || self.side_effects.is_read_only()
    }

    /// The schema in force: the declared one, or one that accepts any object.
    pub fn schema(&self) -> Value {
        self.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}))
    }
}
