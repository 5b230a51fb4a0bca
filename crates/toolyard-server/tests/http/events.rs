//! The stream of events, and how it is resumed.

use crate::{
    sockets::Socket,
    yard::{APPROVER, CALLER, Yard, call},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A reader of server-sent events.
pub(crate) struct Events {
    response: Response,
    text: String,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn open(yard: &Yard, secret: &str, path: &str, after: Option<&str>) -> Self {
        let mut request = yard.request(secret, Method::GET, path);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        Self::of(request.send().await.unwrap())
    }

    /// Reads on from an answer that is a stream.
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    pub(crate) async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
                // A comment has no data; what an MCP client may resume from has none of its own.
                let Some(data) = field("data:").filter(|data| !data.is_empty()) else { continue };
                let data = serde_json::from_str(data).unwrap();
                let (kind, id) = (field("event:").unwrap_or("message"), field("id:").unwrap_or_default());
                return Some(Sent { kind: kind.to_owned(), id: id.to_owned(), data });
            }
            let bytes = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

async fn one_call(yard: &Yard, session: &str) {
    yard.post(CALLER, &format!("/sessions/{session}/calls"), call("1", "echo", json!({}))).await.with(200);
}

/// SM-9: a stream that is cut at random places and resumed loses and repeats nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_resumed_without_gap_or_repeat() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let calls = 300;
    for _ in 0..calls {
        one_call(&yard, "a").await;
    }
    let (mut after, mut read, mut cuts, mut dice) = ("0".to_owned(), Vec::new(), 0, 7_u32);
    while read.len() < calls * 6 {
        let mut events = Events::open(&yard, CALLER, "/sessions/a/events", Some(&after)).await;
        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12345);
        for _ in 0..(dice >> 16) % 4 {
            let event = events.next().await.unwrap();
            assert_eq!(event.kind, "message", "{event:?}");
            read.push(event.data["seq"].as_u64().unwrap());
            after = event.id;
        }
        cuts += 1;
    }
    assert!(cuts > 1000, "{cuts}");
    assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>());
    yard.close().await;
}

/// SM-9: events are told as they happen, of all sessions or of one; kinds can be chosen; a last one says why it ends.
#[tokio::test]
async fn events_are_told_as_they_happen() {
    let yard = Yard::open().await;
    let mut all = Events::open(&yard, APPROVER, "/events?kinds=session.opened,tool.completed", None).await;
    yard.session("a").await;
    yard.session("b").await;
    one_call(&yard, "b").await;
    for (kind, session) in [("session.opened", "a"), ("session.opened", "b"), ("tool.completed", "b")] {
        let event = all.next().await.unwrap();
        assert_eq!((&event.data["event"], &event.data["session"]), (&json!(kind), &json!(session)));
    }
    let mut own = Events::open(&yard, CALLER, "/sessions/b/events", Some("0")).await;
    assert_eq!(own.next().await.unwrap().data["event"], "session.opened");
    yard.stop.cancel();
    assert_eq!(all.next().await.unwrap().kind, "end");
    assert!(all.next().await.is_none());
}

/// SM-9: a cursor of another life, and one that is too old, are told from where it goes on.
#[tokio::test]
async fn a_reader_that_has_missed_something_is_told() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let mut anew = Events::open(&yard, CALLER, "/sessions/a/events", Some("0123456789abcdef.5")).await;
    let reset = anew.next().await.unwrap();
    assert_eq!(reset.kind, "reset");
    assert!(reset.data["from"].as_str().unwrap().ends_with(".0"));
    assert_eq!(anew.next().await.unwrap().data["event"], "session.opened");
    let bad = yard.sent(yard.request(CALLER, Method::GET, "/sessions/a/events?after=nonsense")).await;
    assert_eq!(bad.problem(400), "malformed");
    let unknown = yard.get(CALLER, "/sessions/a/events?kinds=tool.completed,tool.done").await;
    assert_eq!(unknown.problem(400), "malformed");
    assert!(unknown.body["detail"].as_str().unwrap().contains("'tool.done'"), "{unknown:?}");
    yard.close().await;
}

/// SM-9, HT-10: of a session's events the latest are kept; whoever comes back too late is told from where it goes on.
#[tokio::test]
async fn a_reader_that_is_too_late_is_told() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let mut first = Events::open(&yard, CALLER, "/sessions/a/events", Some("0")).await;
    let cursor = first.next().await.unwrap().id;
    drop(first);
    for _ in 0..10 {
        let calls: Vec<Value> = (0..200).map(|at| call(&at.to_string(), "echo", json!({}))).collect();
        let turn = yard.turn("a", calls.into()).await;
        yard.ended("a", turn).await;
    }
    let mut late = Events::open(&yard, CALLER, "/sessions/a/events", Some(&cursor)).await;
    let reset = late.next().await.unwrap();
    assert_eq!(reset.kind, "reset");
    let from = reset.data["from"].as_str().unwrap().to_owned();
    let position = |cursor: &str| cursor.rsplit_once('.').unwrap().1.parse::<u64>().unwrap();
    let next = late.next().await.unwrap();
    assert!(position(&next.id) > position(&from) && position(&from) > position(&cursor));
    let mut socket = Socket::open(&yard, CALLER, &format!("&session=a&after={cursor}")).await;
    assert_eq!(socket.next().await.unwrap(), json!({"reset": {"from": from}}));
    assert_eq!(socket.next().await.unwrap()["id"], next.id);
    yard.close().await;
}

/// HT-10: a long text of an event is cut, and says how much is missing; the result has all of it.
#[tokio::test]
async fn long_texts_of_events_are_cut() {
    use toolyard::{ToolContext, ToolError, ToolSpec, tool_fn};
    let fails = tool_fn(ToolSpec::read("fails"), |_: Value, cx: ToolContext| async move {
        cx.emit(&"o".repeat(100 << 10));
        Err::<Value, _>(ToolError::execution("m".repeat(100 << 10)))
    });
    let yard = Yard::over(|builder| builder.tool(fails), |options| options).await;
    yard.session("a").await;
    let outcome = yard.post(CALLER, "/sessions/a/calls", call("1", "fails", json!({}))).await.with(200);
    assert!(outcome["error"]["message"].as_str().unwrap().contains(&"m".repeat(100 << 10)));
    let path = "/sessions/a/events?after=0&kinds=tool.output_delta,tool.failed";
    let mut events = Events::open(&yard, CALLER, path, None).await;
    for member in ["text", "message"] {
        let event = events.next().await.unwrap().data;
        let text = event[member].as_str().unwrap_or_else(|| panic!("{event}"));
        assert!(text.len() < (64 << 10) + 40, "{member}: {}", text.len());
        assert!(text.ends_with(" bytes more]"), "{member}: {}", &text[text.len() - 60..]);
    }
    yard.close().await;
}
