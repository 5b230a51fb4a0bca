//! Which calls need approval (PO-3).

use crate::{ContentHash, SideEffects};
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

    /// The stricter of two modes: auto, then prompt_once, prompt and deny, which is the strictest.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ConfirmationMode;
    /// let (once, prompt) = (ConfirmationMode::PromptOnce, ConfirmationMode::Prompt);
    /// assert_eq!(once.stricter(prompt), prompt);
    /// ```
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let strictness = |mode: &Self| match mode {
            Self::Auto => 0,
            Self::PromptOnce => 1,
            Self::Prompt => 2,
            Self::Deny => 3,
        };
        std::cmp::max_by_key(self, other, strictness)
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
    /// Others that apply too: the strictest decides. These have none of their own.
    also: Vec<Self>,
}

impl Confirmations {
    /// How long an answer is waited for by default (PO-4).
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Lets every call run without approval.
    pub fn auto() -> Self {
        Self { by_side_effects: [ConfirmationMode::Auto; SideEffects::ALL.len()], ..Self::default() }
    }

    /// Makes `other` apply too: for each call the stricter mode of both (SM-8), and the shorter time for an answer. A
    /// workspace is trusted by each as it says, so a call runs without approval only where both let it. What is set
    /// afterwards is set in the first of both, so it cannot loosen the other.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{ConfirmationMode, Confirmations, SideEffects};
    /// let ours = Confirmations::default().tool("deploy", ConfirmationMode::Deny);
    /// let asked_for = Confirmations::auto().side_effects(SideEffects::Read, ConfirmationMode::Prompt);
    /// let both = ours.stricter(asked_for);
    /// assert_eq!(both.mode("deploy", SideEffects::Execute), ConfirmationMode::Deny);
    /// assert_eq!(both.mode("write_file", SideEffects::Write), ConfirmationMode::Prompt);
    /// assert_eq!(both.mode("read_file", SideEffects::Read), ConfirmationMode::Prompt);
    /// ```
    #[must_use]
    pub fn stricter(mut self, mut other: Self) -> Self {
        let more = std::mem::take(&mut other.also);
        self.also.push(other);
        self.also.extend(more);
        self
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
        !self.trusted.is_empty() || self.also.iter().any(Self::trusts_any)
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
        self.also = self.also.into_iter().map(|also| also.in_workspace(root)).collect();
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
        let also = self.also.iter().map(|also| also.own_mode(tool, side_effects));
        also.fold(self.own_mode(tool, side_effects), ConfirmationMode::stricter)
    }

    fn own_mode(&self, tool: &str, side_effects: SideEffects) -> ConfirmationMode {
        if !self.per_tool.is_empty()
            && let Some(mode) = self.per_tool.get(tool)
        {
            return *mode;
        }
        self.by_side_effects[side_effects as usize]
    }

    /// How long an answer is waited for.
    pub fn answer_within(&self) -> Duration {
        self.also.iter().map(|also| also.timeout).fold(self.timeout, Duration::min)
    }

    /// A hash of its content; the order of what was set does not count (SM-7).
    pub fn fingerprint(&self) -> [u8; 32] {
        // Every field, so that none is forgotten.
        let Self { by_side_effects, per_tool, trusted, in_trusted, timeout, also } = self;
        let mode = |mode: ConfirmationMode| ContentHash::new("mode").text(mode.as_str()).finish();
        let tool = |(name, of): (&String, &ConfirmationMode)| {
            ContentHash::new("tool").text(name).bytes(&mode(*of)).finish()
        };
        let root = |root: &PathBuf| ContentHash::new("root").path(root).finish();
        let in_trusted = in_trusted.map(|of| ContentHash::new("in trusted").option(of.map(mode)).finish());
        ContentHash::new("toolyard confirmations 1")
            .list(by_side_effects.map(mode))
            .set(per_tool.iter().map(tool))
            .set(trusted.iter().map(root))
            .list(in_trusted)
            .bytes(&timeout.as_nanos().to_be_bytes())
            .set(also.iter().map(Self::fingerprint))
            .finish()
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
            also: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConfirmationMode::{Auto, Deny, Prompt, PromptOnce};

    /// SM-8: of two settings the stricter mode counts, for every tool and every workspace, in any order and nesting.
    #[test]
    fn the_stricter_mode_counts() {
        let write = SideEffects::Write;
        let settings = [
            Confirmations::default(),
            Confirmations::auto(),
            Confirmations::auto().tool("x", Deny).side_effects(write, PromptOnce),
            Confirmations::default().tool("x", Auto).trust("/near"),
            // A trusted workspace may also be stricter than others.
            Confirmations::auto().trust("/near/in").trusted_override(write, Deny),
        ];
        let roots = [None, Some("/near"), Some("/near/in"), Some("/far")].map(|root| root.map(Path::new));
        let mode =
            |of: &Confirmations, tool, effects, root| of.clone().in_workspace(root).mode(tool, effects);
        for one in &settings {
            for other in &settings {
                let both = one.clone().stricter(other.clone());
                let thrice = one.clone().stricter(both.clone()).stricter(Confirmations::auto());
                for (tool, root) in roots.iter().flat_map(|root| [("x", *root), ("y", *root)]) {
                    for effects in SideEffects::ALL {
                        let of = |settings| mode(settings, tool, effects, root);
                        let stricter = of(one).stricter(of(other));
                        assert_eq!(
                            (of(&both), of(&thrice)),
                            (stricter, stricter),
                            "{tool} {root:?} {effects:?}"
                        );
                    }
                }
                assert_eq!(both.trusts_any(), one.trusts_any() || other.trusts_any());
            }
        }
    }

    /// SM-8: the shorter time counts, and what is set afterwards cannot loosen what was added.
    #[test]
    fn what_was_added_cannot_be_loosened() {
        let hour = Duration::from_secs(3600);
        let strict = Confirmations::default().side_effects(SideEffects::Write, Deny);
        let both =
            Confirmations::auto().stricter(strict).timeout(hour).side_effects(SideEffects::Write, Auto);
        assert_eq!(both.mode("x", SideEffects::Write), Deny);
        assert_eq!(both.answer_within(), Confirmations::TIMEOUT);
        let order = [Auto, PromptOnce, Prompt, Deny];
        for (at, mode) in order.iter().enumerate() {
            order[..=at].iter().for_each(|less| assert_eq!(less.stricter(*mode), *mode));
        }
    }

    /// SM-7: every field counts, and the order in which they were set does not.
    #[test]
    fn the_fingerprint_is_that_of_the_content() {
        let base = Confirmations::default;
        let (write, read) = (SideEffects::Write, SideEffects::Read);
        let same = [
            (base().tool("a", Deny).tool("b", Auto), base().tool("b", Auto).tool("a", Deny)),
            (base().trust("/a").trust("/b"), base().trust("/b").trust("/a").trust("/b")),
            (
                base().stricter(Confirmations::auto()).stricter(base().trust("/a")),
                base().stricter(base().trust("/a")).stricter(Confirmations::auto()),
            ),
        ];
        for (one, other) in same {
            assert_eq!(one.fingerprint(), other.fingerprint());
        }
        let mut others = vec![
            base(),
            base().tool("a", Deny),
            base().tool("a", Auto),
            base().tool("b", Deny),
            base().trust("/a"),
            base().trust("/a/b"),
            base().timeout(Duration::from_secs(1)),
            base().stricter(base()),
            base().stricter(Confirmations::auto()),
            base().stricter(base()).stricter(Confirmations::auto()),
        ];
        for mode in [Deny, PromptOnce] {
            others.extend([write, read].map(|effects| base().side_effects(effects, mode)));
            others.extend([write, read].map(|effects| base().trusted_override(effects, mode)));
        }
        let different: std::collections::BTreeSet<_> =
            others.iter().map(Confirmations::fingerprint).collect();
        assert_eq!(different.len(), others.len());
    }
}
