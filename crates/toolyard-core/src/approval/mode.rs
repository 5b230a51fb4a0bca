//! Which calls are asked about (PO-3).

use crate::SideEffects;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// What happens with a call of some kind before it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationMode {
    /// It runs.
    Auto,
    /// The [`Approver`](crate::Approver) is asked. With nobody to ask, the call ends as `user_denied` at once.
    Prompt,
    /// It is asked, and its answer holds for all calls of the session and its forks with the same
    /// [pattern](crate::ApprovalPattern).
    PromptOnce,
    /// It ends as `user_denied`.
    Deny,
}

impl ConfirmationMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Prompt, Self::PromptOnce, Self::Deny];

    /// Whether somebody is asked.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Prompt | Self::PromptOnce)
    }

    /// The word used in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prompt => "prompt",
            Self::PromptOnce => "prompt_once",
            Self::Deny => "deny",
        }
    }
}

/// Which calls are asked about: a mode per side effect, and overrides by tool name (PO-3).
///
/// The default lets none and read through and asks about write, execute and network. In a trusted workspace writes are
/// let through that would be asked about; execution and network are not.
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
    by_side_effects: [ConfirmationMode; SideEffects::ALL.len()],
    per_tool: HashMap<String, ConfirmationMode>,
    trusted: Vec<PathBuf>,
    timeout: Duration,
}

impl Confirmations {
    /// How long an answer is waited for unless said otherwise (PO-4).
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Every call runs without being asked about.
    pub fn auto() -> Self {
        Self { by_side_effects: [ConfirmationMode::Auto; SideEffects::ALL.len()], ..Self::default() }
    }

    /// Sets the mode of tools with these side effects.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects, mode: ConfirmationMode) -> Self {
        self.by_side_effects[side_effects as usize] = mode;
        self
    }

    /// Sets the mode of one tool, whatever its side effects.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, mode: ConfirmationMode) -> Self {
        self.per_tool.insert(name.into(), mode);
        self
    }

    /// Trusts the workspace with this root, and those under it: their writes are not asked about. Roots are compared
    /// with [`PathScope::root`](crate::PathScope::root), which is canonical where a link might lead elsewhere.
    #[must_use]
    pub fn trust(mut self, root: impl Into<PathBuf>) -> Self {
        self.trusted.push(root.into());
        self
    }

    /// Whether any workspace is trusted.
    pub fn trusts_any(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// The modes of a session with this workspace.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use toolyard_core::{ConfirmationMode, Confirmations, SideEffects};
    /// let confirm = Confirmations::default().trust("/home/ada/notes");
    /// let at = |root: &str| confirm.clone().in_workspace(Some(Path::new(root)));
    /// let write = |root: &str| at(root).mode("write_file", SideEffects::Write);
    /// assert_eq!(write("/home/ada/notes/2026"), ConfirmationMode::Auto);
    /// assert_eq!(write("/home/ada/notes-of-others"), ConfirmationMode::Prompt);
    /// assert_eq!(at("/home/ada/notes").mode("shell", SideEffects::Execute), ConfirmationMode::Prompt);
    /// ```
    #[must_use]
    pub fn in_workspace(mut self, root: Option<&Path>) -> Self {
        let write = &mut self.by_side_effects[SideEffects::Write as usize];
        if write.asks()
            && root.is_some_and(|root| self.trusted.iter().any(|trusted| root.starts_with(trusted)))
        {
            *write = ConfirmationMode::Auto;
        }
        self
    }

    /// Sets how long an answer is waited for, from when the question is shown.
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
        self.by_side_effects[side_effects as usize]
    }

    /// How long an answer is waited for.
    pub fn answer_within(&self) -> Duration {
        self.timeout
    }
}

impl Default for Confirmations {
    fn default() -> Self {
        let mode = |side_effects: SideEffects| match side_effects.is_read_only() {
            true => ConfirmationMode::Auto,
            false => ConfirmationMode::Prompt,
        };
        Self {
            by_side_effects: SideEffects::ALL.map(mode),
            per_tool: HashMap::new(),
            trusted: Vec::new(),
            timeout: Self::TIMEOUT,
        }
    }
}
