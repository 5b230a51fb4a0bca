//! Shell commands in the process sandbox that may reach hosts: by the proxy alone, and those alone.

use crate::confined::{Yard, is_missing, lacks_setpriv};
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A server that answers every connection with a short text, and counts them.
struct Server {
    port: u16,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, accepted) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = accepted.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n");
            }
        });
        Self { port, accepted }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A yard whose commands may reach these hosts, of which some may have private addresses.
fn yard(name: &str, net: &str, private: &str) -> Yard {
    let more = format!(
        "shell = {{ wall_time = \"20s\" }}\n[policy.capabilities]\nnet = [{net}]\n[sandbox.process]\n\
         allow_private = [{private}]\n"
    );
    Yard::new(name, &more)
}

/// A command that sends this request to the proxy, and prints what comes back.
fn ask(request: &str) -> String {
    format!(r#"bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "{request}\r\n\r\n" >&3; cat <&3'"#)
}

fn get(port: u16) -> String {
    ask(&format!("GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\nHost: a"))
}

/// SB-6, SB-10: a command reaches the host that is granted, and no other, directly or by the proxy.
#[test]
fn a_command_reaches_what_is_granted_and_nothing_else() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let (granted, other) = (Server::open(), Server::open());
    let net = format!("\"127.0.0.1:{}\"", granted.port);
    let yard = yard("way-out", &net, "\"127.0.0.1\"");
    let (port, closed) = (granted.port, other.port);
    let head = |port: u16| format!("CONNECT 127.0.0.1:{port} HTTP/1.1");
    let tunnel = ask(&format!("{}\\r\\n\\r\\nGET /x HTTP/1.1\\r\\nHost: a", head(port)));
    // Nothing after its head: the proxy answers that and closes, and bash would be ended by its next write.
    let refused = ask(&head(closed));
    let denied = format!("127.0.0.1:{closed} is not granted to this program\n");
    for (what, shell, starts, ends) in [
        ("a request", get(port), "HTTP/1.1 200 OK\r\n", "hello\n"),
        ("a tunnel", tunnel, "HTTP/1.1 200 OK\r\n", "hello\n"),
        ("a request elsewhere", get(closed), "HTTP/1.1 403 Forbidden\r\n", &*denied),
        ("a tunnel elsewhere", refused.clone(), "HTTP/1.1 403 Forbidden\r\n", &*denied),
        // One process inside asks for another: all of them have the same way out.
        ("a tunnel for a child", format!("({refused} & wait)"), "HTTP/1.1 403 ", &*denied),
    ] {
        let (code, text) = yard.ended(&shell);
        assert_eq!(code, "ok", "{what}: {text}");
        assert!(text.starts_with(starts) && text.ends_with(ends), "{what}: {text}");
        assert_eq!(yard.census(), 0, "{what}: something is left");
    }
    let (code, text) = yard.ended(&format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"));
    assert_eq!(code, "execution_error");
    assert!(text.contains("Connection refused"), "{text}");
    assert_eq!((granted.accepted(), other.accepted()), (2, 0));
}

/// SB-10: a host that is granted must have a public address, unless private ones are allowed for it.
#[test]
fn a_private_address_must_be_allowed() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let server = Server::open();
    let net = format!("\"127.0.0.1:{}\"", server.port);
    for private in ["", "\"10.0.0.1\"", "\"127.0.0.1:1\""] {
        let yard = yard("way-out-private", &net, private);
        let (_, text) = yard.ended(&get(server.port));
        assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{private}: {text}");
        assert!(text.contains("an address of this machine"), "{private}: {text}");
    }
    assert_eq!(server.accepted(), 0);
}

/// SB-6: programs are told of the proxy, and where nothing is granted there is none, nor a socket.
#[test]
fn programs_are_told_of_their_way_out() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let shown = "echo $http_proxy $https_proxy $all_proxy; echo $HTTP_PROXY $HTTPS_PROXY $ALL_PROXY; ";
    let shell = format!("{shown} bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128' && echo open");
    let three = ["http://127.0.0.1:3128"; 3].join(" ");
    let with = yard("way-out-told", "\"*.example.com:443\"", "");
    assert_eq!(with.ended(&shell), ("ok".to_owned(), format!("{three}\n{three}\nopen\n")));
    for without in [Yard::new("way-out-none", ""), yard("way-out-empty", "", "")] {
        let (code, text) = without.ended(&shell);
        assert_eq!(code, "execution_error");
        assert!(text.starts_with("exit code 1\n\n\nbash: socket: Operation not permitted\n"), "{text}");
    }
}

/// SB-7: a command that ends at its time ends what it has open, and nothing is left.
#[test]
fn what_is_open_ends_with_the_command() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    // Nobody accepts, so an answer never comes.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let more = format!(
        "shell = {{ wall_time = \"1s\" }}\n[policy.capabilities]\nnet = [\"127.0.0.1\"]\n[sandbox.process]\n\
         allow_private = [\"127.0.0.1:{port}\"]\n"
    );
    let yard = Yard::new("way-out-ends", &more);
    let (code, text) = yard.ended(&get(port));
    assert_eq!(code, "timeout", "{text}");
    assert_eq!(yard.census(), 0);
    let (mut stream, mut request) = (silent.accept().unwrap().0, String::new());
    stream.read_to_string(&mut request).unwrap();
    assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
}

/// SB-9, SB-10: what passed through the way out is counted in what a call used, a failed one too, and it is bounded.
#[test]
fn what_passes_is_counted_and_bounded() {
    if is_missing() {
        return;
    }
    let server = Server::open();
    let net = format!("\"127.0.0.1:{}\"", server.port);
    let counted = yard("way-out-counted", &net, "\"127.0.0.1\"");
    let twice = format!("{0} && {0}", get(server.port));
    let sent = 2 * format!("GET http://127.0.0.1:{}/x HTTP/1.1\r\nHost: a\r\n\r\n", server.port).len();
    for (shell, is_failed) in [(twice.clone(), false), (format!("{twice}; exit 3"), true)] {
        let result = counted.result(&shell);
        let said = if is_failed { &result["error"] } else { &result };
        let used = |what: &str| said["usage"][what].as_u64().unwrap_or_else(|| panic!("{what}: {result}"));
        assert_eq!((used("net_connections"), used("net_up_bytes")), (2, sent as u64), "{result}");
        assert!(used("net_down_bytes") >= 2 * 20, "{result}");
    }
    assert_eq!(server.accepted(), 4);
    let without = Yard::new("way-out-uncounted", "").result("true");
    assert!(
        without["usage"]["wall_ms"].is_u64() && without["usage"]["net_connections"].is_null(),
        "{without}"
    );

    let more = format!(
        "[policy.capabilities]\nnet = [{net}]\n[sandbox.process]\nallow_private = [\"127.0.0.1\"]\n\
         net_bytes = \"100B\"\n"
    );
    let bounded = Yard::new("way-out-bounded", &more);
    let (_, text) = bounded.ended(&format!("{0}; {0}", get(server.port)));
    assert!(text.ends_with("no more bytes may pass through this proxy\n"), "{text}");
    assert_eq!(server.accepted(), 5);
}
