//! Whole-program figures: a mixed batch of tools that take their time, and the overhead of the program itself.
//!
//! ```text
//!   cargo build --release && cargo bench -p toolyard-bench --bench program
//! ```
//!
//! The program measured is the one beside this bench in the target directory; without one, its part is skipped.

mod mixed;
mod process;

fn main() -> Result<(), String> {
    // `cargo test` runs benches too: once, so that this does not rot.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 15 } else { 1 };
    mixed::measure(rounds)?;
    match process::program() {
        Some(program) => process::measure(&program, rounds),
        None => {
            println!("\nno program to measure: build it with `cargo build --release`");
            Ok(())
        }
    }
}

/// Returns the median.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
