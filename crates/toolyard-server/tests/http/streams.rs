//! Responses that are passed on while the model writes them.

use crate::yard::{CALLER, Yard};
use futures::{StreamExt as _, channel::mpsc};
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};
use std::convert::Infallible;

/// A model's stream, piece by piece.
struct Model {
    pieces: mpsc::UnboundedSender<String>,
}

impl Model {
    fn new() -> (Self, Body) {
        let (pieces, written) = mpsc::unbounded();
        (Self { pieces }, Body::wrap_stream(written.map(Ok::<String, Infallible>)))
    }

    fn calls(&self, index: u32, name: &str, arguments: &str) {
        let id = format!("call_{index}");
        let start = json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}});
        let delta = json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": arguments}});
        let stop = json!({"type": "content_block_stop", "index": index});
        for event in [start, delta, stop] {
            self.pieces
                .unbounded_send(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
                .unwrap();
        }
    }

    fn begins_call(&self, index: u32, name: &str) {
        let block = json!({"type": "tool_use", "id": format!("call_{index}"), "name": name, "input": {}});
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.pieces.unbounded_send(format!("event: content_block_start\ndata: {start}\n\n")).unwrap();
    }

    fn begins(&self) {
        let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
        self.pieces.unbounded_send(format!("event: message_start\ndata: {start}\n\n")).unwrap();
    }

    fn ends(&self) {
        let stop = json!({"type": "message_stop"});
        self.pieces.unbounded_send(format!("event: message_stop\ndata: {stop}\n\n")).unwrap();
        self.pieces.close_channel();
    }
}

async fn next(response: &mut Response, text: &mut String) -> (String, Value) {
    loop {
        if let Some((block, rest)) = text.split_once("\n\n") {
            let (block, rest) = (block.to_owned(), rest.to_owned());
            *text = rest;
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
            let Some(data) = field("data:") else { continue };
            return (field("event:").unwrap_or_default().to_owned(), serde_json::from_str(data).unwrap());
        }
        let bytes = response.chunk().await.unwrap().expect("the answer goes on");
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
}

async fn begin(yard: &Yard) -> (Model, Response) {
    let (model, body) = Model::new();
    model.begins();
    let request = yard.request(CALLER, Method::POST, "/sessions/a/turns?from=anthropic");
    let response = request.header("content-type", "text/event-stream").body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    (model, response)
}

/// CL-5: a call runs while the model writes the next one; the turn's number comes first and its results last.
#[tokio::test]
async fn a_call_runs_while_the_next_is_written() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (model, mut response) = begin(&yard).await;
    let mut text = String::new();
    assert_eq!(next(&mut response, &mut text).await, ("turn".into(), json!({"session": "a", "turn": 1})));
    model.calls(0, "echo", "{\"x\":1}");
    let (kind, call) = next(&mut response, &mut text).await;
    assert_eq!((kind.as_str(), &call["call_id"]), ("call", &json!("call_0")));
    loop {
        let turn = yard.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
        assert_eq!(turn["state"], "streaming");
        if turn["finished"] == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    model.calls(1, "echo", "{\"x\":2}");
    model.ends();
    assert_eq!(next(&mut response, &mut text).await.0, "call");
    let (kind, turn) = next(&mut response, &mut text).await;
    assert_eq!((kind.as_str(), &turn["state"]), ("results", &json!("ended")));
    assert_eq!(turn["results"]["content"][1]["tool_use_id"], "call_1", "{turn}");
    yard.close().await;
}

/// CL-8: a turn whose stream broke off goes on when its response is sent whole: what has run does not run again.
#[tokio::test]
async fn a_broken_stream_goes_on_when_it_is_sent_whole() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (model, mut response) = begin(&yard).await;
    let mut text = String::new();
    next(&mut response, &mut text).await;
    model.calls(0, "gate", "{\"x\":1}");
    next(&mut response, &mut text).await;
    model.begins_call(1, "echo");
    model.pieces.close_channel(); // within a call
    let (kind, _) = next(&mut response, &mut text).await;
    assert_eq!(kind, "broken");
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/1").await.with(200)["state"], "broken");
    let whole = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "call_0", "name": "gate", "input": {"x": 1}},
        {"type": "tool_use", "id": "call_1", "name": "echo", "input": {"x": 2}},
    ]});
    let put = yard.request(CALLER, Method::PUT, "/sessions/a/turns/1?wait=60").json(&whole);
    yard.gate.add_permits(1); // for one call alone
    let turn = yard.sent(put).await.with(200);
    assert_eq!((&turn["state"], &turn["calls"]), (&json!("ended"), &json!(2)), "{turn}");
    let results = &yard.ended("a", 1).await["results"]["results"];
    assert!(results[0]["status"] == "ok" && results[1]["status"] == "ok", "{results}");
    let again = yard.sent(yard.request(CALLER, Method::PUT, "/sessions/a/turns/1").json(&whole)).await;
    assert_eq!(again.problem(409), "not_broken");
    yard.close().await;
}

/// HT-2: what has come of a stream runs on when its sender is gone.
#[tokio::test]
async fn what_has_come_runs_on_without_its_sender() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (model, mut response) = begin(&yard).await;
    let mut text = String::new();
    next(&mut response, &mut text).await;
    model.calls(0, "gate", "{}");
    next(&mut response, &mut text).await;
    drop((model, response));
    yard.gate.add_permits(1);
    loop {
        let turn = yard.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
        if turn["outcomes"][0]["success"] == true {
            break;
        }
        tokio::task::yield_now().await;
    }
    yard.close().await;
}

/// CL-8, HT-4: a turn that waits for one whose stream broke off ends with its session.
#[tokio::test]
async fn what_waits_for_a_broken_turn_ends_with_its_session() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (model, mut response) = begin(&yard).await;
    let mut text = String::new();
    next(&mut response, &mut text).await;
    model.begins_call(0, "echo");
    model.pieces.close_channel();
    assert_eq!(next(&mut response, &mut text).await.0, "broken");
    let batch = json!({"calls": [{"call_id": "1", "name": "echo", "arguments": {}}]});
    yard.post(CALLER, "/sessions/a/turns?after=1", batch).await.with(202);
    yard.delete(CALLER, "/sessions/a").await.with(202);
    while yard.post(CALLER, "/sessions", json!({"id": "a"})).await.status != 201 {
        tokio::task::yield_now().await;
    }
    yard.close().await;
}

/// HT-2, HT-3: what only a whole response can have is refused with one that is streamed, and with one that goes on.
#[tokio::test]
async fn a_stream_waits_for_no_other_turn() {
    let yard = Yard::open().await;
    yard.session("a").await;
    for query in ["after=1", "cancel_on_disconnect=true"] {
        let turn = yard.turn("a", json!([{"call_id": "1", "name": "echo", "arguments": {}}])).await;
        let stream = yard.request(CALLER, Method::POST, &format!("/sessions/a/turns?{query}"));
        let stream = stream.header("content-type", "text/event-stream").body("data: [DONE]\n\n");
        assert_eq!(yard.sent(stream).await.problem(400), "malformed");
        let put = yard.request(CALLER, Method::PUT, &format!("/sessions/a/turns/{turn}?{query}"));
        assert_eq!(yard.sent(put.json(&json!({}))).await.problem(400), "malformed");
    }
    yard.close().await;
}
