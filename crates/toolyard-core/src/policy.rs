//! Whether a call may run, and where.

mod agent_path;
mod form;
mod rules;

pub use agent_path::AgentPath;
pub use form::{Confinement, Form, NoForm};
pub use rules::{PolicyRules, Rule};

use crate::{ContentHash, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};

/// The name of a session. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for SessionId {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The agent that makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The agent in it.
    pub agent: &'a AgentPath,
    /// The agent's role, if it has one.
    pub role: Option<&'a str>,
}

impl<'a> Caller<'a> {
    /// This agent of this session, without a role.
    pub fn new(session: &'a SessionId, agent: &'a AgentPath) -> Self {
        Self { session, agent, role: None }
    }

    /// Sets the agent's role.
    #[must_use]
    pub fn in_role(mut self, role: Option<&'a str>) -> Self {
        self.role = role;
        self
    }
}

/// Where a call executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sandbox {
    /// In this process.
    #[default]
    Host,
    /// In a process of its own.
    Process,
    /// In a process of its own, without namespaces: what a machine that allows none can keep of
    /// [`Process`](Self::Process). Weaker, and never where a call runs unless a policy names it.
    Landlock,
    /// In a WebAssembly runtime.
    Wasm,
    /// In a virtual machine.
    MicroVm,
    /// On another machine.
    Remote,
}

impl Sandbox {
    /// Every sandbox that has a name.
    pub const ALL: [Self; 6] =
        [Self::Host, Self::Process, Self::Landlock, Self::Wasm, Self::MicroVm, Self::Remote];

    /// Its position in [`ALL`](Self::ALL).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::Sandbox;
    /// assert!(Sandbox::ALL.iter().enumerate().all(|(at, sandbox)| sandbox.index() == at));
    /// ```
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The word used in events and configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Process => "process",
            Self::Landlock => "landlock",
            Self::Wasm => "wasm",
            Self::MicroVm => "micro_vm",
            Self::Remote => "remote",
        }
    }
}

/// The resources a call may use; `None` is no limit. A limit that the sandbox cannot enforce ends the call as
/// `sandbox_error` and is never ignored (PO-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Wall time from the start of an attempt.
    pub wall_time: Option<Duration>,
    /// Bytes of memory, all processes of the call together.
    pub memory: Option<u64>,
    /// Bytes of address space of each of its processes. Weaker than [`memory`](Self::memory), and kept on more machines.
    pub memory_per_process: Option<u64>,
    /// CPU time, all processes of the call together.
    pub cpu_time: Option<Duration>,
    /// CPU time of each of its processes, in whole seconds; a part of one counts as one.
    pub cpu_time_per_process: Option<Duration>,
    /// Processes at once.
    pub processes: Option<u32>,
    /// Open files at once.
    pub open_files: Option<u32>,
    /// Bytes of output.
    pub output_bytes: Option<usize>,
}

impl ResourceLimits {
    /// No limits.
    pub const fn unlimited() -> Self {
        Self {
            wall_time: None,
            memory: None,
            memory_per_process: None,
            cpu_time: None,
            cpu_time_per_process: None,
            processes: None,
            open_files: None,
            output_bytes: None,
        }
    }

    /// The limits that are set and that a sandbox has to keep, by their names: all but those on wall time and output,
    /// which the engine keeps everywhere.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ResourceLimits;
    /// let mut limits = ResourceLimits::unlimited();
    /// (limits.memory, limits.output_bytes) = (Some(64 << 20), Some(1024));
    /// assert_eq!(limits.kept_by_sandboxes().collect::<Vec<_>>(), ["memory"]);
    /// ```
    pub fn kept_by_sandboxes(&self) -> impl Iterator<Item = &'static str> {
        let limits = [
            ("memory", self.memory.is_some()),
            ("memory per process", self.memory_per_process.is_some()),
            ("CPU time", self.cpu_time.is_some()),
            ("CPU time per process", self.cpu_time_per_process.is_some()),
            ("processes", self.processes.is_some()),
            ("open files", self.open_files.is_some()),
        ];
        limits.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

/// A policy's permission: where the call executes, and within which limits.
///
/// The default names no sandbox: a native tool runs on the host, a portable one in its own (SM-1). What a tool can do
/// with a grant is said by [`to_forms`](Self::to_forms).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grant {
    /// Where the call executes; `None` for the tool's own form. `Some(Sandbox::Host)` for a program is a decision to
    /// run it unconfined.
    pub sandbox: Option<Sandbox>,
    /// The resources it may use.
    pub limits: ResourceLimits,
}

impl Grant {
    /// Execution in the tool's own form, without limits. The same as the default.
    pub const fn own_form() -> Self {
        Self { sandbox: None, limits: ResourceLimits::unlimited() }
    }

    /// Execution on the host, without limits.
    pub const fn host() -> Self {
        Self::within(Sandbox::Host)
    }

    /// Execution in this sandbox, without limits.
    pub const fn within(sandbox: Sandbox) -> Self {
        Self { sandbox: Some(sandbox), limits: ResourceLimits::unlimited() }
    }

    /// A hash of its content (SM-7).
    fn fingerprint(&self) -> [u8; 32] {
        // Every field, so that none is forgotten.
        let Self { sandbox, limits } = self;
        let ResourceLimits {
            wall_time,
            memory,
            memory_per_process,
            cpu_time,
            cpu_time_per_process,
            processes,
            open_files,
            output_bytes,
        } = limits;
        let numbers = [
            wall_time.map(|time| time.as_nanos()),
            memory.map(u128::from),
            memory_per_process.map(u128::from),
            cpu_time.map(|time| time.as_nanos()),
            cpu_time_per_process.map(|time| time.as_nanos()),
            processes.map(u128::from),
            open_files.map(u128::from),
            output_bytes.map(|bytes| bytes as u128),
        ];
        let text = |text: &str| ContentHash::new("text").text(text).finish();
        let number = |number: u128| ContentHash::new("number").bytes(&number.to_be_bytes()).finish();
        let hash = ContentHash::new("toolyard grant 2").option(sandbox.map(|it| text(it.as_str())));
        numbers.iter().fold(hash, |hash, limit| hash.option(limit.map(number))).finish()
    }
}

/// A policy's refusal. The call ends as `permission_denied`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// The tool is disabled; the model reads the fixed wording of V5.
    Disabled,
    /// Another reason, in a sentence for the model.
    Because(String),
}

/// Decides whether a call may run (PO-1).
///
/// The policy is asked once per call, before any permit is taken. Its arguments are within their bounds, but have not
/// been checked against the tool's schema: a caller that may not use a tool learns nothing of its schema (V1). It is
/// asked again before the call starts if the engine's policy was replaced in the meantime, and after a validation of
/// the arguments that took long. A policy may also change its
/// own answers at any time; an answer counts as of when the policy was asked.
///
/// # Examples
/// ```
/// use serde_json::Value;
/// use toolyard_core::{Caller, Denied, Grant, RuntimePolicy, SideEffects, ToolSpec};
///
/// struct ReadOnly;
///
/// impl RuntimePolicy for ReadOnly {
///     fn check(&self, tool: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
///         if tool.side_effects.is_read_only() { Ok(Grant::own_form()) } else { Err(Denied::Disabled) }
///     }
/// }
/// ```
pub trait RuntimePolicy: Send + Sync {
    /// Whether `caller` may call `tool` with `args`, and where it executes.
    ///
    /// # Errors
    /// [`Denied`] if it may not.
    ///
    /// # Panics
    /// A panic ends the call as `internal`: a call that was not allowed does not run (PO-6).
    fn check(&self, tool: &ToolSpec, args: &Value, caller: &Caller<'_>) -> Result<Grant, Denied>;

    /// A hash of everything that this policy's answers depend on, apart from what it is asked: two policies with equal
    /// fingerprints answer alike, in every process and always (SM-7). [`ContentHash`] makes one.
    /// Asked once, when the policy is put in force.
    ///
    /// It is part of the [digest](crate::CallDigest) that an approval is bound to. `None`, the default, is for policies
    /// that cannot say: then a digest is good for this policy in this life of its engine, and nowhere else.
    ///
    /// # Panics
    /// A panic is logged, and counts as `None`.
    fn fingerprint(&self) -> Option<[u8; 32]> {
        None
    }
}

/// The default policy: everything runs, in its own form, without limits (PO-1).
///
/// Confirmation applies on top of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl RuntimePolicy for AllowAll {
    fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        Ok(Grant::own_form())
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        Some(ContentHash::new("toolyard allow all 1").finish())
    }
}
