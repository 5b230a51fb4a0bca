//! What a program is given: one document, and variables.

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use toolyard_core::ToolContext;

/// What the names of the contract's variables begin with.
pub const PREFIX: &str = "TOOLYARD_";

/// What a program is given for one attempt of a call (SB-2).
#[derive(Debug, Clone)]
pub struct Given<'a> {
    document: Vec<u8>,
    arguments: &'a Value,
    call_id: &'a str,
    tool: &'a str,
    attempt: u32,
    key: Option<&'a str>,
    deadline_ms: Option<u64>,
}

/// The document that a service gets.
#[derive(Serialize)]
struct Request<'a> {
    tool: &'a str,
    call_id: &'a str,
    attempt: u32,
    arguments: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
}

impl<'a> Given<'a> {
    /// What a program is given for this attempt, which has the time from `now` to the deadline of its context.
    pub fn new(arguments: &'a Value, cx: &'a ToolContext, now: Instant) -> Self {
        let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(now));
        Self {
            document: arguments.to_string().into_bytes(),
            arguments,
            call_id: cx.call_id().as_str(),
            tool: cx.tool(),
            attempt: cx.attempt(),
            key: cx.idempotency_key(),
            deadline_ms: left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// The arguments as one JSON document: all that stands on the program's standard input.
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// The document for a program that is handed it whole, without a copy.
    #[must_use]
    pub fn into_document(self) -> Vec<u8> {
        self.document
    }

    /// The variables of the contract, in a fixed order. A call without a key or without a deadline has no variable for
    /// it.
    ///
    /// # Examples
    /// ```
    /// # use serde_json::json;
    /// # use toolyard_core::{ContextParts, ToolContext};
    /// # use toolyard_program::Given;
    /// # use tokio::time::Instant;
    /// let cx = ToolContext::new(ContextParts::detached("word_count"));
    /// let args = json!({});
    /// let given = Given::new(&args, &cx, Instant::now());
    /// let names: Vec<_> = given.variables().into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["TOOLYARD_CALL_ID", "TOOLYARD_TOOL", "TOOLYARD_ATTEMPT"]);
    /// ```
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("TOOLYARD_CALL_ID", without_nul(self.call_id)),
            ("TOOLYARD_TOOL", without_nul(self.tool)),
            ("TOOLYARD_ATTEMPT", self.attempt.to_string()),
        ];
        variables.extend(self.key.map(|key| ("TOOLYARD_IDEMPOTENCY_KEY", without_nul(key))));
        variables.extend(self.deadline_ms.map(|ms| ("TOOLYARD_DEADLINE_MS", ms.to_string())));
        variables
    }

    /// The document for a service: the arguments and what a program reads from its variables, but for the key, which is
    /// the header `Idempotency-Key`.
    pub fn request(&self) -> Vec<u8> {
        let Self { arguments, call_id, tool, attempt, deadline_ms, .. } = *self;
        let request = Request { tool, call_id, attempt, arguments, deadline_ms };
        // Values and numbers always serialize.
        serde_json::to_vec(&request).unwrap_or_default()
    }

    /// The caller's idempotency key.
    pub fn key(&self) -> Option<&str> {
        self.key
    }
}

/// The text up to its first NUL, which no variable can hold.
fn without_nul(text: &str) -> String {
    text.split('\0').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;
    use toolyard_core::{Call, ContextParts};

    fn parts() -> ContextParts {
        let mut parts = ContextParts::detached("count");
        parts.call = Call::new("call_7", "count", Value::Null);
        parts.call.idempotency_key = Some("order 1".into());
        parts
    }

    /// SB-2: a program learns its call, its attempt, its key and the time it has left from its environment.
    #[test]
    fn variables_say_what_the_call_is() {
        let (now, args) = (Instant::now(), json!({}));
        let mut parts = parts();
        parts.deadline = Some(now + Duration::from_millis(2500));
        let cx = ToolContext::new(parts);
        let expect = [
            ("TOOLYARD_CALL_ID", "call_7"),
            ("TOOLYARD_TOOL", "count"),
            ("TOOLYARD_ATTEMPT", "1"),
            ("TOOLYARD_IDEMPOTENCY_KEY", "order 1"),
            ("TOOLYARD_DEADLINE_MS", "2500"),
        ];
        let given = Given::new(&args, &cx, now).variables();
        assert!(given.iter().map(|(name, value)| (*name, &**value)).eq(expect), "{given:?}");
        assert!(given.iter().all(|(name, _)| name.starts_with(PREFIX)));
    }

    /// SB-2: a deadline that has passed leaves no time, and a call without one has no such variable.
    #[test]
    fn a_deadline_that_has_passed_leaves_nothing() {
        let (now, args) = (Instant::now(), json!({}));
        let mut parts = parts();
        parts.deadline = Some(now);
        let cx = ToolContext::new(parts);
        let variables = Given::new(&args, &cx, now + Duration::from_secs(1)).variables();
        assert_eq!(variables.last(), Some(&("TOOLYARD_DEADLINE_MS", "0".to_owned())));
        let cx = ToolContext::new(ContextParts::detached("count"));
        assert_eq!(Given::new(&args, &cx, now).variables().len(), 3);
    }

    /// SB-2: a service gets in one document what a program gets in two places.
    #[test]
    fn a_request_is_one_document() {
        let (now, args) = (Instant::now(), json!({"text": "a\nb"}));
        let mut parts = parts();
        parts.deadline = Some(now + Duration::from_secs(1));
        let cx = ToolContext::new(parts);
        let given = Given::new(&args, &cx, now);
        let expect = json!({
            "tool": "count", "call_id": "call_7", "attempt": 1, "arguments": {"text": "a\nb"}, "deadline_ms": 1000,
        });
        assert_eq!(serde_json::from_slice::<Value>(&given.request()).unwrap(), expect);
        assert_eq!(given.key(), Some("order 1"));
    }

    /// A variable cannot hold a NUL, and a call is not lost for it.
    #[test]
    fn a_nul_ends_a_variable() {
        assert_eq!(without_nul("a\0b"), "a");
        assert_eq!(without_nul("\0"), "");
    }
}
