//! What an answer is good for beyond the one call.

use crate::{CallDigest, SessionId, ToolSpec};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// All calls of one tool that differ in nothing but arguments that do not matter to whom is asked (PO-3): the tool with its
/// version, and every argument but those of [`ToolSpec::approval_ignores`].
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
        let key = CallDigest::of(&spec.name, &spec.version, &pinned, session, 0);
        Self { tool: spec.name.as_str().into(), pinned, free, key }
    }

    /// The same for equal patterns, and different for others and in other sessions.
    pub fn key(&self) -> CallDigest {
        self.key
    }

    /// The same pattern, key included, with its arguments as this makes them: to be shown without secrets.
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
