//! Tunnels: what is granted passes as it is, and nothing else does.

use super::door::{Open, read_all, read_head};
use crate::server::{Scripted, Server, reply};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use toolyard_egress::{Addresses, Door, Egress, Proxy, Verdict};

/// A server that sends everything back, up to the end of what it gets.
pub(crate) async fn echo() -> Server {
    Server::raw(|mut stream| async move {
        let (mut read, mut write) = stream.split();
        // Whoever hangs up has what it wanted.
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await
}

/// A proxy where `tools.example` is granted, and leads to the loopback address.
pub(crate) async fn open(may: Addresses) -> Open {
    let egress = Egress::new().resolver(Scripted::new(&[&["127.0.0.1"]]));
    Open::new(Proxy::new(&egress).grant("tools.example".parse().unwrap(), may)).await
}

fn connect(host: &str, port: u16) -> String {
    format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

/// SB-10: a tunnel to a granted host carries anything, both ways, up to the end of each; it is counted.
#[tokio::test]
async fn a_tunnel_carries_anything() {
    let (server, mut proxy) = (echo().await, open(Addresses::Any).await);
    let mut program = proxy.connect().await;
    let head = connect("tools.example", server.port);
    program.write_all(head.as_bytes()).await.unwrap();
    let answer = read_head(&mut program).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.contains("content-length"), "{answer}");
    assert!(!answer.contains("connection: close"), "{answer}");
    let text = "\0 not HTTP \r\n\r\n".repeat(10_000);
    let (mut read, mut write) = program.split();
    let mut back = String::new();
    let send = async {
        write.write_all(text.as_bytes()).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (_, read) = tokio::join!(send, read.read_to_string(&mut back));
    assert!(read.is_ok() && back == text);
    let visit = proxy.visit().await;
    assert_eq!((visit.door, visit.verdict), (Some(Door::Tunnel), Verdict::Served));
    assert_eq!(visit.to.unwrap(), format!("tools.example:{}", server.port));
    let bytes = |head: &str| (head.len() + text.len()) as u64;
    assert_eq!((visit.bytes_up, visit.bytes_down), (bytes(&head), bytes(&answer)));
}

/// SB-10: what follows the request for a tunnel at once belongs to the tunnel, whatever it looks like.
#[tokio::test]
async fn what_follows_belongs_to_the_tunnel() {
    let (server, proxy) = (echo().await, open(Addresses::Any).await);
    let mut program = proxy.connect().await;
    let second = connect("evil.example", 443);
    program.write_all((connect("tools.example", server.port) + &second).as_bytes()).await.unwrap();
    read_head(&mut program).await;
    program.shutdown().await.unwrap();
    assert_eq!(read_all(&mut program).await, second);
}

/// SB-10: what is not granted is refused with a sentence, and nothing is looked up or dialled for it.
#[tokio::test]
async fn what_is_not_granted_is_refused() {
    let server = echo().await;
    let resolver = Scripted::new(&[&["127.0.0.1"]]);
    let granted = format!("tools.example:{}", server.port);
    let egress = Egress::new().resolver(resolver.clone());
    let mut proxy = Open::new(Proxy::new(&egress).grant(granted.parse().unwrap(), Addresses::Any)).await;
    for (host, port) in [
        ("evil.example", server.port),
        ("tools.example", server.port - 1),
        ("a.tools.example", server.port),
        ("tools.example.evil.example", server.port),
        ("127.0.0.1", server.port),
        ("0x7f.1", server.port),
        ("[::ffff:127.0.0.1]", server.port),
    ] {
        let answer = proxy.ask(connect(host, port)).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {answer}");
        assert!(answer.contains("proxy-status: toolyard; error=http_request_denied\r\n"), "{answer}");
        assert!(answer.ends_with("is not granted to this program\n"), "{answer}");
        let visit = proxy.visit().await;
        assert!(
            matches!(visit.verdict, Verdict::Refused(why) if why.ends_with("not granted to this program"))
        );
    }
    assert_eq!((server.accepted(), resolver.asked()), (0, 0));
}

/// SB-10: a granted host whose address is private is not dialled unless that is granted too.
#[tokio::test]
async fn a_granted_host_with_a_private_address_is_refused() {
    let server = echo().await;
    let proxy = open(Addresses::Public).await;
    let answer = proxy.ask(connect("tools.example", server.port)).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.ends_with("is an address of this machine, which may not be used\n"), "{answer}");
    // Also where every host is granted, and the address is named itself, in whatever spelling.
    let egress = Egress::new();
    let proxy = Open::new(Proxy::new(&egress).grant("*".parse().unwrap(), Addresses::Public)).await;
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"] {
        let answer = proxy.ask(connect(host, server.port)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    // The proxy is no way to itself, either.
    assert!(proxy.ask(connect("127.0.0.1", proxy.port)).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(server.accepted(), 0);
}

/// SB-10: a name that changes its address is judged again for each tunnel.
#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_again() {
    let server = echo().await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]]);
    let egress = Egress::new().resolver(resolver.clone());
    let proxy = Proxy::new(&egress).grant("tools.example".parse().unwrap(), Addresses::Public);
    let proxy = Open::new(proxy).await;
    for _ in 0..3 {
        let answer = proxy.ask(connect("tools.example", server.port)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    assert_eq!((server.accepted(), resolver.asked()), (0, 3));
}

/// SB-10: a request that another process inside has relayed is judged like any other.
#[tokio::test]
async fn a_relayed_request_is_judged_like_any_other() {
    let (server, proxy) = (echo().await, open(Addresses::Any).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let relay = listener.local_addr().unwrap();
    let inside = proxy.port;
    tokio::spawn(async move {
        while let Ok((mut program, _)) = listener.accept().await {
            let mut door = TcpStream::connect(("127.0.0.1", inside)).await.unwrap();
            // How it ends is seen by the program.
            tokio::spawn(async move { drop(copy_bidirectional(&mut program, &mut door).await) });
        }
    });
    for (host, status) in [("tools.example", "200"), ("evil.example", "403"), ("127.0.0.1", "403")] {
        let mut program = TcpStream::connect(relay).await.unwrap();
        program.write_all(connect(host, server.port).as_bytes()).await.unwrap();
        let answer = read_head(&mut program).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
}

/// SB-10: what cannot be reached is said to be.
#[tokio::test]
async fn what_cannot_be_reached_is_said_to_be() {
    let mut proxy = open(Addresses::Any).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let answer = proxy.ask(connect("tools.example", port)).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot be reached: "), "{answer}");
    assert!(matches!(proxy.visit().await.verdict, Verdict::Failed(_)));
}

/// SB-10: what makes no sense is refused.
#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let mut proxy = open(Addresses::Any).await;
    for request in [
        "CONNECT tools.example HTTP/1.1\r\n\r\n",
        "CONNECT me:hunter22@tools.example:80 HTTP/1.1\r\n\r\n",
        "CONNECT / HTTP/1.1\r\n\r\n",
        "CONNECT tools.example:99999 HTTP/1.1\r\n\r\n",
        "GET x HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\0\x01\0",
    ] {
        let mut program = proxy.connect().await;
        program.write_all(request.as_bytes()).await.unwrap();
        program.shutdown().await.unwrap();
        let answer = read_all(&mut program).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
        assert!(!answer.contains("hunter22"));
        let verdict = proxy.visit().await.verdict;
        assert!(matches!(verdict, Verdict::Refused(_)), "{request:?}: {verdict:?}");
    }
    drop(proxy.connect().await);
    assert_eq!(proxy.visit().await.verdict, Verdict::Refused("it asked for nothing".to_owned()));
}

/// SB-10: a tunnel is to what the proxy dials; a server behind it that answers in HTTP is not read.
#[tokio::test]
async fn a_tunnel_is_opaque() {
    let server = Server::open(|_| reply(200, "x")).await;
    let proxy = open(Addresses::Any).await;
    let request =
        connect("tools.example", server.port) + "GET / HTTP/1.1\r\nX-Key: mine\r\nConnection: close\r\n\r\n";
    let answer = proxy.ask(request).await;
    assert!(answer.ends_with("\r\n\r\nx"), "{answer}");
    assert_eq!(server.only().headers["x-key"], "mine");
}
