//! Modules that are run: what they are given, what they cannot reach, and what bounds them.
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod c;
mod contract;
mod files;
mod limits;
mod loading;

use std::sync::OnceLock;
use toolyard_test_modules::{assemble, component};
use toolyard_wasm::{Ended, Module, Run, Runtime, RuntimeOptions};

/// One compiler for all tests.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new(RuntimeOptions::default()).unwrap())
}

fn load(binary: &[u8]) -> Module {
    runtime().load(binary).unwrap()
}

/// A module in both forms.
fn both(text: &str) -> [Module; 2] {
    let command = assemble(text);
    [load(&command), load(&component(&command))]
}

async fn run(module: &Module, run: Run) -> Ended {
    module.run(run).await.unwrap()
}
