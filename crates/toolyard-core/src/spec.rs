//! The declaration of a tool: what the engine knows of it without running it.

use crate::{
    BreakerPolicy, Budget, FsMode, IntoSetting, KeyConflict, KeySource, LimitScope, Rate, RetryPolicy,
    SettingError, SideEffects, ToolClass, ToolSettings,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};

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
    /// The types of the tool's arguments, from which it was derived: the subset if it can say what they are, otherwise all
    /// of 2020-12 within the bounds of a foreign one (KT-1).
    Typed,
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
    /// Whether the tool spawns sub-agents. Its calls always use the concurrent pool (CL-2), and it has no default
    /// attempt timeout (V3).
    pub recursive: bool,
    /// Where its attempts run.
    pub placement: Placement,
    /// The arguments that are paths. They are checked against the workspace before anything runs.
    pub requires_fs: Vec<FsRequirement>,
    /// The arguments that are hosts or URLs. They are checked against the agent's grants.
    pub requires_net: Vec<String>,
    /// Whether the tool needs a workspace.
    pub requires_workspace: bool,
    /// What an operator may set too: bounds, retries, visibility and the like.
    #[serde(flatten)]
    pub settings: ToolSettings,
    /// The version of the tool, which changes when its meaning does. That of a tool whose code is elsewhere, such as a
    /// program or a service, should be a [hash](crate::ContentHash) of its form, so that a changed one never matches an
    /// old approval or key (SM-7).
    pub version: String,
    /// The first setting that was refused.
    #[serde(skip)]
    fault: Option<SettingError>,
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
            recursive: false,
            placement: Placement::Task,
            requires_fs: Vec::new(),
            requires_net: Vec::new(),
            requires_workspace: false,
            settings: ToolSettings::default(),
            version: "1".to_owned(),
            fault: None,
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

    /// Sets a JSON Schema that was derived from a type; see [`SchemaOrigin::Typed`].
    #[must_use]
    pub fn typed_schema(mut self, schema: Value) -> Self {
        self.schema_origin = SchemaOrigin::Typed;
        self.input_schema(schema)
    }

    /// Declares the tool safe beside other calls (CL-1).
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.settings.concurrent = Some(true);
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
        self.settings.idempotent = Some(true);
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
        self.settings.timeout = Some(timeout);
        self
    }

    /// Gives a handler that exceeded its timeout time to clean up; see [`ToolSettings::timeout_grace`] (SC-5).
    #[must_use]
    pub fn timeout_grace(mut self, grace: Duration) -> Self {
        self.settings.timeout_grace = Some(grace);
        self
    }

    /// Sets how failures are retried (RT-1). Use [`RetryPolicy::NONE`] for a handler that retries internally, because
    /// only one layer may retry (RT-7).
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = Some(policy);
        self
    }

    /// Sets when the engine stops calling the tool for a while (CB-2).
    #[must_use]
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.settings.breaker = Some(policy);
        self
    }

    /// Names the backend that the tool works through; see [`ToolSettings::backend`] (CB-9).
    #[must_use]
    pub fn backend(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.backend = Some(name.into());
        self
    }

    /// Sets how often its attempts may start (RT-10).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ToolSpec;
    /// let spec = ToolSpec::network("search").rate("5/s burst 10");
    /// # Ok::<(), toolyard_core::RateError>(())
    /// ```
    #[must_use]
    pub fn rate(self, rate: impl IntoSetting<Rate>) -> Self {
        self.set(rate.into_setting(), |settings, rate| settings.rate = Some(rate))
    }

    /// Sets the cost of one call (RT-11).
    #[must_use]
    pub fn cost(mut self, units: u64) -> Self {
        self.settings.cost = Some(units);
        self
    }

    /// Limits how many calls of the tool one session tree may make, and at what cost (RT-11).
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = Some(budget);
        self
    }

    /// Sets what happens to a call whose idempotency key is that of a call in flight (ID-3).
    #[must_use]
    pub fn key_conflict(mut self, conflict: KeyConflict) -> Self {
        self.settings.key_conflict = Some(conflict);
        self
    }

    /// Sets where the idempotency keys of calls come from (KT-16).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{KeySource, ToolSpec};
    /// assert!(ToolSpec::network("pay").key(KeySource::Derive).check().is_ok());
    /// assert!(ToolSpec::read("look").key(KeySource::Derive).check().is_err());
    /// ```
    #[must_use]
    pub fn key(mut self, source: KeySource) -> Self {
        self.settings.key = Some(source);
        self
    }

    /// Whether calls without an idempotency key get one made of the tool and the arguments (KT-16).
    pub fn derives_key(&self) -> bool {
        self.settings.key == Some(KeySource::Derive)
    }

    /// Limits how many calls of the tool run at once, at least 1, per agent by default.
    #[must_use]
    pub fn max_concurrency(self, max: usize) -> Self {
        let max = NonZeroUsize::new(max).ok_or(SettingError::Zero("max_concurrency"));
        self.set(max, |settings, max| settings.max_concurrency = Some(max))
    }

    /// Sets what was not refused, and keeps the first refusal.
    fn set<T>(mut self, value: Result<T, SettingError>, set: impl FnOnce(&mut ToolSettings, T)) -> Self {
        match value {
            Ok(value) => set(&mut self.settings, value),
            Err(error) => self.fault = self.fault.or(Some(error)),
        }
        self
    }

    /// Looks for a setting that makes no sense; registration does so too (KT-4).
    ///
    /// # Errors
    /// The first one.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Rate, ToolSpec};
    /// let spec = ToolSpec::network("search").rate(Rate::per_second(5)).max_concurrency(0);
    /// assert_eq!(spec.check().unwrap_err().to_string(), "max_concurrency must not be zero");
    /// ```
    pub fn check(&self) -> Result<(), SettingError> {
        if self.derives_key() && self.side_effects.is_read_only() {
            return Err(SettingError::KeyOfReader);
        }
        self.fault.clone().map_or_else(|| self.settings.check(), Err)
    }

    /// Sets the scope over which [`max_concurrency`](Self::max_concurrency) counts.
    #[must_use]
    pub fn limit_scope(mut self, scope: LimitScope) -> Self {
        self.settings.limit_scope = Some(scope);
        self
    }

    /// Names the state that its serial calls change; see [`ToolSettings::serial_scope`] (CC-8).
    #[must_use]
    pub fn serial_scope(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.serial_scope = Some(name.into());
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
        self.settings.requires_capability = Some(false);
        self
    }

    /// Declares that an argument does not matter for approval; see [`ToolSettings::approval_ignores`] (PO-3).
    #[must_use]
    pub fn approval_ignores(mut self, argument: impl Into<String>) -> Self {
        self.settings.approval_ignores.get_or_insert_default().push(argument.into());
        self
    }

    /// Hides the tool from sub-agents (PO-1b).
    #[must_use]
    pub fn hidden_from_sub_agents(mut self) -> Self {
        self.settings.hidden_from.get_or_insert_default().sub_agents = true;
        self
    }

    /// Hides the tool from agents in this role (PO-1b).
    #[must_use]
    pub fn hidden_from_role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.settings.hidden_from.get_or_insert_default().roles.insert(role.into());
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
        if self.recursive {
            ToolClass::Concurrent
        } else {
            self.side_effects.class(self.settings.concurrent.unwrap_or_default())
        }
    }

    /// The attempt timeout in force (V3). A recursive tool that sets none has none: `Duration::MAX`.
    pub fn attempt_timeout(&self) -> Duration {
        match self.settings.timeout {
            Some(timeout) => timeout,
            None if self.recursive => Duration::MAX,
            None => self.side_effects.default_timeout(),
        }
    }

    /// Whether an agent with a list of tools may call this one only if the list names it (PO-1b).
    pub fn needs_capability(&self) -> bool {
        self.settings.requires_capability.unwrap_or(true)
    }

    /// Whether an attempt whose effect is unknown may be repeated (RT-1).
    pub fn is_repeatable(&self) -> bool {
        self.settings.idempotent.unwrap_or_default() || self.side_effects.is_read_only()
    }

    /// The schema in force: the declared one, or one that accepts any object.
    pub fn schema(&self) -> Value {
        self.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}))
    }
}
