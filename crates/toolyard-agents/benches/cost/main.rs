//! What agents as programs cost: a call that does nothing as a multiple of a bare program that parses and answers the same
//! lines; reads at once beside reads one after another; many agents at once; agents that are killed and replaced.
//!
//! ```text
//!   this process ── a supervisor, or a bare echo ──► itself again, as agents ──► times, as they measure them
//! ```
//!
//! `cargo bench -p toolyard-agents --bench cost`

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("cost: not measured: agents are confined on Linux alone");
}

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod bare;
#[cfg(target_os = "linux")]
mod measure;

#[cfg(target_os = "linux")]
fn main() -> Result<(), measure::Failed> {
    toolyard_process::help_if_asked();
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|arg| arg == agent::ROLE) {
        Some(at) => agent::main(&args[at + 1..]),
        None => measure::main(),
    }
}
