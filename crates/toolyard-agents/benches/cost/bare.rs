//! The least that answers an agent: reads a line, parses it, and writes an answer, in tokio, on one thread: a second one
//! would only be woken for nothing, and make this slower than it has to be.

use crate::measure::Failed;
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    runtime::Builder,
    task::spawn_blocking,
};

/// What an agent with these arguments gives with its bye.
pub(crate) async fn run(args: Vec<String>) -> Result<Value, Failed> {
    let alone = move || Builder::new_current_thread().enable_all().build()?.block_on(answer(&args));
    spawn_blocking(alone).await?
}

async fn answer(args: &[String]) -> Result<Value, Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut agent =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (Some(mut to), Some(from)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err("an agent without pipes".into());
    };
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let asked: Value = serde_json::from_str(&line)?;
        if asked["op"] == "bye" {
            return Ok(asked["result"].clone());
        }
        let (id, text) = (&asked["tool_call_id"], &asked["args"]["text"]);
        let answer = json!({"op": "tool_response", "tool_call_id": id, "ok": true, "result": {"text": text}});
        to.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Err("an agent without a bye".into())
}
