//! `toolyard run`: runs the calls, with results on standard output and everything else on standard error.
//!
//! ```text
//!   input ─┬─ response ─► toolset blocks? ─┐
//!          ├─ stream, call by call ────────┤
//!          └─ episodes, --jobs at a time ──┴─► runner ─► engine      interrupts ─► drain, then abandon
//! ```

pub(crate) mod ask;
mod count;
mod drained;
mod durable;
mod ended_calls;
mod episodes;
pub(crate) mod interrupt;
mod kept;
mod live;
mod order;
mod records;
mod response;
pub(crate) mod results;
mod results_file;
mod runner;
mod stream;
mod toolset;
mod work;

use crate::{
    cli::RunArgs, error::Error, exit::Exit, export::Export, input::Origin, journal_file::JournalFile,
    setup::Setup, stand_ins::Replay,
};
use interrupt::{Interrupts, Signal};
use records::Records;
use runner::{RunIo, Runner};
use std::sync::Arc;
use work::Work;

/// Runs the calls that the arguments name; `export` observes the engine.
pub(crate) async fn run(args: RunArgs, export: &Export) -> Result<Exit, Error> {
    let origin = if args.session.resume { Origin::Stdin } else { Origin::of(&args.input)? };
    let mut setup = Setup::load(&args.setup)?;
    setup.max_in_flight = args.max_in_flight.or(setup.max_in_flight);
    setup.stand_ins.set_seed(args.stand_ins.seed);
    replay(&mut setup, &args)?;
    let terminal = ask::terminal(&args)?;
    let interrupts = Interrupts::listen();
    let work = match args.session.resume {
        true => Work::left(&args).map(Some)?,
        false => work(&args, &origin, &setup, &interrupts).await?,
    };
    let Some(work) = work else { return Ok(interrupted_early(&args)) };
    // Only now, so that an input that cannot be read leaves no files.
    let records = Records::open(&args, &origin, &setup)?;
    // Before servers are started, which share its lock (JR-4).
    let journal = tokio::select! {
        journal = JournalFile::open(&args.journal, &setup) => journal?,
        () = interrupts.until(Signal::First) => return Ok(interrupted_early(&args)),
    };
    let connected = tokio::select! {
        connected = setup.connect() => connected,
        () = interrupts.until(Signal::First) => return Ok(interrupted_early(&args)),
    };
    connected?;
    let io = RunIo { records: &records, interrupts, terminal, journal: journal.clone() };
    let runner = Arc::new(Runner::open(&setup, &args, io, export).await?);
    // A run that comes to nothing leaves an earlier record.
    records.declare(&setup);
    let result = match work {
        Work::Response(text) => response::run(&runner, &args, &origin, &text).await,
        Work::Left => durable::resume(&runner, &args).await,
        Work::Stream(lines) => stream::run(&runner, &args, &origin, lines).await,
        Work::Episodes(plan) => episodes::run(&runner, &origin, plan).await,
    };
    let exit = match &result {
        Ok(exit) => *exit,
        Err(error) => error.exit(),
    };
    let exit = runner.close(exit, if args.quiet { None } else { Some(&args.report) }).await;
    setup.disconnect(exit == Exit::Interrupted).await;
    let exit = match journal.close().await {
        Ok(()) => exit,
        Err(error) => {
            error.print();
            exit.or(error.exit())
        }
    };
    if let Err(error) = &result {
        error.print();
    }
    let errors = records.finish();
    errors.iter().for_each(Error::print);
    Ok(errors.iter().fold(exit, |exit, error| exit.or(error.exit())))
}

/// Reads the input; `None` if a signal comes first.
async fn work(
    args: &RunArgs,
    origin: &Origin,
    setup: &Setup,
    interrupts: &Interrupts,
) -> Result<Option<Work>, Error> {
    let opening = {
        let (origin, from) = (origin.clone(), args.input.from);
        tokio::task::spawn_blocking(move || origin.open(from))
    };
    let input = tokio::select! {
        opened = opening => opened.map_err(|error| origin.error(error))??,
        () = interrupts.until(Signal::First) => return Ok(None),
    };
    tokio::select! {
        work = Work::of(input, args, origin, setup) => work.map(Some),
        () = interrupts.until(Signal::First) => Ok(None),
    }
}

/// Answers calls from an earlier run, if one is named.
fn replay(setup: &mut Setup, args: &RunArgs) -> Result<(), Error> {
    let Some(file) = &args.stand_ins.replay else { return Ok(()) };
    let replay = Replay::open(file, args.stand_ins.replay_latency)?;
    if let Some(remark) = replay.remark()
        && args.shows_messages()
    {
        anstream::eprintln!("toolyard: {remark}");
    }
    setup.replay(Arc::new(replay));
    Ok(())
}

const NOTHING_RUN: &str = "interrupted before the input was read: nothing was run";

fn interrupted_early(args: &RunArgs) -> Exit {
    if args.shows_messages() {
        anstream::eprintln!("toolyard: {NOTHING_RUN}");
    }
    Exit::Interrupted
}
