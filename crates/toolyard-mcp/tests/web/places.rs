//! Long answers of several servers at once.

use crate::web::{
    server::{Asked, Reply, Web, pieces, plain},
    yard::Yard,
};
use futures::{FutureExt, StreamExt, stream};
use hyper::body::Bytes;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use toolyard::{Call, ErrorKind};

/// Size of a long answer, in pieces of 1 MiB: more than what fits between a server and a client that does not read.
const PIECES: usize = 12;

/// The start of a long answer, and its end, if it has one. `taken` counts the pieces that were taken.
fn long(asked: &Asked, kind: &str, has_end: bool, taken: &Arc<AtomicUsize>) -> Reply {
    let data = if kind == "text/event-stream" { "data: " } else { "" };
    let id = &asked.message["id"];
    let begin = format!(
        "{data}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\""
    );
    let taken = taken.clone();
    let text = stream::iter(0..PIECES).map(move |_| {
        taken.fetch_add(1, Ordering::Relaxed);
        Bytes::from(vec![b'x'; 1 << 20])
    });
    let all = stream::iter([Bytes::from(begin)]).chain(text);
    match has_end {
        true => pieces(kind, all.chain(stream::iter([Bytes::from("\"}]}}\n\n")]))),
        false => pieces(kind, all.chain(stream::pending())),
    }
}

/// A server whose `odd` has a long answer.
async fn server(kind: &'static str, has_end: bool) -> (Web, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let web = Web::open(move |asked| match asked.tool() {
        "odd" => long(asked, kind, has_end, &count),
        _ => plain(asked),
    });
    (web.await, taken)
}

/// A long answer is not read further while others take all places, be they plain or events; short ones are. When one of
/// the others ends, it is.
#[tokio::test]
async fn long_answers_wait_for_a_place_and_short_ones_do_not() {
    let kinds = ["application/json", "text/event-stream"];
    for last in kinds {
        let mut servers = Vec::new();
        for kind in [kinds[0], kinds[1], kinds[0], kinds[1]] {
            servers.push(server(kind, false).await);
        }
        let (web, _) = server(last, true).await;
        let mut configs: Vec<_> =
            servers.iter().enumerate().map(|(n, (web, _))| web.config(&format!("s{n}"))).collect();
        configs.push(web.config("last"));
        let yard = Yard::open(configs).await;
        let sessions: Vec<_> = (0..servers.len()).map(|n| yard.engine.session(format!("t{n}"))).collect();
        let held: Vec<_> = sessions
            .iter()
            .enumerate()
            .map(|(n, session)| {
                let (session, call) = (session.clone(), Call::new("a", format!("s{n}__odd"), json!({})));
                tokio::spawn(async move { session.call(call).await })
            })
            .collect();
        let is_taken = |_: &Yard| servers.iter().all(|(_, taken)| taken.load(Ordering::Relaxed) == PIECES);
        yard.until("all places are taken", is_taken).await;
        let session = yard.engine.session("last");
        let mut waits = Box::pin(session.call(Call::new("a", "last__odd", json!({}))));
        for _ in 0..50 {
            assert!(waits.as_mut().now_or_never().is_none(), "there was a fifth place");
            assert_eq!(yard.text("last__echo", json!({})).await, "echo");
        }
        sessions[0].cancel_calls();
        assert_eq!(waits.await.status.unwrap().to_text().len(), PIECES << 20);
        for session in &sessions {
            session.cancel_calls();
        }
        for held in held {
            assert_eq!(held.await.unwrap().status.unwrap_err().kind, ErrorKind::Cancelled);
        }
        yard.servers.shutdown().await;
    }
}
