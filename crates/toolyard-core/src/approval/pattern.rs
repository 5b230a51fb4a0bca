//! The pattern of calls that an answer can cover beyond the one call asked about.

use super::LinkedPath;
use crate::{CallDigest, SessionId, ToolSpec};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// All calls of one tool whose significant arguments are equal (PO-3). The pattern consists of the tool with its
/// version and side effects, and of every argument except those in [`ToolSpec::approval_ignores`].
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{ApprovalPattern, SessionId, ToolSpec};
/// let spec = ToolSpec::write("write_file").approval_ignores("content");
/// let session = SessionId::from("demo");
/// let of = |args| ApprovalPattern::of(&spec, &args, &session);
/// let notes = of(json!({"path": "notes.md", "content": "milk"}));
/// assert_eq!(notes, of(json!({"content": "bread", "path": "notes.md"})));
/// assert_ne!(notes, of(json!({"path": "other.md", "content": "milk"})));
/// assert!(!notes.is_exact());
/// assert_eq!(notes.to_string(), r#"write_file {"path":"notes.md"}, whatever its content"#);
/// ```
#[derive(Debug, Clone)]
pub struct ApprovalPattern {
    tool: Arc<str>,
    /// The arguments that matter, as displayed.
    pinned: Value,
    free: Vec<String>,
    key: CallDigest,
}

/// Compares keys, because two different patterns may display alike.
impl PartialEq for ApprovalPattern {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ApprovalPattern {}

impl ApprovalPattern {
    /// The pattern of a call in this session.
    pub fn of(spec: &ToolSpec, args: &Value, session: &SessionId) -> Self {
        let mut pinned = args.clone();
        let mut free = Vec::new();
        if let Value::Object(fields) = &mut pinned {
            for name in spec.settings.approval_ignores.iter().flatten() {
                if fields.shift_remove(name).is_some() {
                    free.push(name.clone());
                }
            }
        }
        let key = CallDigest::of_pattern(spec, &pinned, session);
        Self { tool: spec.name.as_str().into(), pinned, free, key }
    }

    /// The pattern of the calls whose paths also lead where these do: an answer does not cover a call whose link leads
    /// elsewhere. How the pattern is shown stays the same.
    #[must_use]
    pub fn leading(self, links: &[LinkedPath]) -> Self {
        match links {
            [] => self,
            links => Self { key: CallDigest::of_links(&self.key, links), ..self },
        }
    }

    /// The identity of the pattern: the same for equal patterns, different for other patterns and other sessions. How
    /// the pattern is [shown](Self::shown) does not affect it.
    pub fn key(&self) -> CallDigest {
        self.key
    }

    /// Whether it covers only calls with exactly the same arguments.
    pub fn is_exact(&self) -> bool {
        self.free.is_empty()
    }

    /// The same pattern with its arguments mapped by `show` for display. Its identity does not change: two patterns
    /// that differ only in a secret stay different, although they look the same.
    #[must_use]
    pub fn shown(self, show: impl FnOnce(Value) -> Value) -> Self {
        Self { pinned: show(self.pinned), ..self }
    }
}

impl fmt::Display for ApprovalPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tool, self.pinned)?;
        if self.free.is_empty() {
            return Ok(());
        }
        write!(f, ", whatever its {}", self.free.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// PO-4: an answer for a pattern does not cover another one that differs only in a redacted secret.
    #[test]
    fn what_is_shown_changes_no_pattern() {
        let spec = ToolSpec::write("pay");
        let of = |to: &str, session: &str| {
            ApprovalPattern::of(&spec, &json!({ "to": to }), &SessionId::from(session))
        };
        let shown = |to: &str| of(to, "s").shown(|_| json!({"to": "[redacted]"}));
        assert_eq!(shown("ada").to_string(), shown("bob").to_string());
        assert_ne!(shown("ada"), shown("bob"));
        assert_eq!(shown("ada").key(), of("ada", "s").key());
        assert_ne!(of("ada", "s").key(), of("ada", "r").key());
    }

    /// PO-3: an answer for a tool that writes does not cover a tool of that name that executes programs.
    #[test]
    fn side_effects_are_part_of_a_pattern() {
        let (args, session) = (json!({"x": 1}), SessionId::from("s"));
        let key = |spec: ToolSpec| ApprovalPattern::of(&spec, &args, &session).key();
        assert_eq!(key(ToolSpec::write("do")), key(ToolSpec::write("do").describe("It does.")));
        assert_ne!(key(ToolSpec::write("do")), key(ToolSpec::execute("do")));
    }
}
