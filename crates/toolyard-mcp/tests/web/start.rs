//! Servers that cannot be used: each says why, in bounded time and memory, and does not affect another.

use crate::web::server::{Asked, Reply, Web, flood, json_of, pieces, plain, reply};
use futures::{StreamExt, stream};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};
use toolyard_mcp::{ServerConfig, Servers, StartError};

/// The reason why a server cannot be used, while another one can.
async fn refused(config: ServerConfig) -> String {
    let good = Web::open(plain).await;
    let bad = config.name().to_owned();
    let servers = Servers::start(vec![good.config("good"), config.clone().required(false)]).await.unwrap();
    assert_eq!(servers.tools().len(), 2, "those of the other server are there");
    servers.shutdown().await;
    match Servers::start(vec![config]).await {
        Err(StartError::Server { server, why }) if server == bad => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was started"),
    }
}

async fn refused_by(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> String {
    let web = Web::open(answer).await;
    refused(web.config("bad")).await
}

/// If a server's answer is not MCP, the error says what it is.
#[tokio::test]
async fn what_is_not_mcp_is_reported() {
    for (status, kind, text, why) in [
        (401, "text/plain", "who are you", "it answered HTTP 401 Unauthorized: who are you"),
        (403, "text/plain", "", "it answered HTTP 403 Forbidden"),
        (404, "text/html", "<h1>Not here</h1>", "it answered HTTP 404 Not Found: <h1>Not here</h1>"),
        (405, "text/plain", "", "it answered HTTP 405"),
        (500, "text/html", "<h1>Oh</h1>", "it answered HTTP 500"),
        (503, "application/json", "{}", "it answered HTTP 503"),
        (302, "text/plain", "", "it answered HTTP 302"),
        (
            200,
            "text/html",
            "<h1>Hello</h1>",
            "it answered with text/html, which is not MCP: is this its URL?",
        ),
        (200, "application/json", "<h1>Hello</h1>", "its answer is not an MCP message"),
        (200, "application/json", "\u{fffd}", "its answer is not an MCP message"),
        (200, "application/json", "{\"id\":1}", "its answer is not an MCP message"),
        (
            200,
            "text/event-stream",
            "data: <h1>Hello</h1>\n\n",
            "it sent something that is not an MCP message",
        ),
        (200, "text/event-stream", "", "it ended its answer before it was complete"),
        (204, "text/plain", "", "its answer is empty"),
    ] {
        let said = refused_by(move |_| reply(status, kind, text)).await;
        assert!(said.contains(why), "{status} {kind} {text}: {said}");
    }
    let invalid = refused_by(|_| reply(200, "application/json", &b"\xff\xfe"[..])).await;
    assert!(invalid.contains("its answer is not an MCP message"), "{invalid}");
    let invalid = refused_by(|_| reply(200, "text/event-stream", &b"data: \xff\xfe\n\n"[..])).await;
    assert!(invalid.contains("its answer cannot be read: utf8"), "{invalid}");
}

/// A server that wants a token is reported as such.
#[tokio::test]
async fn a_server_that_wants_a_token_says_so() {
    let said = refused_by(|_| {
        let mut reply = reply(401, "text/plain", "");
        reply.headers_mut().insert("www-authenticate", "Bearer realm=\"tools\"".parse().unwrap());
        reply
    })
    .await;
    assert_eq!(said, "its token is missing or not valid (HTTP 401: Bearer realm=\"tools\")");
}

/// An answer that is too large, in whatever form, is not read to its end.
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
        let said = refused_by(move |asked| match asked.what() {
            "initialize" => flood(kind, begin, &count),
            _ => plain(asked),
        })
        .await;
        assert!(said.contains(why), "{kind}: {said}");
        let taken = taken.load(Ordering::Relaxed);
        // Twice, because it is also started beside the other server. Bytes in sockets and buffers count as taken, too.
        assert!(taken < 2 * 30, "{kind}: {taken} MiB");
    }
    let said = refused_by(|_| reply(500, "text/html", vec![b'x'; 100 << 20])).await;
    assert!(said.contains("it answered HTTP 500"), "{said}");
}

/// A server that never answers, in whatever way, is waited for up to its time limit.
#[tokio::test]
async fn silence_is_bounded() {
    fn never(kind: &'static str) -> Reply {
        pieces(kind, stream::pending())
    }
    let comments = || {
        let ping = stream::repeat(Bytes::from_static(b": ping\n\n"));
        pieces(
            "text/event-stream",
            ping.then(|ping| async {
                tokio::task::yield_now().await;
                ping
            }),
        )
    };
    type Answer = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;
    let all: [Answer; 4] = [
        Box::new(|_| never("application/json")),
        Box::new(|_| never("text/event-stream")),
        Box::new(move |_| comments()),
        Box::new(
            |asked| if asked.what() == "tools/list" { never("text/event-stream") } else { plain(asked) },
        ),
    ];
    for (n, answer) in all.into_iter().enumerate() {
        let web = Web::open(answer).await;
        let said = refused(web.config("bad").startup_timeout(Duration::from_millis(300))).await;
        assert_eq!(said, "it was not ready within 300ms", "{n}");
    }
    // A server that accepts the connection and does nothing else.
    let web = Web::behind(plain, |stream| async {
        let _held = stream;
        std::future::pending::<Option<tokio::net::TcpStream>>().await
    })
    .await;
    let said = refused(web.config("bad").startup_timeout(Duration::from_millis(300))).await;
    assert_eq!(said, "it was not ready within 300ms");
    // A server that hangs up.
    let web = Web::behind(plain, |_| async { None::<tokio::net::TcpStream> }).await;
    let said = refused(web.config("bad")).await;
    assert!(said.starts_with("it cannot be reached: "), "{said}");
}

/// A server that redirects in a circle is given up; redirects within a server are followed.
#[tokio::test]
async fn redirects_end() {
    let to = |place: String| {
        let mut reply = reply(307, "text/plain", "");
        reply.headers_mut().insert("location", place.parse().unwrap());
        reply
    };
    let said = refused_by(move |_| to("/mcp".to_owned())).await;
    assert_eq!(said, "it redirects more than 5 times in a row");

    let web = Web::open(move |asked| match asked.path.as_str() {
        "/mcp" => to("/there".to_owned()),
        _ => plain(asked),
    })
    .await;
    let servers = Servers::start(vec![web.config("moved")]).await.unwrap();
    assert_eq!(servers.tools().len(), 2);
    servers.shutdown().await;
}

/// Another server never sees the token, the headers or the message, whichever server redirects to it.
#[tokio::test]
async fn a_redirect_elsewhere_is_not_followed() {
    let other = Web::open(plain).await;
    let place = other.url();
    let web = Web::open(move |_| {
        let mut reply = reply(308, "text/plain", "");
        reply.headers_mut().insert("location", place.parse().unwrap());
        reply
    })
    .await;
    let said = refused(web.config("bad").bearer("token-1").secret_header("x-key", "key-2")).await;
    let there =
        format!("it redirects to http://127.0.0.1:{}, another server, which is not followed", other.port);
    assert_eq!(said, there);
    assert!(other.seen.lock().unwrap().is_empty());
    let seen = web.seen.lock().unwrap();
    assert!(seen.iter().all(|asked| asked.headers["authorization"] == "Bearer token-1"));
    assert!(seen.iter().all(|asked| asked.headers["x-key"] == "key-2"));
}

/// An endless list, and an answer that is not a list.
#[tokio::test]
async fn lists_are_bounded() {
    type List = fn(&Asked) -> Value;
    let lists: [(List, &str); 3] = [
        (
            |asked| {
                let page =
                    asked.message["params"]["cursor"].as_str().unwrap_or("0").parse::<u32>().unwrap() + 1;
                json!({"tools": [], "nextCursor": page.to_string()})
            },
            "more than 64 pages",
        ),
        (|_| json!({"tools": [], "nextCursor": "again"}), "its list of tools repeats a page"),
        (|_| json!({"tools": "none"}), "its answer is not a list of tools"),
    ];
    for (list, why) in lists {
        let said = refused_by(move |asked| match asked.what() {
            "tools/list" => json_of(&asked.result(list(asked))),
            _ => plain(asked),
        })
        .await;
        assert!(said.contains(why), "{said}");
    }
    let said = refused_by(|asked| match asked.what() {
        "tools/list" => reply(500, "text/plain", ""),
        _ => plain(asked),
    })
    .await;
    assert_eq!(said, "listing its tools failed: it answered HTTP 500");
}

/// A bad entry does not affect the others, invisible characters are removed, and network references are not fetched.
#[tokio::test]
async fn a_bad_entry_costs_itself() {
    let elsewhere = Web::open(plain).await;
    let link = elsewhere.url();
    let web = Web::open(move |asked| match asked.what() {
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"a": {"$ref": link}}});
            let tools = json!([
                {"name": "nameless but for this"},
                {"inputSchema": {"type": "object"}},
                {"name": "linked", "inputSchema": schema},
                {"name": "good", "description": "a\u{1b}[2Jb\u{7}", "inputSchema": {"type": "object"}},
            ]);
            json_of(&asked.result(json!({ "tools": tools })))
        }
        _ => plain(asked),
    })
    .await;
    let yard = crate::web::yard::Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.names(), ["s__good"]);
    assert_eq!(yard.engine.registry().get("s__good").unwrap().spec().description, "a[2Jb");
    let refused = yard.servers.status().remove(0).refused;
    let names: Vec<&str> = refused.iter().map(|refused| refused.tool.as_str()).collect();
    assert_eq!(names, ["s__nameless but for this", "number 2", "s__linked"]);
    assert!(elsewhere.seen.lock().unwrap().is_empty());
    yard.servers.shutdown().await;
}
