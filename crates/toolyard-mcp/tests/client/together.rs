//! Servers are started concurrently.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::time::Duration;
use tokio::net::TcpListener;

/// No server says a word before all have been started: if they were started one by one, the first would wait in vain.
#[tokio::test]
async fn servers_start_together() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let meeting = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = meeting.local_addr().unwrap().to_string();
    let server = |name| odd(name, "plain").env("ODD_MEETS", &place).startup_timeout(Duration::from_secs(10));
    let all_are_there = async {
        let mut there = Vec::new();
        while there.len() < NAMES.len() {
            there.push(meeting.accept().await.unwrap());
        }
    };
    let (yard, ()) = tokio::join!(Yard::open(NAMES.map(server).into()), all_are_there);
    for name in NAMES {
        assert_eq!(yard.text(&format!("{name}__echo"), json!({"text": name})).await, name);
    }
    yard.servers.shutdown().await;
}
