//! The outcome of calls to a server over HTTP that answers one of them badly, or not at all.

use crate::web::{
    eras::newer,
    server::{Asked, Reply, Web, flood, json_of, pieces, plain, reply},
    yard::Yard,
};
use futures::{StreamExt, stream};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolyard::{Call, CallError, Effect, ErrorKind};

/// The error of a call that is answered like this, beside calls to the same server and another that are answered well.
pub(crate) async fn failed(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> CallError {
    let (good, web) = (Web::open(plain).await, Web::open(by(answer)).await);
    let yard = Yard::open(vec![good.config("good"), web.config("bad")]).await;
    let odd = Call::new("a", "bad__odd", json!({})).timeout(Duration::from_millis(2_000));
    let calls = vec![odd, Call::new("b", "bad__echo", json!({})), Call::new("c", "good__echo", json!({}))];
    let mut outcomes = yard.all(calls).await;
    for outcome in outcomes.drain(1..) {
        assert_eq!(outcome.status.unwrap().to_text(), "echo");
    }
    assert_eq!(yard.text("bad__echo", json!({})).await, "echo");
    assert_eq!(web.seen.lock().unwrap().iter().filter(|asked| asked.tool() == "odd").count(), 1);
    yard.servers.shutdown().await;
    *outcomes.remove(0).status.unwrap_err()
}

/// A server that answers calls of `odd` like this.
pub(crate) fn by(
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    move |asked| match asked.tool() {
        "odd" => answer(asked),
        _ => plain(asked),
    }
}

fn event(message: &Value) -> Bytes {
    format!("data: {message}\n\n").into()
}

/// V4, V5: a lost answer leaves the outcome unknown, says why, and is not requested again.
#[tokio::test]
async fn an_answer_that_cannot_be_had_leaves_the_outcome_open() {
    for (status, kind, text, why) in [
        (500, "text/plain", &b""[..], "it answered HTTP 500"),
        (404, "text/html", b"<h1>Gone</h1>", "it answered HTTP 404 Not Found: <h1>Gone</h1>"),
        (200, "text/html", b"<h1>Hello</h1>", "it answered with text/html, which is not MCP"),
        (200, "application/json", b"<h1>Hello</h1>", "its answer is not an MCP message"),
        (200, "application/json", b"\"\xff\xfe\"", "its answer is not an MCP message"),
        (200, "text/event-stream", b"data: \xff\xfe\n\n", "its answer cannot be read"),
        (200, "text/event-stream", b": ping\n\n", "it ended its answer before it was complete"),
        (200, "text/event-stream", b"data: <h1>Hello</h1>\n\n", "it ended its answer before it was complete"),
    ] {
        let error = failed(move |_| reply(status, kind, text)).await;
        let said = (error.kind, error.effect, error.retryable);
        assert_eq!(said, (ErrorKind::Transient, Effect::Unknown, false), "{kind} {text:?}: {error:?}");
        assert!(error.message.contains(why), "{kind} {text:?}: {}", error.message);
    }
}

/// An answer that is too large is not read to its end.
#[tokio::test]
async fn a_flood_is_not_taken_in() {
    for (kind, begin, why) in [
        (
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"",
            "its answer has more than 16777216 bytes",
        ),
        ("text/event-stream", "data: ", "it sent an event that is too large"),
    ] {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = taken.clone();
        let error = failed(move |_| flood(kind, begin, &count)).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Unknown), "{error:?}");
        assert!(error.message.contains(why), "{}", error.message);
        assert!(taken.load(Ordering::Relaxed) < 30, "{kind}: {taken:?} MiB");
    }
}

/// SC-5: a call without an answer ends at its timeout, and so does one whose answer has a wrong id.
#[tokio::test]
async fn silence_ends_with_the_calls_time() {
    let error = failed(|_| pieces("text/event-stream", stream::pending())).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Timeout, Effect::Unknown));
    let error = failed(|asked| {
        let mut wrong = asked.result(json!({"content": []}));
        wrong["id"] = json!("for nobody");
        json_of(&wrong)
    })
    .await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Timeout, Effect::Unknown));
}

/// Lives as long as the answer that holds it is being read.
struct Read(Arc<AtomicBool>);

impl Drop for Read {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// SC-4: a cancelled call is cancelled at its server: an older one is notified, a newer one finds its stream closed.
#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_its_server() {
    for (greeted, cancellations) in [(plain as fn(&Asked) -> Reply, 1), (newer, 0)] {
        let is_read = Arc::new(AtomicBool::new(false));
        let seen = is_read.clone();
        let web = Web::open(move |asked| match asked.tool() {
            "odd" => {
                seen.store(true, Ordering::Relaxed);
                let read = Read(seen.clone());
                pieces("text/event-stream", stream::pending().inspect(move |_| _ = &read))
            }
            _ => greeted(asked),
        });
        let web = web.await;
        let yard = Yard::open(vec![web.config("s")]).await;
        let session = yard.engine.session("t");
        let cancel = async {
            yard.until("the call is there", |_| is_read.load(Ordering::Relaxed)).await;
            session.cancel_calls();
        };
        let (outcome, ()) = tokio::join!(session.call(Call::new("a", "s__odd", json!({}))), cancel);
        let error = outcome.status.unwrap_err();
        assert_eq!((error.kind, error.effect), (ErrorKind::Cancelled, Effect::Unknown), "{error:?}");
        yard.until("its stream is closed", |_| !is_read.load(Ordering::Relaxed)).await;
        yard.until("an older one is notified", |_| web.count("notifications/cancelled") == cancellations)
            .await;
        assert_eq!(yard.text("s__echo", json!({})).await, "echo");
        yard.servers.shutdown().await;
        let all = web.seen.lock().unwrap().clone();
        let call = all.iter().find(|asked| asked.tool() == "odd").unwrap();
        let cancelled = all.iter().filter(|asked| asked.what() == "notifications/cancelled");
        let cancelled: Vec<&Value> = cancelled.map(|asked| &asked.message["params"]["requestId"]).collect();
        assert_eq!(cancelled, vec![&call.message["id"]; cancellations]);
    }
}

/// V4: a call that reaches no server did nothing, and says why.
#[tokio::test]
async fn a_call_that_reaches_nobody_did_nothing() {
    let web = Web::open(plain).await;
    let yard = Yard::open(vec![web.config("s")]).await;
    drop(web);
    // The listener closes when its task is dropped.
    tokio::task::yield_now().await;
    let error = yard.call("s__echo", json!({})).await.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Failed), "{error:?}");
    assert!(error.message.contains("it cannot be reached"), "{}", error.message);
    yard.servers.shutdown().await;
}

/// CL-4: an answer that arrives twice counts once.
#[tokio::test]
async fn the_first_answer_counts() {
    let web = Web::open(by(|asked| {
        let text = |text: &str| event(&asked.result(json!({"content": [{"type": "text", "text": text}]})));
        pieces("text/event-stream", stream::iter([text("first"), text("second")]))
    }))
    .await;
    let yard = Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.text("s__odd", json!({})).await, "first");
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    yard.servers.shutdown().await;
}

/// Whatever arrives on the separate stream, however much and for however long, delays no call: neither an event that is
/// too large nor endless notifications.
#[tokio::test]
async fn what_nobody_asked_for_holds_up_nobody() {
    let notice = Bytes::from_static(
        b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
    );
    let endless = move || {
        let notices = stream::repeat(notice.clone()).then(|notice| async {
            tokio::task::yield_now().await;
            notice
        });
        pieces("text/event-stream", notices)
    };
    let taken = Arc::new(AtomicUsize::new(0));
    let large = move || flood("text/event-stream", "data: ", &taken);
    let apart: [(Box<dyn Fn() -> Reply + Send + Sync>, _); 2] =
        [(Box::new(endless), "endless"), (Box::new(large), "large")];
    for (apart, what) in apart {
        let web = Web::open(move |asked| {
            let mut answer = if asked.what() == "GET" { apart() } else { plain(asked) };
            answer.headers_mut().insert("mcp-session-id", "1".parse().unwrap());
            answer
        })
        .await;
        let good = Web::open(plain).await;
        let yard = Yard::open(vec![web.config("bad"), good.config("good")]).await;
        yard.until("the stream is asked for", |_| web.count("GET") > 0).await;
        for _ in 0..20 {
            assert_eq!(yard.text("bad__echo", json!({})).await, "echo");
            assert_eq!(yard.text("good__echo", json!({})).await, "echo");
        }
        assert_eq!(web.count("GET"), 1, "what is {what} is not asked for again");
        yard.servers.shutdown().await;
    }
}

/// A server that has lost its sessions is greeted again; the calls that failed because of that are then made, once, and
/// its current list is taken over.
#[tokio::test]
async fn a_session_that_is_lost_is_made_anew() {
    let is_lost = Arc::new(AtomicBool::new(false));
    let lost = is_lost.clone();
    let sessions = AtomicUsize::new(0);
    let web = Web::open(move |asked| {
        let mut answer = plain(asked);
        match (asked.what(), asked.headers.get("mcp-session-id")) {
            ("initialize", _) => {
                let session = sessions.fetch_add(1, Ordering::Relaxed).to_string();
                answer.headers_mut().insert("mcp-session-id", session.parse().unwrap());
                answer
            }
            (_, Some(session)) if lost.load(Ordering::Relaxed) && session == "0" => {
                reply(404, "text/plain", "")
            }
            ("tools/list", _) if lost.load(Ordering::Relaxed) => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                json_of(&asked.result(json!({"tools": [tool("echo"), tool("new")]})))
            }
            _ => answer,
        }
    })
    .await;
    let yard = Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    is_lost.store(true, Ordering::Relaxed);
    let call = |n: usize| Call::new(n.to_string(), "s__echo", json!({}));
    for outcome in yard.all((0..8).map(call).collect()).await {
        assert_eq!(outcome.status.unwrap().to_text(), "echo");
    }
    assert_eq!(web.count("initialize"), 2);
    yard.until("its list is looked at again", |yard| yard.names() == ["s__echo", "s__new"]).await;
    yard.servers.shutdown().await;
}
