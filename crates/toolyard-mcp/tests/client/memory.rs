//! What an endless line costs a program in memory.

use crate::client::{much, peak::most, server::odd, yard::Yard};
use serde_json::json;
use std::{env, process::Command};
use toolyard::ErrorKind;

/// Maximum peak memory of the program, in kilobytes: three times the largest line, and the program itself.
const KB_MAX: u64 = 80 << 10;

/// The program: this test alone, in its own process.
#[tokio::test]
#[ignore = "started by the other test"]
async fn be_a_program_that_is_sent_a_long_line() {
    let yard = Yard::open(vec![odd("bad", "plain"), odd("good", "plain")]).await;
    let error = yard.call("bad__long", json!({})).await.status.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.contains("a line of more than 16777216 bytes"), "{}", error.message);
    assert_eq!(yard.text("good__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
    assert!(most() <= KB_MAX, "it had {} kB", most());
    println!("it had {} kB", most());
}

/// By how much one answer of 10 MB may raise the peak memory of the program, in kilobytes.
const ANSWER_KB_MAX: u64 = 64 << 10;

/// The program: this test alone, in its own process. It makes one call, whose answer is of the kind that it is told.
#[tokio::test]
#[ignore = "started by the other test"]
async fn be_a_program_that_is_sent_much() {
    let Ok(how) = env::var("MUCH") else { return };
    let yard = Yard::open(vec![odd("bad", "plain")]).await;
    let before = most();
    let status = yard.call("bad__much", json!({ "how": how })).await.status;
    let ended = match &status {
        Ok(output) => format!("{} parts", output.content.len()),
        Err(error) => format!("{:?}: {}", error.kind, error.message),
    };
    println!("MUCH {how}: {} kB, {before} kB before; {ended}", most());
    assert_eq!(yard.text("bad__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
    assert!(most() - before <= ANSWER_KB_MAX, "it had {} kB, {before} kB before", most());
}

/// However 10 MB are spent, the program needs at most 64 MiB for them.
#[test]
fn an_answer_of_10_mb_takes_bounded_memory() {
    let args = ["--exact", "client::memory::be_a_program_that_is_sent_much", "--ignored", "--nocapture"];
    for how in much::HOW {
        let mut program = Command::new(env::current_exe().unwrap());
        let done = program.args(args).env("MUCH", how).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        said.lines().filter(|line| line.contains("MUCH")).for_each(|line| println!("{line}"));
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }
}

/// A line of 100 MiB costs no more memory than the longest line that is accepted.
#[test]
fn a_line_of_100_mib_is_not_kept() {
    let args =
        ["--exact", "client::memory::be_a_program_that_is_sent_a_long_line", "--ignored", "--nocapture"];
    let done = Command::new(env::current_exe().unwrap()).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    println!("{said}");
}
