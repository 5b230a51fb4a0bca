//! What a person sees of a server's questions: nothing hidden, nothing endless, and a choice goes back as the server
//! wrote it.

use crate::relay::{
    asks::{able, ask, relayed_answer},
    yard::Yard,
};
use serde_json::{Value, json};

fn form(fields: Value) -> Value {
    let schema = json!({"type": "object", "properties": fields});
    json!({"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}})
}

fn prompt(messages: Value) -> Value {
    let params = json!({"messages": messages, "maxTokens": 5, "systemPrompt": "Be\u{202e} brief"});
    json!({"method": "sampling/createMessage", "params": params})
}

fn message(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}

/// PO-4: a person sees the choices without anything hidden in them, and the server gets its own value of the choice.
#[tokio::test]
async fn what_is_seen_is_clean_and_what_is_picked_is_the_servers() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    let hidden = json!({
        "size": {"type": "string", "title": "Si\u{202e}ze", "description": "big\u{1b}[2K?", "enum": ["s\u{200b}", "l"]},
        "mode": {"type": "string", "oneOf": [{"const": "ro", "title": "Read\u{e0041}"}, {"const": "rw", "title": "Write"}]},
    });
    ask(&mut client, 1, form(hidden)).await;
    let question = client.received("elicitation/create").await;
    let shown = json!({
        "size": {"type": "string", "title": "Size", "description": "big[2K?", "enum": ["s", "l"]},
        "mode": {"type": "string", "oneOf": [{"const": "ro", "title": "Read"}, {"const": "rw", "title": "Write"}]},
    });
    assert_eq!(question["params"]["requestedSchema"]["properties"], shown);
    let answer = |size| json!({"action": "accept", "content": {"size": size, "mode": "ro"}});
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer("s")})).await;
    assert_eq!(relayed_answer(&mut client, 1).await, answer("s\u{200b}"));
    yard.servers.shutdown().await;
}

/// A question with choices that look alike, or with too much in it, is not passed on, and the server learns why.
#[tokio::test]
async fn what_is_unfit_to_be_seen_is_refused() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    let long = "x".repeat(64 << 10);
    for (id, question, why) in [
        (
            1,
            form(json!({"a": {"type": "string", "enum": ["yes", "yes\u{2060}"]}})),
            "two choices of a field of the form look alike, or one is invisible",
        ),
        (
            2,
            form(json!({"a\u{202e}": {"type": "string"}})),
            "a field of the form has a name that is too long or has invisible characters",
        ),
        (3, form(json!({"a": {"type": "string", "title": long}})), "the form has more than 65536 bytes"),
        (4, prompt(json!(vec![message("x"); 257])), "the sampling request has more than 256 messages"),
    ] {
        ask(&mut client, id, question).await;
        assert_eq!(relayed_answer(&mut client, id).await, json!({"code": -32602, "message": why}));
    }
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
    yard.servers.shutdown().await;
}

/// A person sees the prompt before a model does: nothing is hidden in it.
#[tokio::test]
async fn nothing_hides_in_a_prompt() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    ask(&mut client, 1, prompt(json!([message("Say\u{e0041} hello\u{1b}")]))).await;
    let request = client.received("sampling/createMessage").await;
    assert_eq!(request["params"]["messages"], json!([message("Say hello")]));
    assert_eq!(request["params"]["systemPrompt"], "Be brief");
    let answer = json!({"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"});
    client.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": answer})).await;
    assert_eq!(relayed_answer(&mut client, 1).await, answer);
    yard.servers.shutdown().await;
}
