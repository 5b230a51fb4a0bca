//! The outcome of calls to a server.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::time::Duration;
use toolyard::{Call, Effect, ErrorKind, EventKind};

/// CL-1, CL-4: reads of a server overlap, and each result belongs to its own call.
#[tokio::test]
async fn sixty_four_calls_at_once_get_their_own_answers() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let call = |n: u32| Call::new(n.to_string(), "s__echo", json!({"text": n.to_string()}));
    let outcomes = yard.all((0..64).map(call).collect()).await;
    for (n, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), n.to_string());
    }
    yard.servers.shutdown().await;
}

/// CL-4: a server answers the last call first: each call gets its own answer, in the order of the calls.
#[tokio::test]
async fn answers_that_come_out_of_order_find_their_calls() {
    const CALLS: u32 = 16;
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let call =
        |n: u32| Call::new(n.to_string(), "s__last_first", json!({"text": n.to_string(), "of": CALLS}));
    for (n, outcome) in yard.all((0..CALLS).map(call).collect()).await.into_iter().enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), n.to_string());
    }
    yard.servers.shutdown().await;
}

/// V5: the output of a tool that reports failure is kept whole, data included.
#[tokio::test]
async fn a_tool_that_says_no_is_an_execution_error_with_its_content() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let error = yard.call("s__no", json!({})).await.status.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::ExecutionError, "it says no"));
    let output = error.output().unwrap();
    assert_eq!(
        (output.to_text().as_str(), output.structured().as_deref()),
        ("it says no\nfor a reason", Some(&json!({"code": 7})))
    );
    yard.servers.shutdown().await;
}

/// A server's progress is output of its call, in order.
#[tokio::test]
async fn progress_is_told_as_output() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    assert_eq!(yard.text("s__steps", json!({})).await, "done");
    let events = yard.events.lock().unwrap().clone();
    let deltas = events.into_iter().filter_map(|event| match event.kind {
        EventKind::OutputDelta { text } => Some(text),
        _ => None,
    });
    assert_eq!(deltas.collect::<String>(), "1/3 step\n2/3 step\n3/3 step\n");
    yard.servers.shutdown().await;
}

/// SC-4, SC-5: a call that times out or is cancelled is cancelled at the server, too.
#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let short = Call::new("a", "s__hang", json!({})).timeout(Duration::from_millis(100));
    let error = yard.all(vec![short]).await.remove(0).status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Timeout, Effect::Unknown));

    let session = yard.engine.session("t");
    let cancelled = async {
        // The handler has the call when its attempt is announced; the request is then in flight or about to be.
        let attempts = |yard: &Yard| yard.count_events(|kind| matches!(kind, EventKind::Attempt));
        yard.until("the call is made", |yard| attempts(yard) == 2).await;
        session.cancel_calls();
    };
    let call = session.call(Call::new("b", "s__hang", json!({})));
    let (outcome, ()) = tokio::join!(call, cancelled);
    let error = outcome.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Cancelled, Effect::Unknown));
    // Lines keep their order: what was sent before this call has been read.
    assert_eq!(yard.text("s__cancelled", json!({})).await, "2");
    yard.servers.shutdown().await;
}

/// An answer that arrives twice counts once; an answer to no request is ignored.
#[tokio::test]
async fn answers_are_matched_by_their_id() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    assert_eq!(yard.text("s__twice", json!({})).await, "first");
    let lost = Call::new("a", "s__wrong_id", json!({})).timeout(Duration::from_millis(200));
    let outcomes = yard.all(vec![lost, Call::new("b", "s__echo", json!({"text": "x"}))]).await;
    assert_eq!(outcomes[0].status.as_ref().unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(outcomes[1].status.as_ref().unwrap().to_text(), "x");
    yard.servers.shutdown().await;
}

/// V4: an answer that makes no sense ends its call, and no other.
#[tokio::test]
async fn an_answer_without_sense_ends_its_call_alone() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let error = yard.call("s__no_sense", json!({})).await.status.unwrap_err();
    assert!(error.message.contains("is not valid") || error.kind == ErrorKind::OutputInvalid, "{error:?}");
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}

/// If an engine has no clients, a server that asks learns that, even if it may ask.
#[tokio::test]
async fn without_a_client_nobody_is_asked() {
    let yard = Yard::open(vec![odd("s", "well").prefix("").may_ask(true)]).await;
    let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let answer = yard.text("asks", json!({"method": "elicitation/create", "params": params})).await;
    assert!(answer.contains("servers may not ask questions here"), "{answer}");
    yard.servers.shutdown().await;
}
