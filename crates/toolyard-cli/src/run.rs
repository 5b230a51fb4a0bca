//! `toolyard run`: runs the calls, with results on standard output and everything else on standard error.
//!
//! ```text
//!   input ─┬─ response ─► toolset blocks? ─┐
//!          ├─ stream, call by call ────────┤
//!          └─ episodes, line by line ──────┴─► runner ─► engine      interrupts ─► drain, then abandon
//! ```

pub(crate) mod ask;
mod ended_calls;
mod episodes;
pub(crate) mod interrupt;
mod live;
mod records;
mod response;
pub(crate) mod results;
mod runner;
mod stream;
mod toolset;

use crate::{
    cli::{ReportKind, RunArgs},
    error::Error,
    exit::Exit,
    export::Export,
    input::{Input, Origin},
    setup::Setup,
};
use interrupt::{Interrupts, Signal};
use records::Records;
use runner::{RunIo, Runner};

/// Runs the calls that the arguments name; `export` observes the engine.
pub(crate) async fn run(args: RunArgs, export: &Export) -> Result<Exit, Error> {
    let origin = Origin::of(&args.input)?;
    let mut setup = Setup::load(&args.setup)?;
    setup.max_in_flight = args.max_in_flight.or(setup.max_in_flight);
    let terminal = ask::terminal(&args)?;
    let interrupts = Interrupts::listen();
    let opening = {
        let (origin, from) = (origin.clone(), args.input.from);
        tokio::task::spawn_blocking(move || origin.open(from))
    };
    let input = tokio::select! {
        opened = opening => opened.map_err(|error| origin.error(error))??,
        () = interrupts.until(Signal::First) => return Ok(interrupted_early(&args)),
    };
    if matches!(input, Input::Episodes(_)) && args.to.is_some() {
        let why = "--to cannot be used with episodes: every turn has its own line of results";
        return Err(Error::Usage(why.to_owned()));
    }
    // Only now, so that an input that cannot be read leaves no files.
    let records = Records::open(&args, &origin, &setup)?;
    let connected = tokio::select! {
        connected = setup.connect() => connected,
        () = interrupts.until(Signal::First) => return Ok(interrupted_early(&args)),
    };
    connected?;
    let io = RunIo { records: &records, interrupts, terminal };
    let runner = Runner::open(&setup, &args, io, export).await?;
    let result = match input {
        Input::Response(text) => response::run(&runner, &args, &origin, &text).await,
        Input::Stream(lines) => stream::run(&runner, &args, &origin, lines).await,
        Input::Episodes(lines) => episodes::run(&runner, &origin, lines).await,
    };
    let exit = match &result {
        Ok(exit) => *exit,
        Err(error) => error.exit(),
    };
    let exit = runner.close(exit, if args.quiet { None } else { Some(&args.report) }).await;
    setup.disconnect(exit == Exit::Interrupted).await;
    if let Err(error) = &result {
        error.print();
    }
    let errors = records.finish();
    errors.iter().for_each(Error::print);
    Ok(errors.iter().fold(exit, |exit, error| exit.or(error.exit())))
}

const NOTHING_RUN: &str = "interrupted before the input was read: nothing was run";

fn interrupted_early(args: &RunArgs) -> Exit {
    if !args.quiet && args.report != ReportKind::Json {
        anstream::eprintln!("toolyard: {NOTHING_RUN}");
    }
    Exit::Interrupted
}
