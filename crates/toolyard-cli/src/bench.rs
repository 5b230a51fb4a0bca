//! `toolyard bench`: measures this machine against the floor.

use crate::{cli::BenchArgs, error::Error, exit::Exit, run::results};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal, thread};
use toolyard_bench::{Options, Report, measure};

/// Number of steps of the progress bar.
const STEPS: u32 = 1000;

/// Measures and prints the report.
pub(crate) fn bench(args: BenchArgs) -> Result<Exit, Error> {
    let sizes = args.calls.into_iter().map(usize::from).collect();
    let rounds = args.rounds.map(usize::from);
    let options = Options { sizes, rounds, only: args.only, axes: args.axis, all: args.all };
    let bar = progress();
    // On its own thread: the measurement starts a runtime, which cannot be done inside another.
    let measured = thread::scope(|scope| {
        let measuring =
            scope.spawn(|| measure(&options, |done| bar.set_position((done * f64::from(STEPS)) as u64)));
        measuring.join().unwrap_or_else(|_| Err("the measurement panicked".to_owned()))
    });
    bar.finish_and_clear();
    print(&measured.map_err(Error::Bench)?, args.json)?;
    Ok(Exit::Ok)
}

fn print(report: &Report, json: bool) -> Result<(), Error> {
    match json {
        true => {
            let report = serde_json::to_value(report).map_err(|error| Error::Bench(error.to_string()))?;
            results::print_pretty(&report)
        }
        false => results::print_text(&report.to_string()),
    }
}

/// A progress bar if standard error is a terminal, or else a hidden one.
fn progress() -> ProgressBar {
    let is_terminal = std::io::stderr().is_terminal();
    let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(STEPS.into()), target);
    let style = ProgressStyle::with_template("{bar:40} {percent}% measured");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
