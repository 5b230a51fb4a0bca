//! What a person, or a program in its place, says to a question.

use super::{ApprovalRequest, Approver};
use crate::Arguments;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// The maximum number of characters of a name; a longer one is cut.
const WHO_CHARS_MAX: usize = 128;

/// The maximum number of characters of a reason; a longer one is cut.
const REASON_CHARS_MAX: usize = 2000;

/// What an [`Answer`] decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call may run.
    Allow,
    /// The call may run, and so may every other call of the session and its forks with the same
    /// [pattern](super::ApprovalPattern): those waiting for an answer now and those still to come.
    Always,
    /// The call ends as `user_denied`.
    Deny,
    /// The call ends as `user_denied`, and so does every other call of the session and its forks with the same
    /// [pattern](super::ApprovalPattern), as with `Always` (KT-16).
    Never,
    /// Nobody could be asked. The call ends as `user_denied`, whose text says so.
    Nobody,
    /// The question is too long to be shown whole, so it was not asked: nobody allows what was not seen. The call ends
    /// as `user_denied`, whose text says so.
    TooLong,
}

impl Decision {
    /// Whether the call may run.
    pub const fn allows(self) -> bool {
        matches!(self, Self::Allow | Self::Always)
    }

    /// The word used in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Always => "always",
            Self::Deny => "deny",
            Self::Never => "never",
            Self::Nobody => "nobody",
            Self::TooLong => "too_long",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The answer to an [`ApprovalRequest`]: a decision, who made it, and why (SM-5). Cheap to clone.
///
/// # Examples
/// ```
/// use toolyard_core::{Answer, Decision};
/// let no = Answer::deny("ada").because("not on a Friday");
/// assert_eq!((no.decision(), no.who(), no.reason()), (Decision::Deny, Some("ada"), Some("not on a Friday")));
/// assert!(Answer::allow("ada").allows() && Answer::nobody().who().is_none());
///
/// let yes = Answer::edit("ada", r#"{"path": "notes.md"}"#);
/// assert_eq!(yes.decision(), Decision::Allow);
/// assert_eq!(yes.arguments().unwrap().text(), r#"{"path": "notes.md"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer {
    decision: Decision,
    who: Option<Arc<str>>,
    reason: Option<Arc<str>>,
    /// Only of a yes to this one call: what is remembered, or shared by a pattern, is what was asked.
    arguments: Option<Arguments>,
}

impl Answer {
    /// A yes to this call, from somebody of this name.
    pub fn allow(who: impl AsRef<str>) -> Self {
        Self::by(Decision::Allow, who.as_ref())
    }

    /// A yes to this call with these arguments instead of its own, from somebody of this name.
    ///
    /// The engine checks them as those of the call: bounds, policy, schema, paths and hosts. If they may not run, the
    /// answer does not count and its giver is told why ([`Receipt::Refused`](super::Receipt::Refused)); the question
    /// stays open. Such a yes holds for this call alone: an "always" with changed arguments does not exist, since what
    /// it would cover is what was asked. The call's own arguments, in whatever spelling, make it a plain
    /// [yes](Self::allow).
    pub fn edit(who: impl AsRef<str>, arguments: impl Into<Arguments>) -> Self {
        Self { arguments: Some(arguments.into()), ..Self::allow(who) }
    }

    /// The same answer to the call as it is, without the arguments that it [gave](Self::edit).
    #[must_use]
    pub fn without_edit(self) -> Self {
        Self { arguments: None, ..self }
    }

    /// A yes to this call and to all others of its pattern, from somebody of this name.
    pub fn always(who: impl AsRef<str>) -> Self {
        Self::by(Decision::Always, who.as_ref())
    }

    /// A no from somebody of this name.
    pub fn deny(who: impl AsRef<str>) -> Self {
        Self::by(Decision::Deny, who.as_ref())
    }

    /// A no to this call and to all others of its pattern, from somebody of this name. The model reads the
    /// [reason](Self::because) with each of them.
    pub fn never(who: impl AsRef<str>) -> Self {
        Self::by(Decision::Never, who.as_ref())
    }

    /// Nobody could be asked.
    pub const fn nobody() -> Self {
        Self::without_name(Decision::Nobody)
    }

    /// The question is too long to be shown whole.
    pub const fn too_long() -> Self {
        Self::without_name(Decision::TooLong)
    }

    fn by(decision: Decision, who: &str) -> Self {
        Self { who: cut(who, WHO_CHARS_MAX), ..Self::without_name(decision) }
    }

    const fn without_name(decision: Decision) -> Self {
        Self { decision, who: None, reason: None, arguments: None }
    }

    /// Adds a reason. The model reads that of a no.
    #[must_use]
    pub fn because(mut self, reason: impl AsRef<str>) -> Self {
        self.reason = cut(reason.as_ref(), REASON_CHARS_MAX);
        self
    }

    /// What it decides.
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether the call may run.
    pub const fn allows(&self) -> bool {
        self.decision.allows()
    }

    /// The name of whoever decided; `None` if nobody did.
    pub fn who(&self) -> Option<&str> {
        self.who.as_deref()
    }

    /// Why, if that was said.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The arguments with which the call is to run instead of its own, if they were [changed](Self::edit).
    pub fn arguments(&self) -> Option<&Arguments> {
        self.arguments.as_ref()
    }
}

/// The text without the space around it, cut; `None` if nothing is left.
fn cut(text: &str, chars_max: usize) -> Option<Arc<str>> {
    let text = text.trim();
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(end, _)| end);
    (!text.is_empty()).then(|| text[..end].into())
}

#[async_trait]
impl Approver for Answer {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-5: names and reasons are bounded, and an empty one is none.
    #[test]
    fn names_and_reasons_are_bounded() {
        let long = "ü".repeat(5000);
        let answer = Answer::deny(&long).because(format!("  {long}"));
        assert_eq!(answer.who().map(|who| who.chars().count()), Some(WHO_CHARS_MAX));
        assert_eq!(answer.reason().map(|reason| reason.chars().count()), Some(REASON_CHARS_MAX));
        let answer = Answer::allow(" ada ").because(" \n");
        assert_eq!((answer.who(), answer.reason()), (Some("ada"), None));
    }
}
