//! The shell tool on the whole engine, with real processes.
//!
//! Real processes know no paused time, so these tests poll for conditions, each with a bound far beyond the usual time.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod census;
mod commands;
mod containment;
mod endings;
mod output;
mod runs;

use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;
use toolyard::{Call, Confirmations, Engine, EngineBuilder, Outcome};
use toolyard_process::{Containment, Helper};
use toolyard_tests::Recorder;
use toolyard_tools::shell::Shell;

/// The program that supervises the commands of these tests.
const SUPERVISED: &str = env!("CARGO_BIN_EXE_supervised");

/// An engine with a shell over a temporary directory, whose path marks the processes of its commands.
struct Yard {
    engine: Engine,
    events: Recorder,
    root: TempDir,
}

impl Yard {
    fn mark(&self) -> String {
        self.root.path().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    /// Runs one command.
    async fn run(&self, command: &str) -> Outcome {
        self.call(Call::new("a", "shell", json!({ "command": self.marked(command) }))).await
    }

    async fn call(&self, call: Call) -> Outcome {
        self.engine.session("s").dispatch(vec![call]).await.remove(0)
    }

    /// The command with the mark in its text and in the environment of everything it starts.
    fn marked(&self, command: &str) -> String {
        format!("export MARK={}\n{command}", self.mark())
    }

    /// The streamed output.
    fn deltas(&self) -> Vec<String> {
        let events = self.events.events();
        let delta = |event: toolyard::Event| match event.kind {
            toolyard::EventKind::OutputDelta { text } => Some(text),
            _ => None,
        };
        events.into_iter().filter_map(delta).collect()
    }
}

fn supervised() -> Containment {
    Containment::Helper(Helper::program(SUPERVISED))
}

async fn yard() -> Yard {
    yard_with(Shell::new(supervised()), |builder| builder).await
}

async fn yard_with(shell: Shell, with: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Yard {
    let (events, root) = (Recorder::default(), tempfile::tempdir().unwrap());
    let builder = Engine::builder()
        .tools(toolyard_tools::workspace(root.path()).unwrap())
        .tool(shell)
        .confirmations(Confirmations::auto())
        .events(events.clone());
    Yard { engine: with(builder).build().await.unwrap(), events, root }
}

/// Waits until a condition holds, for half a minute at most.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came to this: {what}");
}
