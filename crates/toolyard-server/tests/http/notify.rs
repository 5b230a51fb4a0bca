//! Somebody elsewhere is told of each question (HT-5). The receivers are real, on the loopback address.

use crate::yard::{APPROVER, CALLER, OPERATOR, Yard, call};
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use toolyard::RetryPolicy;
use toolyard_server::{Notify, ServeError, ServerOptions};

const KEY: [u8; 32] = *b"a key that a test may well have!";

/// What a receiver was sent.
struct Sent {
    path: String,
    headers: HeaderMap,
    body: String,
}

impl Sent {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn note(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Answers with these statuses, one after another, and with the last one from then on.
struct Receiver {
    address: SocketAddr,
    sent: UnboundedReceiver<Sent>,
}

type Seen = (UnboundedSender<Sent>, std::sync::Arc<parking_lot::Mutex<Vec<u16>>>);

impl Receiver {
    async fn open(statuses: &[u16]) -> Self {
        let (tell, sent) = unbounded_channel();
        let statuses = statuses.iter().rev().copied().collect();
        let seen: Seen = (tell, std::sync::Arc::new(parking_lot::Mutex::new(statuses)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(take).with_state(seen);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, sent }
    }

    async fn next(&mut self) -> Sent {
        self.sent.recv().await.unwrap()
    }
}

async fn take(State((tell, statuses)): State<Seen>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let sent = Sent {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    tell.send(sent).unwrap();
    let mut statuses = statuses.lock();
    let status = if statuses.len() > 1 { statuses.pop().unwrap() } else { statuses[0] };
    (StatusCode::from_u16(status).unwrap(), [(header::LOCATION, "/elsewhere")]).into_response()
}

fn notify(address: SocketAddr) -> Notify {
    let secret = format!("whsec_{}", BASE64_STANDARD.encode(KEY)).parse().unwrap();
    let at_once = Duration::from_millis(1);
    let retry = RetryPolicy::default().with_delays(at_once, 1.0, at_once);
    Notify::new(format!("http://{address}/hook"), secret).allow_private().retry(retry)
}

/// A yard whose questions this receiver is told of, with one that is open.
async fn asking(notify: Notify) -> (Yard, u64) {
    let yard = Yard::with(|options| options.notify(notify)).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([call("1", "save", json!({"path": "private.md"}))])).await;
    (yard, turn)
}

/// Waits until so many notifications have had this outcome.
async fn counted(yard: &Yard, outcome: &str, count: u64) {
    let line = format!("toolyard_notifications_total{{outcome=\"{outcome}\"}} {count}\n");
    while !yard.get(OPERATOR, "/metrics").await.with(200).as_str().unwrap().contains(&line) {
        tokio::task::yield_now().await;
    }
}

async fn answered(yard: &Yard, turn: u64) {
    let question = yard.question("a").await;
    let yes = json!({"decision": "allow", "digest": question["digest"]});
    yard.post(APPROVER, &Yard::answers(&question), yes).await.with(200);
    assert_eq!(yard.ended("a", turn).await["results"]["results"][0]["status"], "ok");
}

/// HT-5: what is sent is signed as Standard Webhooks says, names the question, and gives no power over it.
#[tokio::test]
async fn a_question_is_told_of_with_a_signature_and_without_power() {
    let mut receiver = Receiver::open(&[204]).await;
    let (yard, turn) = asking(notify(receiver.address)).await;
    let sent = receiver.next().await;
    let (id, timestamp) = (sent.header("webhook-id"), sent.header("webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
    mac.update(format!("{id}.{timestamp}.{}", sent.body).as_bytes());
    let signature = BASE64_STANDARD.decode(sent.header("webhook-signature").strip_prefix("v1,").unwrap());
    mac.verify_slice(&signature.unwrap()).unwrap();
    assert!(!id.contains('.') && !timestamp.contains('.'), "{id} {timestamp}");
    assert_eq!(sent.header("content-type"), "application/json");

    let question = yard.question("a").await;
    let note = sent.note();
    for same in [
        "session",
        "agent",
        "turn",
        "request_id",
        "call_id",
        "tool",
        "side_effects",
        "asked_ms",
        "expires_ms",
    ] {
        assert_eq!(note[same], question[same], "{same}");
    }
    let digest = question["digest"].as_str().unwrap();
    for power in ["private.md", digest, CALLER, APPROVER, "token", "code="] {
        assert!(!sent.body.contains(power), "{power}: {}", sent.body);
    }
    let link = note["link"].as_str().unwrap();
    let request_id = question["request_id"].as_str().unwrap();
    assert_eq!(link, format!("http://{}/sessions/a/confirmations/{request_id}", yard.address));
    assert_eq!(yard.sent(yard.client.get(link)).await.problem(401), "no_token");
    counted(&yard, "delivered", 1).await;
    answered(&yard, turn).await;
    yard.close().await;
}

/// HT-5: the link is as it is configured, or the page's, without its code.
#[tokio::test]
async fn a_link_is_as_it_is_configured() {
    let mut receiver = Receiver::open(&[204]).await;
    let (_yard, _) =
        asking(notify(receiver.address).link("https://ui.example/{session}/{turn}?id={request_id}")).await;
    let note = receiver.next().await.note();
    let link = format!("https://ui.example/a/1?id={}", note["request_id"].as_str().unwrap());
    assert_eq!(note["link"], link);

    let paged = Yard::with(|options| options.page().notify(notify(receiver.address))).await;
    paged.session("a").await;
    paged.turn("a", json!([call("1", "save", json!({"path": "x"}))])).await;
    assert_eq!(receiver.next().await.note()["link"], format!("http://{}/", paged.address));
}

/// HT-5: a receiver that fails is told again, of the same message; one that refuses is not.
#[tokio::test]
async fn a_receiver_that_fails_is_told_again() {
    let mut receiver = Receiver::open(&[500, 429, 200]).await;
    let (yard, _) = asking(notify(receiver.address)).await;
    let [first, second, third] = [receiver.next().await, receiver.next().await, receiver.next().await];
    assert_eq!((&first.body, first.header("webhook-id")), (&second.body, second.header("webhook-id")));
    assert_eq!((&first.body, first.header("webhook-id")), (&third.body, third.header("webhook-id")));
    counted(&yard, "delivered", 1).await;

    let mut receiver = Receiver::open(&[403]).await;
    let (yard, _) = asking(notify(receiver.address)).await;
    receiver.next().await;
    counted(&yard, "failed", 1).await;
    assert!(receiver.sent.is_empty());

    let mut receiver = Receiver::open(&[503]).await;
    let twice = RetryPolicy::NONE.with_max_attempts(2);
    let (yard, _) = asking(notify(receiver.address).retry(twice)).await;
    let _ = (receiver.next().await, receiver.next().await);
    counted(&yard, "failed", 1).await;
    assert!(receiver.sent.is_empty());
}

/// HT-5: a redirect leads nowhere.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut receiver = Receiver::open(&[307]).await;
    let (yard, _) = asking(notify(receiver.address)).await;
    assert_eq!(receiver.next().await.path, "/hook");
    counted(&yard, "failed", 1).await;
    assert!(receiver.sent.is_empty());
}

/// HT-5: a receiver that accepts and says nothing keeps no question, no turn and no end of the server waiting.
#[tokio::test]
async fn a_dead_receiver_keeps_nobody_waiting() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (yard, turn) =
        asking(notify(dead.local_addr().unwrap()).attempt_timeout(Duration::from_secs(3600))).await;
    let _held = dead.accept().await.unwrap();
    answered(&yard, turn).await;
    yard.close().await;
}

/// HT-5: a question that has its answer is not told of again.
#[tokio::test]
async fn what_is_settled_is_told_no_more() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (yard, turn) = asking(notify(dead.local_addr().unwrap())).await;
    let held = dead.accept().await.unwrap();
    answered(&yard, turn).await;
    drop(held); // the attempt is lost, and would be repeated
    counted(&yard, "outdated", 1).await;
    yard.close().await;
}

/// HT-5, HT-10: what does not fit is dropped and counted, and its questions are open all the same.
#[tokio::test]
async fn a_flood_is_dropped_and_counted() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let one = notify(dead.local_addr().unwrap()).queue_max(1);
    let (yard, _) = asking(one.attempt_timeout(Duration::from_secs(3600))).await;
    // Eight are on their way at once, and one waits.
    for _ in 1..30 {
        yard.turn("a", json!([call("1", "save", json!({"path": "x"}))])).await;
    }
    let all = async || yard.get(APPROVER, "/confirmations").await.with(200)["confirmations"].take();
    while all().await.as_array().unwrap().len() < 30 {
        tokio::task::yield_now().await;
    }
    let metrics = yard.get(OPERATOR, "/metrics").await.with(200);
    let (_, rest) = metrics.as_str().unwrap().split_once("_total{outcome=\"dropped\"} ").unwrap();
    let dropped: u64 = rest.lines().next().unwrap().parse().unwrap();
    assert!((21..30).contains(&dropped), "{dropped}");
}

/// HT-5: an address that cannot be told is an error at once.
#[tokio::test]
async fn an_address_that_cannot_be_told_is_an_error() {
    use toolyard::Engine;
    use toolyard_server::{Front, Server};
    let secret = || format!("whsec_{}", BASE64_STANDARD.encode(KEY)).parse().unwrap();
    for (url, why) in [
        ("nonsense", "URL is not valid"),
        ("ftp://a.example", "neither http: nor https:"),
        ("http://127.0.0.1/", "may not be used"),
        #[cfg(not(feature = "https"))]
        ("https://a.example/", "without TLS"),
    ] {
        let front = Front::default();
        let engine = Engine::builder().approver(front.clone()).build().await.unwrap();
        let options = ServerOptions::default().notify(Notify::new(url, secret()));
        let error = Server::new(engine, front, options).err().unwrap();
        assert!(matches!(error, ServeError::Notify(_)) && error.to_string().contains(why), "{error}");
    }
}
