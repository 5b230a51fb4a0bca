//! Episodes: one session each, with its turns in order and one output line per turn.

use super::{results, runner::Runner};
use crate::{
    error::Error,
    exit::Exit,
    input::{Line, Lines, Origin},
    report::Turn,
};
use tokio::sync::mpsc;
use toolyard_wire::{DecodeError, Episode};

/// The number of unreadable lines that are reported one by one.
const ERRORS_MAX: usize = 10;

/// Runs every episode. A line that cannot be read does not affect the others.
pub(super) async fn run(runner: &Runner, origin: &Origin, lines: Lines) -> Result<Exit, Error> {
    let mut lines = read_ahead(lines);
    let (mut errors, mut is_blank) = (0, true);
    while let Some(line) = next(runner, &mut lines).await {
        is_blank = false;
        let error = match episode(&line) {
            Ok(episode) => {
                run_turns(runner, &episode).await?;
                continue;
            }
            Err(why) => origin.line_error(line.number, why),
        };
        errors += 1;
        if errors <= ERRORS_MAX {
            runner.print(|| error.print());
        }
    }
    if is_blank && !runner.is_interrupted() {
        return Err(origin.error(DecodeError::Empty));
    }
    if errors > ERRORS_MAX {
        let more = errors - ERRORS_MAX;
        runner.notify(&format!("{origin}: … and {more} more lines could not be read as episodes"));
    }
    Ok(if errors > 0 { Exit::Input } else { Exit::Ok })
}

/// Reads on a blocking thread, so that an interrupt does not wait for it.
fn read_ahead(lines: Lines) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        for line in lines {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next line; `None` at the end or after an interrupt.
async fn next(runner: &Runner, lines: &mut mpsc::Receiver<Line>) -> Option<Line> {
    if runner.is_interrupted() {
        return None;
    }
    tokio::select! {
        biased;
        () = runner.interrupted() => None,
        line = lines.recv() => line,
    }
}

fn episode(line: &Line) -> Result<Episode, String> {
    let text = line.text.as_ref().map_err(ToString::to_string)?;
    Episode::parse_line(text).map_err(|error| error.to_string())
}

/// Runs the turns of an episode. After an interrupt the engine is drained, and answers the remaining turns as such.
async fn run_turns(runner: &Runner, episode: &Episode) -> Result<(), Error> {
    let session = runner.session(episode.id.as_str());
    for (number, calls) in episode.turns.iter().enumerate() {
        let result = runner.run_batch(&session, calls).await;
        let printed = runner.print(|| results::print_line(&episode.results(number, &result.outcomes)));
        let turn = Turn { episode: episode.id.clone(), turn: number };
        runner.record(Some(turn), result);
        printed?;
    }
    Ok(())
}
