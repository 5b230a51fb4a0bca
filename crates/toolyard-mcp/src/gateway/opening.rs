//! Reduces `initialize` to what is used of it before it is parsed and kept: a session lasts long, and what its client
//! says of itself lasts with it.

use rmcp::model::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};

/// The method.
pub(super) const METHOD: &str = "initialize";

/// Maximum number of characters of each text that is kept.
const TEXT_MAX: usize = 128;

#[derive(Deserialize)]
struct Opening {
    params: Params,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    protocol_version: String,
    capabilities: Capabilities,
    client_info: ClientInfo,
}

#[derive(Deserialize)]
struct ClientInfo {
    name: String,
    version: String,
}

/// The capabilities that are known. Of each only whether it is there is kept.
#[derive(Deserialize)]
struct Capabilities {
    roots: Option<IgnoredAny>,
    sampling: Option<Sampling>,
    elicitation: Option<Elicitation>,
}

#[derive(Deserialize)]
struct Sampling {
    tools: Option<IgnoredAny>,
    context: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Elicitation {
    form: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
}

/// The request with the known capabilities and the names of the client only; `None` if its parameters are not valid.
pub(super) fn reduced(text: &str, id: &RequestId) -> Option<String> {
    let Opening { params } = serde_json::from_str(text).ok()?;
    let Capabilities { roots, sampling, elicitation } = params.capabilities;
    let capabilities = declared([
        ("roots", roots.map(|_| json!({}))),
        ("sampling", sampling.map(|known| present([("tools", known.tools), ("context", known.context)]))),
        ("elicitation", elicitation.map(|known| present([("form", known.form), ("url", known.url)]))),
    ]);
    let client = json!({"name": cut(params.client_info.name), "version": cut(params.client_info.version)});
    let params = json!({
        "protocolVersion": cut(params.protocol_version),
        "capabilities": capabilities,
        "clientInfo": client,
    });
    Some(json!({"jsonrpc": "2.0", "id": id, "method": METHOD, "params": params}).to_string())
}

fn present<const N: usize>(fields: [(&str, Option<IgnoredAny>); N]) -> Value {
    declared(fields.map(|(name, field)| (name, field.map(|_| json!({})))))
}

fn declared<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(name, field)| Some((name.to_owned(), field?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn cut(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        None => text,
        // A copy, because a shortened text would keep its memory.
        Some((end, _)) => text[..end].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(params: &Value) -> Option<Value> {
        let text = json!({"jsonrpc": "2.0", "id": 7, "method": METHOD, "params": params}).to_string();
        reduced(&text, &RequestId::Number(7)).map(|text| serde_json::from_str(&text).unwrap())
    }

    /// What is not known, and what is long, is not kept.
    #[test]
    fn only_what_is_known_is_kept() {
        let long = "é".repeat(1000);
        let params = json!({
            "_meta": {"a": [1, 2, 3]},
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "experimental": {"a": {"b": [{}, {}, {}]}},
                "extensions": {"io.example/x": {"y": 1}},
                "roots": {"listChanged": true},
                "sampling": {"tools": {"deep": [[]]}},
                "elicitation": {"form": {"schemaValidation": true}, "other": {}},
                "unheard": {"of": 1},
            },
            "clientInfo": {"name": long, "version": "1", "title": long, "icons": [{"src": long}]},
        });
        let expect = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}}},
            "clientInfo": {"name": "é".repeat(TEXT_MAX), "version": "1"},
        });
        assert_eq!(reduce(&params).unwrap()["params"], expect);
        assert_eq!(reduce(&params).unwrap()["id"], 7);
    }

    /// What a client does not declare stays undeclared.
    #[test]
    fn what_is_absent_stays_absent() {
        let params = |capabilities: Value| json!({"protocolVersion": "v", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}});
        let kept = |capabilities| reduce(&params(capabilities)).unwrap()["params"]["capabilities"].clone();
        assert_eq!(kept(json!({})), json!({}));
        assert_eq!(kept(json!({"sampling": null, "elicitation": {}})), json!({"elicitation": {}}));
        assert_eq!(reduce(&params(json!({"sampling": 5}))), None);
        assert_eq!(reduce(&json!(["v", {}, {}])), None);
        assert_eq!(reduce(&json!({"protocolVersion": "v", "capabilities": {}})), None);
    }
}
