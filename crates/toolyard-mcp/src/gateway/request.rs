//! Turns a `tools/call` request into a call.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, RequestId, RequestMetaObject},
};
use serde_json::Value;
use std::time::Duration;
use toolyard::{Call, IdempotencyKey};
use toolyard_wire::whole_number;

/// Prefix of the `_meta` keys that this server reads.
const PREFIX: &str = "toolyard/";

/// Calls of one client with the same key run once (ID-1).
const KEY: &str = "toolyard/idempotency_key";

/// How long the call may take from its start, retries included (V3).
const TIMEOUT: &str = "toolyard/timeout_ms";

/// The same with the wait for its start (V3).
const DEADLINE: &str = "toolyard/deadline_ms";

/// Maximum number of characters of a request's id that its call keeps.
const ID_MAX: usize = 128;

/// The call that a request asks for.
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
    let mut call = Call::new(id, request.name.as_ref(), arguments);
    for (name, value) in meta.0.0.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        match name.as_str() {
            KEY => call.idempotency_key = Some(key(value)?.into()),
            TIMEOUT => call = call.timeout_in_all(millis(TIMEOUT, value)?),
            DEADLINE => call.deadline = Some(millis(DEADLINE, value)?),
            _ => return Err(refused(&format!("unknown '{name}', expected {KEY}, {TIMEOUT} or {DEADLINE}"))),
        }
    }
    Ok(call)
}

fn key(value: &Value) -> Result<IdempotencyKey, ErrorData> {
    let text = value.as_str().ok_or_else(|| refused(&format!("'{KEY}' must be a string")))?;
    IdempotencyKey::new(text).map_err(|error| refused(&format!("'{KEY}': {error}")))
}

fn millis(name: &str, value: &Value) -> Result<Duration, ErrorData> {
    let millis = whole_number(value).filter(|millis| *millis > 0);
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| refused(&format!("'{name}' must be a whole number of milliseconds, at least 1")))
}

fn refused(why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("_meta: {why}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorCode, MetaObject};
    use serde_json::json;
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
        ] {
            let error = read_json(meta.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{meta}");
        }
    }
}
