//! What a call costs, as a multiple of the least that it could: an instance of the same module in a bare store, with the
//! same input. Both are measured in turns, and the fastest round of each counts.
//!
//! `cargo bench -p toolyard-wasm --features runtime`

use std::time::Duration;
use tokio::{runtime::Builder, time::Instant};
use toolyard_test_modules::{ECHO, assemble};
use toolyard_wasm::{Run, Runtime, RuntimeOptions};
use wasmtime::{Config, Engine, InstancePre, Linker, Module, Store};
use wasmtime_wasi::{
    WasiCtxBuilder,
    p1::{self, WasiP1Ctx},
    p2::pipe::{MemoryInputPipe, MemoryOutputPipe},
};

/// The input of each call.
const INPUT: &str = r#"{"text":"so much depends upon a red wheel barrow"}"#;

/// How many calls a round has, and how many rounds there are. As a test it is only shown to work.
const ROUND: (usize, usize) = if cfg!(debug_assertions) { (20, 3) } else { (1000, 20) };

/// How many times a bare call one may take.
const GOAL: f64 = 2.0;

/// A module in the least that runs it.
struct Bare {
    engine: Engine,
    prepared: InstancePre<WasiP1Ctx>,
}

impl Bare {
    fn new(binary: &[u8]) -> wasmtime::Result<Self> {
        let engine = Engine::new(&Config::new())?;
        let mut linker = Linker::new(&engine);
        p1::add_to_linker_async(&mut linker, |wasi| wasi)?;
        let prepared = linker.instantiate_pre(&Module::from_binary(&engine, binary)?)?;
        Ok(Self { engine, prepared })
    }

    async fn call(&self) -> wasmtime::Result<Vec<u8>> {
        let output = MemoryOutputPipe::new(1 << 16);
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdin(MemoryInputPipe::new(INPUT)).stdout(output.clone());
        let mut store = Store::new(&self.engine, wasi.build_p1());
        let instance = self.prepared.instantiate_async(&mut store).await?;
        instance.get_typed_func::<(), ()>(&mut store, "_start")?.call_async(&mut store, ()).await?;
        Ok(output.contents().into())
    }
}

/// How long a round of this takes.
async fn round<T>(mut call: impl AsyncFnMut() -> T) -> Duration {
    let began = Instant::now();
    for _ in 0..ROUND.0 {
        call().await;
    }
    began.elapsed()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let binary = assemble(ECHO);
    let (bare, runtime) = (Bare::new(&binary)?, Runtime::new(RuntimeOptions::default())?);
    let module = runtime.load(&binary)?;
    let ours = async || module.run(Run::new().input(INPUT)).await.map(|ended| ended.output.into_text());
    Builder::new_current_thread().enable_time().build()?.block_on(async {
        assert_eq!(ours().await?, INPUT);
        assert_eq!(bare.call().await?, INPUT.as_bytes());
        let mut fastest = [Duration::MAX; 2];
        for _ in 0..ROUND.1 {
            fastest[0] = fastest[0].min(round(async || bare.call().await).await);
            fastest[1] = fastest[1].min(round(ours).await);
        }
        let [bare, ours] = fastest.map(|round| round.as_secs_f64() / ROUND.0 as f64 * 1e6);
        let ratio = ours / bare;
        let judged = if ratio <= GOAL { "met" } else { "missed" };
        println!("wasm: a bare call: {bare:.1} µs, 1.00 times a bare call");
        println!("wasm: a call: {ours:.1} µs, {ratio:.2} times a bare call (goal {GOAL}: {judged})");
        Ok(())
    })
}
