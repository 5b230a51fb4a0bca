//! What an answer is good for beyond the one call.

use crate::{CallDigest, SessionId, ToolSpec};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// All calls of one tool that differ in nothing but arguments that do not matter to whom is asked (PO-3): the tool with its
/// version and its side effects, and every argument but those of [`ToolSpec::approval_ignores`].
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
/// assert_eq!(notes.to_string(), r#"write_file {"path":"notes.md"}, whatever its content"#);
/// ```
#[derive(Debug, Clone)]
pub struct ApprovalPattern {
    tool: Arc<str>,
    /// The arguments that matter, as they are shown.
    pinned: Value,
    free: Vec<String>,
    key: CallDigest,
}

/// By its key: two patterns that are shown alike may be two.
impl PartialEq for ApprovalPattern {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ApprovalPattern {}

impl ApprovalPattern {
    /// The pattern of a call of this session.
    pub fn of(spec: &ToolSpec, args: &Value, session: &SessionId) -> Self {
        let mut pinned = args.clone();
        let mut free = Vec::new();
        if let Value::Object(fields) = &mut pinned {
            for name in &spec.approval_ignores {
                if fields.shift_remove(name).is_some() {
                    free.push(name.clone());
                }
            }
        }
        let key = CallDigest::of_pattern(spec, &pinned, session);
        Self { tool: spec.name.as_str().into(), pinned, free, key }
    }

    /// The same for equal patterns, and different for others and in other sessions. What is [shown](Self::shown) of them
    /// does not count.
    pub fn key(&self) -> CallDigest {
        self.key
    }

    /// The same pattern with its arguments as this makes them, to be shown. It stays what it is: two that differ in a
    /// secret alone are two, though they look the same.
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

    /// PO-4: an answer for a pattern is for none that looks the same without its secrets.
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

    /// PO-3: what was said of a tool that writes is not said of one that runs programs and came in its place.
    #[test]
    fn side_effects_are_part_of_a_pattern() {
        let (args, session) = (json!({"x": 1}), SessionId::from("s"));
        let key = |spec: ToolSpec| ApprovalPattern::of(&spec, &args, &session).key();
        assert_eq!(key(ToolSpec::write("do")), key(ToolSpec::write("do").describe("It does.")));
        assert_ne!(key(ToolSpec::write("do")), key(ToolSpec::execute("do")));
    }
}
