//! The bounds of a proxy.

use super::{
    door::{Open, read_all, read_head},
    tunnels::echo,
};
use crate::server::{Server, reply};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use toolyard_egress::{Addresses, Egress, Proxy, ProxyLimits, Verdict};

async fn open(limits: ProxyLimits) -> Open {
    let all = "127.0.0.1".parse().unwrap();
    Open::new(Proxy::new(&Egress::new()).grant(all, Addresses::Any).limits(limits)).await
}

fn connect(server: &Server) -> String {
    format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", server.port)
}

async fn tunnel(proxy: &Open, server: &Server) -> TcpStream {
    let mut program = proxy.connect().await;
    program.write_all(connect(server).as_bytes()).await.unwrap();
    let answer = read_head(&mut program).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    program
}

/// SB-10: so many connections at once, and one more waits until another has ended.
#[tokio::test]
async fn one_connection_more_waits() {
    let server = echo().await;
    let mut proxy = open(ProxyLimits { connections: 2, ..ProxyLimits::default() }).await;
    let (first, _second) = (tunnel(&proxy, &server).await, tunnel(&proxy, &server).await);
    let mut third = proxy.connect().await;
    third.write_all(connect(&server).as_bytes()).await.unwrap();
    // Others have their turns, and it has none.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.accepted(), 2);
    assert!(third.try_read(&mut [0]).is_err());
    drop(first);
    assert_eq!(proxy.visit().await.verdict, Verdict::Served);
    assert!(read_head(&mut third).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(server.accepted(), 3);
}

/// SB-10: what passes is counted while it does, heads and refusals too.
#[tokio::test]
async fn what_passes_is_counted_at_once() {
    let server = echo().await;
    let all = "127.0.0.1".parse().unwrap();
    let proxy = Proxy::new(&Egress::new()).grant(all, Addresses::Any);
    let traffic = proxy.traffic();
    let proxy = Open::new(proxy).await;
    let mut program = tunnel(&proxy, &server).await;
    program.write_all(b"12345").await.unwrap();
    program.read_exact(&mut [0; 5]).await.unwrap();
    let sent = connect(&server).len() as u64 + 5;
    assert_eq!((traffic.connections(), traffic.bytes_up()), (1, sent));
    let mut refused = proxy.connect().await;
    refused.write_all(b"CONNECT other.example:1 HTTP/1.1\r\n\r\n").await.unwrap();
    let answer = read_all(&mut refused).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(traffic.connections(), 2);
    assert!(traffic.bytes_down() > answer.len() as u64 + 5);
}

/// SB-10: a program that may send no more is cut off, and what it asks for then is refused.
#[tokio::test]
async fn a_program_that_may_send_no_more_is_cut_off() {
    let server = echo().await;
    let mut proxy = open(ProxyLimits { bytes_up: Some(5000), ..ProxyLimits::default() }).await;
    let mut program = tunnel(&proxy, &server).await;
    // Heads count too.
    program.write_all(&[b'x'; 4000]).await.unwrap();
    program.read_exact(&mut [0; 4000]).await.unwrap();
    program.write_all(&[b'x'; 2000]).await.unwrap();
    // What was on its way may be lost with it.
    let _ = program.read_to_end(&mut Vec::new()).await;
    let visit = proxy.visit().await;
    assert_eq!((visit.verdict, visit.bytes_down > 4000), (Verdict::Spent, true));
    for request in [connect(&server), format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n", server.port)] {
        let answer = proxy.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("no more bytes may pass"), "{answer}");
    }
    assert_eq!(server.accepted(), 1);
}

/// SB-10: a program that may get no more is cut off.
#[tokio::test]
async fn a_program_that_may_get_no_more_is_cut_off() {
    let server = Server::open(|_| reply(200, vec![b'x'; 1 << 20])).await;
    let mut proxy = open(ProxyLimits { bytes_down: Some(100_000), ..ProxyLimits::default() }).await;
    let mut program = proxy.connect().await;
    program
        .write_all(format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n", server.port).as_bytes())
        .await
        .unwrap();
    // What was on its way may be lost with it.
    let _ = program.read_to_end(&mut Vec::new()).await;
    let visit = proxy.visit().await;
    assert_eq!(visit.verdict, Verdict::Spent);
    assert!((100_000..1 << 20).contains(&visit.bytes_down), "{visit:?}");
}

/// SB-10: a head has its bounds, in number and in size, and so has what comes before it ends.
#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let mut proxy = open(ProxyLimits::default()).await;
    let many = (0..200).map(|at| format!("x-{at}: y\r\n")).collect::<String>();
    let large = format!("x: {}\r\n", "y".repeat(200_000));
    for headers in [many, large] {
        let mut program = proxy.connect().await;
        let flood = format!("GET http://127.0.0.1:1/ HTTP/1.1\r\n{headers}");
        // It is cut off while it still sends.
        let _ = program.write_all(flood.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = program.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        let visit = proxy.visit().await;
        assert!(matches!(visit.verdict, Verdict::Refused(_)), "{visit:?}");
        assert!(visit.bytes_up < 200_000, "{visit:?}");
    }
}

/// SB-10: a connection on which nothing passes ends, as a tunnel and without having asked for anything.
#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_passes_ends() {
    let server = echo().await;
    let mut proxy = open(ProxyLimits { idle: Duration::from_secs(20), ..ProxyLimits::default() }).await;
    let mut program = tunnel(&proxy, &server).await;
    assert_eq!(read_all(&mut program).await, "");
    assert_eq!(proxy.visit().await.verdict, Verdict::Idle);
    let mut program = proxy.connect().await;
    program.write_all(b"GET http://127.0.0.1/").await.unwrap();
    assert_eq!(read_all(&mut program).await, "");
    assert_eq!(proxy.visit().await.verdict, Verdict::Idle);
}

/// SB-10: a head takes no longer than it may, also if it comes byte by byte.
#[tokio::test(start_paused = true)]
async fn a_head_that_comes_slowly_is_not_waited_for() {
    let mut proxy = open(ProxyLimits::default()).await;
    let mut program = proxy.connect().await;
    while program.write_all(b"G").await.is_ok() && proxy.try_visit().is_none() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// SB-10: a proxy that is dropped has ended all its connections, and told of each.
#[tokio::test]
async fn a_proxy_that_is_dropped_ends_its_connections() {
    let (server, proxy) = (echo().await, open(ProxyLimits::default()).await);
    let mut programs = [tunnel(&proxy, &server).await, tunnel(&proxy, &server).await];
    let visits = proxy.close().await;
    assert_eq!(visits.len(), 2);
    assert!(visits.iter().all(|visit| visit.verdict == Verdict::Served && visit.bytes_up > 0));
    for program in &mut programs {
        assert_eq!(read_all(program).await, "");
    }
}

/// SB-10: a socket in the file system is a door like any other.
#[cfg(unix)]
#[tokio::test]
async fn a_socket_is_a_door_like_any_other() {
    use tokio::net::{UnixListener, UnixStream};
    let server = echo().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("door");
    let listener = UnixListener::bind(&path).unwrap();
    let proxy = Proxy::new(&Egress::new()).grant("127.0.0.1".parse().unwrap(), Addresses::Any);
    let mut task = tokio::task::JoinSet::new();
    task.spawn(proxy.serve(listener));
    let mut program = UnixStream::connect(&path).await.unwrap();
    program.write_all((connect(&server) + "hello").as_bytes()).await.unwrap();
    program.shutdown().await.unwrap();
    let mut answer = String::new();
    program.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello"), "{answer}");
}
