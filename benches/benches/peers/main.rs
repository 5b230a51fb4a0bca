//! The engine beside what people use instead of it, in one process.
//!
//! ```text
//!   cargo bench -p toolyard-bench --bench peers [-- --json]
//! ```
//!
//! All run the same tool, which does nothing, and the same batches, 20 calls at once. None of the others does
//! everything that the engine does: each file says what is missing.

mod by_hand;
mod rig_server;
mod tower_stack;

use std::{sync::Arc, time::Duration};
use toolyard::Engine;
use toolyard_bench::{Axis, Building, Contenders, Floor, Handler, Options, Unit, Yard, measure_axes, spec};

/// As wide as the engine's read pool.
const WIDTH: usize = 20;
/// The engine's own timeout for tools that read.
const TIMEOUT: Duration = Duration::from_secs(30);

const READY: Axis = Axis {
    name: "peers",
    about: "what people use, with tools that are ready at once",
    sizes: &[1, 8, 40, 1000],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build: || build(Handler::Ready),
};

const SLEEPING: Axis = Axis {
    name: "peers, sleeping",
    about: "the same with tools that sleep for a millisecond",
    rounds: 9,
    calls_per_sample: 200,
    build: || build(Handler::Sleeps(Duration::from_millis(1))),
    ..READY
};

fn main() -> Result<(), String> {
    let args: Vec<_> = std::env::args().collect();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let axes = [READY, SLEEPING];
    let (axes, options) = if has("--bench") {
        (axes, Options::default())
    } else {
        let options = Options { sizes: vec![3], rounds: Some(1), ..Options::default() };
        (axes.map(|axis| Axis { calls_per_sample: 3, ..axis }), options)
    };
    let report = measure_axes(&axes, &options, |_| ())?;
    if has("--json") {
        println!("{}", serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?);
    } else {
        println!("{report}");
    }
    Ok(())
}

fn build(handler: Handler) -> Building {
    Box::pin(async move {
        let full = Yard::new("full", Engine::builder(), spec("nothing"), handler).await?;
        let inline = Yard::new("inline", Engine::builder(), spec("nothing").inline(), handler).await?;
        let all: Contenders = vec![
            Floor::of(handler),
            Arc::new(by_hand::ByHand::new(handler)),
            Arc::new(tower_stack::Tower::new(handler)),
            Arc::new(rig_server::Rig::new(handler)?),
            Arc::new(full),
            Arc::new(inline),
        ];
        Ok(all)
    })
}
