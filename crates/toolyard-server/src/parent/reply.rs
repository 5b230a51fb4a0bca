//! What the parent says of an invocation of one of its functions.

use super::ask::read;
use crate::problem::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use toolyard::{Content, ToolError, ToolErrorKind, ToolOutput};

/// What an invocation is told.
#[derive(Debug)]
pub(super) enum Reply {
    /// Some output, before its end.
    Delta(String),
    /// Its end.
    Ended(Box<Result<ToolOutput, ToolError>>),
}

impl Reply {
    /// Reads a `tool_result`, `tool_failed` or `tool_delta`.
    pub(super) fn read(op: &str, line: &str) -> Result<Self, Problem> {
        let ended = |ended| Self::Ended(Box::new(ended));
        match op {
            "tool_delta" => read::<Delta>(line).map(|delta| Self::Delta(delta.text)),
            "tool_failed" => Ok(ended(Err(read::<Failed>(line)?.error()))),
            _ => read::<Given>(line)?.output().map(Ok).map(ended),
        }
    }
}

#[derive(Deserialize)]
struct Delta {
    text: String,
}

#[derive(Deserialize)]
struct Given {
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    content: Option<Vec<Content>>,
    structured: Option<Value>,
}

/// A value that is there, null included.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl Given {
    fn output(self) -> Result<ToolOutput, Problem> {
        match (self.result, self.content) {
            (Some(Value::String(text)), None) => Ok(ToolOutput::text(text)),
            (Some(data @ (Value::Object(_) | Value::Array(_))), None) => Ok(ToolOutput::json(data)),
            (Some(other), None) => Ok(ToolOutput::text(other.to_string())),
            (None | Some(Value::Null), Some(content)) => {
                let output = ToolOutput::parts(content);
                Ok(self.structured.into_iter().fold(output, ToolOutput::with_structured))
            }
            (None, None) => Err(Problem::invalid("/result", "field 'result' is missing")),
            (Some(_), Some(_)) => Err(Problem::invalid("/content", "give either 'result' or 'content'")),
        }
    }
}

#[derive(Deserialize)]
struct Failed {
    message: String,
    kind: Option<Kind>,
    retry_after_ms: Option<u64>,
    outcome: Option<Effect>,
    content: Option<Vec<Content>>,
}

/// Why a function has failed.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    ExecutionError,
    Transient,
    RateLimited,
    InvalidInput,
    PermissionDenied,
    OutputInvalid,
    Cancelled,
    Timeout,
    Internal,
}

/// Whether a function that failed has changed something.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    Failed,
    Unknown,
}

/// A fault of a function itself, whose text is for the log (V5).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Internal(String);

impl Failed {
    fn error(self) -> ToolError {
        let kind = match self.kind.unwrap_or_default() {
            Kind::ExecutionError => ToolErrorKind::Execution,
            Kind::Transient => ToolErrorKind::Transient,
            Kind::RateLimited => ToolErrorKind::RateLimited,
            Kind::InvalidInput => ToolErrorKind::InvalidInput,
            Kind::PermissionDenied => ToolErrorKind::PermissionDenied,
            Kind::OutputInvalid => ToolErrorKind::OutputInvalid,
            Kind::Cancelled => ToolErrorKind::Cancelled,
            Kind::Timeout => ToolErrorKind::Timeout,
            Kind::Internal => ToolErrorKind::Unclassified,
        };
        let mut error = match kind {
            ToolErrorKind::Unclassified => ToolError::from(Internal(self.message)),
            kind => ToolError::new(kind, self.message),
        };
        error = match self.outcome {
            Some(Effect::Failed) => error.no_side_effect(),
            Some(Effect::Unknown) => error.outcome_unknown(),
            None => error,
        };
        if let Some(ms) = self.retry_after_ms {
            error = error.retry_after(Duration::from_millis(ms));
        }
        self.content.into_iter().fold(error, ToolError::with_content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(op: &str, line: Value) -> Result<ToolOutput, ToolError> {
        match Reply::read(op, &line.to_string()).unwrap() {
            Reply::Ended(ended) => *ended,
            Reply::Delta(text) => panic!("{text}"),
        }
    }

    /// AG-14: a text is text, an object or a list is data, and anything else is its JSON text.
    #[test]
    fn a_result_is_any_json() {
        let text = |result: Value| ended("tool_result", json!({"result": result})).unwrap().to_text();
        assert_eq!([json!("a"), json!(3), json!(null), json!(true)].map(text), ["a", "3", "null", "true"]);
        let data = ended("tool_result", json!({"result": {"sum": 3}})).unwrap();
        assert_eq!(*data.structured().unwrap(), json!({"sum": 3}));
        let parts = json!({"content": [{"type": "text", "text": "a"}], "structured": [1]});
        let parts = ended("tool_result", parts).unwrap();
        assert_eq!((parts.to_text(), parts.structured().unwrap().into_owned()), ("a".to_owned(), json!([1])));
        for (line, why) in [(json!({}), "missing"), (json!({"result": 1, "content": []}), "either")] {
            let problem = Reply::read("tool_result", &line.to_string()).unwrap_err();
            assert!(problem.detail().contains(why), "{problem:?}");
        }
    }

    /// AG-14, V5: a failure has the kind that the function says; the text of a fault of its own is for the log.
    #[test]
    fn a_failure_has_a_kind() {
        let failed = |line: Value| ended("tool_failed", line).unwrap_err();
        let error =
            failed(json!({"message": "503", "kind": "transient", "outcome": "failed", "retry_after_ms": 5}));
        assert_eq!(
            (error.kind(), error.message(), error.has_no_side_effect()),
            (ToolErrorKind::Transient, "503", true)
        );
        assert_eq!(error.retry_after_hint(), Some(Duration::from_millis(5)));
        let plain = failed(json!({"message": "no"}));
        assert_eq!((plain.kind(), plain.has_unknown_outcome()), (ToolErrorKind::Execution, false));
        let own = failed(json!({"message": "KeyError: secret", "kind": "internal", "outcome": "unknown"}));
        assert!(!own.message().contains("secret") && own.has_unknown_outcome());
        assert_eq!(own.source().unwrap().to_string(), "KeyError: secret");
    }
}
