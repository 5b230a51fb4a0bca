//! Calls: their order, their keys, their progress and their end.

use super::yard::Yard;
use serde_json::{Value, json};
use std::{collections::HashSet, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard::{ToolContext, ToolError, ToolSpec, tool_fn};

/// CL-8: calls that arrive together reach the serial lease in their order of arrival, although each has its own task
/// and there are several workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_change_things_run_in_the_order_in_which_they_came() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    for n in 1..=200 {
        client.call(n, "write", json!({"n": n}), json!({})).await;
    }
    for n in 1..=200 {
        assert_eq!(client.answer(n).await["result"]["structuredContent"], json!({"n": n}));
    }
    let expect: Vec<String> = (1..=200).map(|n| format!("write {{\"n\":{n}}}")).collect();
    assert_eq!(*yard.done.lock().unwrap(), expect);
}

/// CL-6: reads of one client that arrive together run together, as many as the pool has permits.
#[tokio::test(start_paused = true)]
async fn reads_that_came_together_run_together() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    let begun = tokio::time::Instant::now();
    for n in 1..=40 {
        client.call(n, "slow", json!({"secs": 10}), json!({})).await;
    }
    for n in 1..=40 {
        assert_eq!(client.answer(n).await["result"]["content"][0]["text"], "slept");
    }
    // Virtual time: two rounds of twenty.
    assert_eq!(begun.elapsed().as_secs(), 20);
}

/// ID-1, ID-3: of several calls with one key one runs, and the others say that they share its result.
#[tokio::test(start_paused = true)]
async fn calls_with_one_key_run_once() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    let key = json!({"toolyard/idempotency_key": "order-17"});
    client.call(1, "pay", json!({}), key.clone()).await;
    client.call(2, "pay", json!({}), key.clone()).await;
    let dedupe = |answer: Value| answer["result"]["_meta"]["toolyard/call"]["dedupe"].clone();
    assert_eq!(
        (dedupe(client.answer(1).await), dedupe(client.answer(2).await)),
        (json!("fresh"), json!("joined"))
    );
    client.call(3, "pay", json!({}), key.clone()).await;
    assert_eq!(dedupe(client.answer(3).await), "replayed");
    client.call(4, "pay", json!({"other": 1}), key).await;
    let error = client.answer(4).await["result"]["_meta"]["toolyard/error"].clone();
    assert_eq!(error["code"], "key_mismatch");
    assert_eq!(yard.done.lock().unwrap().len(), 1);
}

/// V3: timeout and deadline of a call come from its metadata.
#[tokio::test(start_paused = true)]
async fn a_call_has_the_timeout_that_it_asks_for() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"secs": 60}), json!({"toolyard/deadline_ms": 1000})).await;
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["isError"], true);
    let error = &answer["result"]["_meta"]["toolyard/error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!("deadline_exceeded"), &json!("failed")));
    client.call(2, "slow", json!({}), json!({"toolyard/deadline_ms": -1})).await;
    assert_eq!(client.answer(2).await["error"]["code"], -32602);
}

/// V3, RT-4, V5: a timeout bounds the call with its retries, and the answer says the same to the model and to programs:
/// a call that only reads changed nothing and may be called again, one that does more may have done something.
#[tokio::test(start_paused = true)]
async fn a_timeout_bounds_the_call_with_its_retries() {
    let yard = Yard::open().await;
    let failing = tool_fn(ToolSpec::read("failing"), |(): (), _: ToolContext| async {
        sleep(Duration::from_millis(700)).await;
        Err::<(), _>(ToolError::transient("HTTP 500"))
    });
    yard.engine.registry().register(failing).unwrap();
    let mut client = yard.client().await;
    let cases = [
        ("slow", 1000, 1, "failed", true, "It changed nothing; it may be called again."),
        // The second attempt is cut off where the call's time is over.
        ("failing", 1000, 2, "failed", true, "It changed nothing; it may be called again."),
        ("pay", 500, 1, "unknown", false, "It may have done part of its work; check before you repeat it."),
    ];
    for (id, (tool, limit, attempts, outcome, retryable, advice)) in (1..).zip(cases) {
        let began = Instant::now();
        let arguments = if tool == "failing" { json!({}) } else { json!({"secs": 3600}) };
        client.call(id, tool, arguments, json!({"toolyard/timeout_ms": limit})).await;
        let result = client.answer(id).await["result"].clone();
        assert_eq!(began.elapsed(), Duration::from_millis(limit), "{result}");
        let error = &result["_meta"]["toolyard/error"];
        assert_eq!((&error["code"], &error["attempts"]), (&json!("timeout"), &json!(attempts)), "{result}");
        assert_eq!(
            (&error["outcome"], &error["retryable"]),
            (&json!(outcome), &json!(retryable)),
            "{result}"
        );
        assert!(result["content"][0]["text"].as_str().unwrap().ends_with(advice), "{result}");
    }
}

/// V4: a bad request is a protocol error, and bad arguments are a result for the model.
#[tokio::test(start_paused = true)]
async fn bad_requests_are_errors_and_bad_arguments_are_results() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "nope", json!({}), json!({})).await;
    let error = client.answer(1).await["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["toolyard/error"]["code"]),
        (&json!(-32602), &json!("not_found"))
    );
    client.request(2, "tools/call", json!({"name": "slow", "arguments": "text"})).await;
    client.request(3, "tools/call", json!({"arguments": {}})).await;
    client.request(4, "tools/list", json!({"cursor": "made up"})).await;
    for id in 2..=4 {
        assert_eq!(client.answer(id).await["error"]["code"], -32602, "{id}");
    }
    client.request(5, "resources/read", json!({"uri": "file:///x"})).await;
    assert_eq!(client.answer(5).await["error"]["code"], -32601);
    // The connection still works.
    client.request(6, "tools/list", json!({})).await;
    let tools = client.answer(6).await["result"]["tools"].clone();
    let names: HashSet<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, HashSet::from(["ask", "pay", "slow", "write"]));
}

/// V4: a tool that is removed between two attempts of a call, or while the call waits for its turn, did exist when it
/// was called: the outcome is a result.
#[tokio::test(start_paused = true)]
async fn a_tool_that_goes_away_leaves_results() {
    let yard = Yard::open().await;
    let flaky = tool_fn(ToolSpec::read("flaky"), |(): (), _: ToolContext| async {
        Err::<(), _>(ToolError::transient("HTTP 500"))
    });
    yard.engine.registry().register(flaky).unwrap();
    let mut client = yard.client().await;
    client.call(1, "flaky", json!({}), json!({})).await;
    client.call(2, "pay", json!({}), json!({})).await;
    client.call(3, "pay", json!({}), json!({})).await;
    yard.until("dispatch.retry").await;
    assert!(yard.engine.registry().unregister("flaky") && yard.engine.registry().unregister("pay"));
    for (id, attempts) in [(1, 1), (3, 0)] {
        let answer = client.answer(id).await;
        let error = &answer["result"]["_meta"]["toolyard/error"];
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!((&error["code"], &error["attempts"]), (&json!("not_found"), &json!(attempts)));
    }
    assert_eq!(client.answer(2).await["result"]["isError"], false);
    client.call(4, "flaky", json!({}), json!({})).await;
    assert_eq!(client.answer(4).await["error"]["code"], -32602);
}

/// SC-4: a cancelled call is told to stop, is not answered, and does not affect the others.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_stops_and_is_not_answered() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"secs": 3600}), json!({})).await;
    client.call(2, "slow", json!({"secs": 1}), json!({})).await;
    yard.until("dispatch.attempt").await;
    client.notify("notifications/cancelled", json!({"requestId": 1, "reason": "changed my mind"})).await;
    assert_eq!(client.answer(2).await["result"]["content"][0]["text"], "slept");
    yard.until("tool.failed").await;
    assert_eq!(yard.count("tool.completed"), 1);
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
}

/// A call's output is sent as progress, at a bounded rate, in order and whole, before the result.
#[tokio::test(start_paused = true)]
async fn progress_is_sent_at_a_bounded_rate() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"lines": 100}), json!({"progressToken": "p"})).await;
    client.call(2, "slow", json!({"lines": 100}), json!({})).await;
    client.answer(2).await;
    client.answer(1).await;
    let notices = client.drain_sent().await;
    // A second of virtual time, with at most ten notifications, and one more at the end.
    assert!((2..=12).contains(&notices.len()), "{}", notices.len());
    let (mut text, mut progress) = (String::new(), 0.0);
    for notice in &notices {
        let params = &notice["params"];
        assert_eq!(params["progressToken"], "p");
        assert!(params["progress"].as_f64().unwrap() > progress);
        progress = params["progress"].as_f64().unwrap();
        text.push_str(params["message"].as_str().unwrap());
    }
    let expect: String = (0..100).map(|n| format!("line {n}\n")).collect();
    assert_eq!(text, expect);
}
