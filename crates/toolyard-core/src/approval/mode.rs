//! Which calls need approval (PO-3).

use crate::SideEffects;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// What happens to a call before it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationMode {
    /// The call runs without approval.
    Auto,
    /// The [`Approver`](crate::Approver) is asked. If there is none, the call ends as `user_denied` at once.
    Prompt,
    /// The approver is asked once: its answer, yes or no, holds for all calls of the session and its forks with the
    /// same [pattern](crate::ApprovalPattern).
    PromptOnce,
    /// The call ends as `user_denied`.
    Deny,
}

impl ConfirmationMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Prompt, Self::PromptOnce, Self::Deny];

    /// Whether the approver is asked.
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

/// Which calls need approval: a mode per side effect, and overrides per tool name (PO-3).
///
/// By default, none and read run without approval, and write, execute and network prompt. In a trusted workspace,
/// writes that would prompt run without approval; execute and network still prompt, unless
/// [`trusted_override`](Confirmations::trusted_override) says otherwise.
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
    in_trusted: [Option<ConfirmationMode>; SideEffects::ALL.len()],
    timeout: Duration,
}

impl Confirmations {
    /// How long an answer is waited for by default (PO-4).
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Lets every call run without approval.
    pub fn auto() -> Self {
        Self { by_side_effects: [ConfirmationMode::Auto; SideEffects::ALL.len()], ..Self::default() }
    }

    /// Sets the mode of tools with these side effects.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects, mode: ConfirmationMode) -> Self {
        self.by_side_effects[side_effects as usize] = mode;
        self
    }

    /// Sets the mode of one tool, which overrides the mode of its side effects.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, mode: ConfirmationMode) -> Self {
        self.per_tool.insert(name.into(), mode);
        self
    }

    /// Trusts the workspace with this root, and any workspace below it: writes there need no approval. The path is
    /// compared with [`PathScope::root`](crate::PathScope::root), which is canonical wherever a symbolic link could
    /// lead elsewhere.
    #[must_use]
    pub fn trust(mut self, root: impl Into<PathBuf>) -> Self {
        self.trusted.push(root.into());
        self
    }

    /// Sets the mode of tools with these side effects in trusted workspaces, instead of the one they have elsewhere
    /// (PO-3). Modes of single tools still come first.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use toolyard_core::{ConfirmationMode, Confirmations, SideEffects};
    /// let once = ConfirmationMode::PromptOnce;
    /// let confirm = Confirmations::default().trust("/notes").trusted_override(SideEffects::Execute, once);
    /// let at = |root: &str| confirm.clone().in_workspace(Some(Path::new(root)));
    /// assert_eq!(at("/notes").mode("shell", SideEffects::Execute), once);
    /// assert_eq!(at("/etc").mode("shell", SideEffects::Execute), ConfirmationMode::Prompt);
    /// ```
    #[must_use]
    pub fn trusted_override(mut self, side_effects: SideEffects, mode: ConfirmationMode) -> Self {
        self.in_trusted[side_effects as usize] = Some(mode);
        self
    }

    /// Whether any workspace is trusted.
    pub fn trusts_any(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// The modes of a session whose workspace has this root.
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
        if !root.is_some_and(|root| self.trusted.iter().any(|trusted| root.starts_with(trusted))) {
            return self;
        }
        for (mode, over) in self.by_side_effects.iter_mut().zip(self.in_trusted) {
            *mode = over.unwrap_or(*mode);
        }
        let write = SideEffects::Write as usize;
        if self.in_trusted[write].is_none() && self.by_side_effects[write].asks() {
            self.by_side_effects[write] = ConfirmationMode::Auto;
        }
        self
    }

    /// Sets how long an answer is waited for, counted from when the question is shown.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The mode of a tool with these side effects.
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
            in_trusted: [None; SideEffects::ALL.len()],
            timeout: Self::TIMEOUT,
        }
    }
}
