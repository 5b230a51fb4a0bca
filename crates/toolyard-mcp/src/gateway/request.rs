//! Turns a `tools/call` request into a call.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, RequestId, RequestMetaObject},
};
use serde_json::Value;
use toolyard::{Call, TimeoutScope};
use toolyard_wire::{CallMeta, FieldError};

/// The names that a request may set. The other ones of SM-11 are not for it: its call has the id of the request, and the
/// agent of its session makes it.
const NAMES: &str = "toolyard/idempotency_key, toolyard/timeout_ms or toolyard/deadline_ms";

/// Maximum number of characters of a request's id that its call keeps.
const ID_MAX: usize = 128;

/// The call that a request asks for, with the key, the timeout (of the call with its retries) and the deadline in its
/// metadata (SM-11).
///
/// # Errors
/// `-32602` if metadata under our prefix is wrong: a caller that sets a key or a deadline relies on it.
pub(super) fn read(
    request: CallToolRequestParams,
    id: &RequestId,
    meta: &RequestMetaObject,
) -> Result<Call, ErrorData> {
    let id: String = id.to_string().chars().take(ID_MAX).collect();
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let mut call = Call::with_arguments(id, request.name.as_ref(), arguments);
    let meta = CallMeta::read_shared(&meta.0.0).map_err(|error| match error {
        FieldError::Unknown { field, .. } => unknown(&field),
        error => refused(&error.to_string()),
    })?;
    if meta.call_id().is_some() {
        return Err(unknown("toolyard/call_id"));
    }
    if meta.agent().is_some() {
        return Err(unknown("toolyard/agent"));
    }
    meta.apply(&mut call, TimeoutScope::Call);
    Ok(call)
}

fn unknown(field: &str) -> ErrorData {
    refused(&format!("unknown '{field}', expected {NAMES}"))
}

fn refused(why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("_meta: {why}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorCode, MetaObject};
    use serde_json::json;
    use std::time::Duration;
    use toolyard::CallTimeout;

    fn read_json(meta: Value) -> Result<Call, ErrorData> {
        let meta = RequestMetaObject(MetaObject(meta.as_object().unwrap().clone()));
        read(CallToolRequestParams::new("t"), &RequestId::Number(7), &meta)
    }

    /// ID-2, V3: key, timeout and deadline come from `_meta`, and metadata of others is left alone.
    #[test]
    fn metadata_becomes_part_of_the_call() {
        let meta = json!({"toolyard/idempotency_key": "k", "toolyard/timeout_ms": 1e3, "toolyard/deadline_ms": 9,
                          "progressToken": 1, "com.example/x": 1});
        let call = read_json(meta).unwrap();
        assert_eq!((call.id.as_str(), call.idempotency_key.as_deref()), ("7", Some("k")));
        assert_eq!(call.timeout, Some(CallTimeout::of_call(Duration::from_secs(1))));
        assert_eq!(call.deadline, Some(Duration::from_millis(9)));
    }

    /// Wrong metadata is refused and not ignored: a call whose key is ignored could run twice.
    #[test]
    fn metadata_that_is_wrong_is_refused() {
        for meta in [
            json!({"toolyard/timeout_ms": 0}),
            json!({"toolyard/timeout_ms": 1.5}),
            json!({"toolyard/deadline_ms": "1s"}),
            json!({"toolyard/idempotency_key": ""}),
            json!({"toolyard/idempotency_key": 17}),
            json!({"toolyard/idempotency_key": "a b"}),
            json!({"toolyard/idempotency-key": "k"}),
            json!({"toolyard/deadline_ms": null}),
            json!({"toolyard/call_id": "c"}),
            json!({"toolyard/agent": "root/1"}),
        ] {
            let error = read_json(meta.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{meta}");
            assert!(error.message.starts_with("_meta: "), "{meta}: {}", error.message);
        }
    }
}
