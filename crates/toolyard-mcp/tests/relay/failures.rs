//! What becomes of the output of a tool that reports failure.

use crate::relay::yard::{SECRET, Yard};
use serde_json::{Value, json};

/// An answer with a part of every kind.
fn no() -> Value {
    let page = json!({"uri": "file:///p", "mimeType": "text/plain", "text": "a page"});
    let bytes = json!({"uri": "file:///b", "mimeType": "application/zip", "blob": "UEsFBg=="});
    json!({
        "content": [
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "text", "text": "it says no\nfor a reason", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///l", "name": "l", "title": "a link"},
            {"type": "text", "text": "and more"},
            {"type": "resource", "resource": page},
            {"type": "resource", "resource": bytes},
        ],
        "structuredContent": {"code": 7, "why": ["a", {"b": null}]},
        "isError": true,
    })
}

/// V5: all of it reaches the client, each part in its form and place, with the code for machines beside it.
#[tokio::test]
async fn nothing_of_a_failure_is_lost_on_its_way() {
    let yard = Yard::open(false).await;
    let mut client = yard.client(json!({})).await;
    client.call(1, "no_whole", no(), json!({})).await;
    let result = client.answer(1).await["result"].clone();
    for field in ["content", "structuredContent", "isError"] {
        assert_eq!(result[field], no()[field], "{field}");
    }
    let error = &result["_meta"]["toolyard/error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!("execution_error"), &json!("failed")));
    yard.servers.shutdown().await;
}

/// V5, I15: secrets are the exception: they are redacted in every part.
#[tokio::test]
async fn a_secret_in_a_failure_is_not_shown() {
    let yard = Yard::open(false).await;
    let mut client = yard.client(json!({})).await;
    // The server joins the two halves.
    let (first, last) = SECRET.split_at(7);
    let mut said = no();
    said["first"] = json!(first);
    said["last"] = json!(last);
    client.call(1, "no_secret", said, json!({})).await;
    let result = client.answer(1).await["result"].clone();
    let shown = result.to_string();
    assert!(!shown.contains(SECRET), "{shown}");
    assert_eq!(result["content"][1]["text"], "it is [redacted]");
    assert_eq!(result["content"][5]["resource"]["text"], "[redacted]");
    assert_eq!(result["structuredContent"], json!({"secret": "[redacted]"}));
    yard.servers.shutdown().await;
}
