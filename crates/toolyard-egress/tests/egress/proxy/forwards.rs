//! Plain HTTP to hosts that are granted.

use super::{
    door::{Open, read_all, read_head},
    tunnels::open,
};
use crate::server::{Server, reply};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response,
    body::{Bytes, Frame},
};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, mpsc::unbounded_channel},
};
use toolyard_egress::{Addresses, Door, Egress, Proxy, Verdict};

/// SB-10: a request for a whole URL is handed on to a granted host, without what is about its connection, and its
/// response back.
#[tokio::test]
async fn a_request_is_handed_on() {
    let server = Server::open(|asked| {
        let mut answer = reply(201, asked.body.clone());
        for (name, value) in [("x-mine", "1"), ("keep-alive", "5"), ("set-cookie", "a=b")] {
            answer.headers_mut().insert(name, value.parse().unwrap());
        }
        answer
    })
    .await;
    let mut proxy = open(Addresses::Any).await;
    let answer = proxy
        .ask(format!(
            "POST http://TOOLS.example:{}/x/../y?z=%20 HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 5\r\n\
             Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: Basic x\r\nProxy-Connection: close\r\n\
             Upgrade: h2c\r\nTE: trailers\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer mine\r\n\r\nhello",
            server.port
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(answer.contains("x-mine: 1\r\n") && answer.contains("set-cookie: a=b\r\n"), "{answer}");
    assert!(!answer.contains("keep-alive") && !answer.contains("proxy-status"), "{answer}");
    let asked = server.only();
    assert_eq!((&*asked.method, &*asked.uri, &*asked.body), ("POST", "/x/../y?z=%20", &b"hello"[..]));
    for (name, value) in [
        ("host", &*format!("tools.example:{}", server.port)),
        ("connection", "close"),
        ("content-length", "5"),
        ("accept-encoding", "gzip"),
        ("authorization", "Bearer mine"),
    ] {
        assert_eq!(asked.headers[name], value, "{name}");
    }
    assert_eq!(asked.headers.len(), 5, "{:?}", asked.headers);
    let visit = proxy.visit().await;
    assert_eq!((visit.door, visit.verdict), (Some(Door::Forward), Verdict::Served));
    assert_eq!(visit.to.unwrap(), format!("http://tools.example:{}", server.port));
    assert_eq!(visit.bytes_down, answer.len() as u64);
}

/// SB-10: the doors of plain HTTP and of tunnels refuse the same.
#[tokio::test]
async fn what_is_not_granted_is_refused() {
    let server = Server::open(|_| reply(200, "x")).await;
    let public = open(Addresses::Public).await;
    let any = open(Addresses::Any).await;
    let all = Proxy::new(&Egress::new()).grant("*".parse().unwrap(), Addresses::Public);
    let all = Open::new(all).await;
    for (proxy, host) in [
        (&any, "evil.example"),
        (&any, "127.0.0.1"),
        (&public, "tools.example"),
        (&all, "127.0.0.1"),
        (&all, "0x7f.1"),
        (&all, "[::1]"),
        (&all, "localhost"),
    ] {
        let answer = proxy.ask(format!("GET http://{host}:{}/ HTTP/1.1\r\n\r\n", server.port)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    // What should be encrypted is not sent in the clear.
    let answer = any.ask("GET https://tools.example/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("CONNECT"), "{answer}");
    assert_eq!(server.accepted(), 0);
}

/// SB-10: a connection carries one request: what follows it is neither judged by its verdict nor handed on.
#[tokio::test]
async fn a_connection_carries_one_request() {
    let server = Server::open(|_| reply(200, "x")).await;
    let proxy = open(Addresses::Any).await;
    let one = format!("GET http://tools.example:{}/one HTTP/1.1\r\n\r\n", server.port);
    let answer = proxy
        .ask(one.clone() + &one.replace("one", "two") + "GET http://evil.example/ HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.contains("connection: close\r\n") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    assert_eq!(server.only().uri, "/one");
}

/// SB-10: of two lengths that a request has, the one that it was read by is handed on.
#[tokio::test]
async fn a_request_with_two_lengths_is_one_request() {
    let server = Server::open(|asked| reply(200, asked.body.clone())).await;
    let proxy = open(Addresses::Any).await;
    let head = format!("POST http://tools.example:{}/ HTTP/1.1\r\n", server.port);
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let answer = proxy.ask(head.clone() + both).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") || answer.ends_with("hello"), "{answer}");
    let answer = proxy.ask(head + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nhello").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(server.seen.lock().unwrap().iter().all(|asked| asked.body == "hello"));
}

/// SB-10: requests and responses pass piece by piece, as they come.
#[tokio::test]
async fn bodies_pass_as_they_come() {
    let (more, pieces) = unbounded_channel::<&str>();
    let pieces = Arc::new(Mutex::new(Some(pieces)));
    let server = Server::open(move |_| {
        let pieces = pieces.lock().unwrap().take().unwrap();
        let stream = futures::stream::unfold(pieces, async |mut pieces| {
            let piece = pieces.recv().await?;
            Some((Ok(Frame::data(Bytes::from(piece))), pieces))
        });
        Response::new(StreamBody::new(stream).boxed_unsync())
    })
    .await;
    let proxy = open(Addresses::Any).await;
    let mut program = proxy.connect().await;
    let head = format!(
        "POST http://tools.example:{}/ HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.port
    );
    program.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_head(&mut program).await, "HTTP/1.1 100 Continue\r\n\r\n");
    program.write_all(b"3\r\none\r\n").await.unwrap();
    program.write_all(b"3\r\ntwo\r\n0\r\n\r\n").await.unwrap();
    read_head(&mut program).await;
    assert_eq!(server.only().body, "onetwo");
    for piece in ["data: 1\n\n", "data: 2\n\n"] {
        more.send(piece).unwrap();
        let chunk = format!("9\r\n{piece}\r\n");
        let mut read = vec![0; chunk.len()];
        program.read_exact(&mut read).await.unwrap();
        assert_eq!(read, chunk.as_bytes());
    }
    drop(more);
    assert_eq!(read_all(&mut program).await, "0\r\n\r\n");
}

/// SB-10: a response about a body that does not come keeps what it says of it.
#[tokio::test]
async fn a_response_without_a_body_says_how_long_it_would_be() {
    let server = Server::open(|_| {
        let mut answer = reply(200, "");
        answer.headers_mut().insert("content-length", "1234".parse().unwrap());
        answer
    })
    .await;
    let proxy = open(Addresses::Any).await;
    let answer = proxy.ask(format!("HEAD http://tools.example:{}/ HTTP/1.1\r\n\r\n", server.port)).await;
    assert!(answer.contains("content-length: 1234\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}

/// SB-10: an origin that breaks off is seen to, before and in its response.
#[tokio::test]
async fn an_origin_that_breaks_off_is_seen_to() {
    let mut proxy = open(Addresses::Any).await;
    for said in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhal"] {
        let server = Server::raw(async move |mut stream| {
            stream.readable().await.unwrap();
            let mut head = [0; 4096];
            stream.try_read(&mut head).unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
        })
        .await;
        let answer = proxy.ask(format!("GET http://tools.example:{}/ HTTP/1.1\r\n\r\n", server.port)).await;
        match said {
            "" => assert!(
                answer.starts_with("HTTP/1.1 502 ") && answer.contains("has not answered"),
                "{answer}"
            ),
            // It never looks whole; what had not been sent yet may be lost.
            _ => assert!(answer.is_empty() || answer.contains("content-length: 9\r\n"), "{answer}"),
        }
        let verdict = proxy.visit().await.verdict;
        assert!(matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
    }
}

/// SB-10: a program that hangs up has ended its request to the origin.
#[tokio::test]
async fn a_program_that_hangs_up_ends_its_request() {
    let (asked, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (was_asked, has_gone) = (asked.clone(), gone.clone());
    let server = Server::raw(move |mut stream| {
        let (asked, gone) = (was_asked.clone(), has_gone.clone());
        async move {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                asked.notify_one();
            }
            gone.notify_one();
        }
    })
    .await;
    let mut proxy = open(Addresses::Any).await;
    let mut program = proxy.connect().await;
    let request = format!("GET http://tools.example:{}/ HTTP/1.1\r\n\r\n", server.port);
    program.write_all(request.as_bytes()).await.unwrap();
    asked.notified().await;
    drop(program);
    gone.notified().await;
    assert!(matches!(proxy.visit().await.verdict, Verdict::Failed(_)));
}
