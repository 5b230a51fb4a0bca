//! What clients cost a program in memory.

use super::{
    http::{Door, ask, initialize, listen},
    yard::Yard,
};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{env, fs, process::Command};
use toolyard_mcp::HttpOptions;

/// How many clients are measured together: one alone would vanish in what the allocator keeps.
const CLIENTS: u64 = 100;

/// Maximum memory that the session of a client takes, in kilobytes, whatever it sent to open it.
const SESSION_KB_MAX: u64 = 1024;

/// Maximum memory that everything in flight takes, in kilobytes: 64 MiB as set, and what parsing takes beside it.
const IN_FLIGHT_KB_MAX: u64 = 128 << 10;

/// A figure of this process's memory, in kilobytes.
fn memory(figure: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    line.trim_start_matches(':').trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// Runs one test of this module alone, in its own process.
fn alone(test: &str) {
    let args = ["--exact", &format!("gateway::memory::{test}"), "--ignored", "--nocapture"];
    let done = Command::new(env::current_exe().unwrap()).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    println!("{said}");
}

/// An `initialize` of nearly 64 KiB, all of it small objects in experimental capabilities.
fn hostile_initialize() -> String {
    let mut message: Value = serde_json::from_str(&initialize()).unwrap();
    message["params"]["capabilities"] = json!({"experimental": {"x": {"y": vec![json!({"": 0}); 9000]}}});
    message.to_string()
}

#[tokio::test]
#[ignore = "started by the other test"]
async fn be_a_program_with_hostile_clients() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let (host, opening) = ([format!("host: {to}")], hostile_initialize());
    for _ in 0..10 {
        ask(to, "POST", "/mcp", &host, &opening).await;
    }
    let before = memory("VmRSS");
    for _ in 0..CLIENTS {
        assert!(ask(to, "POST", "/mcp", &host, &opening).await.starts_with("HTTP/1.1 200 "));
    }
    let each = memory("VmRSS").saturating_sub(before) / CLIENTS;
    println!("each session takes {each} kB");
    assert!(each <= SESSION_KB_MAX);
}

/// A hostile `initialize` holds no memory beside that of a session.
#[test]
fn a_hostile_initialize_is_not_kept() {
    alone("be_a_program_with_hostile_clients");
}

#[tokio::test]
#[ignore = "started by the other test"]
async fn be_a_program_with_many_large_calls() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let doors = [Door::open(to).await, Door::open(to).await, Door::open(to).await];
    let before = memory("VmHWM");
    let params = json!({"name": "slow", "arguments": {"secs": 3600, "x": vec![json!({"": 0}); 9000]}});
    let call =
        |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
    let mut taken = 0;
    for id in 0..100 {
        let answers = join_all(doors.iter().map(|door| door.post_and_leave(call(id)))).await;
        taken += answers.into_iter().filter(|is_taken| *is_taken).count();
    }
    let most = memory("VmHWM") - before;
    println!("{taken} of 300 calls take at most {most} kB");
    assert!((3..100).contains(&taken) && most <= IN_FLIGHT_KB_MAX);
}

/// Many large calls at once take no more memory than is set.
#[test]
fn calls_in_flight_are_bounded_in_memory() {
    alone("be_a_program_with_many_large_calls");
}
