//! Episodes: one session each, with its turns in order and one output line per turn.

use super::{results, yard::Yard};
use crate::{
    exit::Exit,
    fault::Fault,
    input::{Line, Lines, Origin},
    report::Turn,
};
use tokio::sync::mpsc;
use toolyard_wire::Episode;

/// The number of unreadable lines that are reported one by one.
const FAULTS_MAX: usize = 10;

/// Runs every episode. A line that cannot be read does not affect the others.
pub(super) async fn run(yard: &mut Yard, origin: &Origin, lines: Lines) -> Result<Exit, Fault> {
    let mut lines = read_ahead(lines);
    let mut faults = 0;
    while let Some(line) = next(yard, &mut lines).await {
        let fault = match episode(&line) {
            Ok(episode) => {
                play(yard, &episode).await?;
                continue;
            }
            Err(why) => origin.line_fault(line.number, why),
        };
        faults += 1;
        if faults <= FAULTS_MAX {
            yard.print(|| fault.print());
        }
    }
    if faults > FAULTS_MAX {
        let more = faults - FAULTS_MAX;
        yard.say(&format!("{origin}: … and {more} more lines could not be read as episodes"));
    }
    Ok(if faults > 0 { Exit::Input } else { Exit::Ok })
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
async fn next(yard: &mut Yard, lines: &mut mpsc::Receiver<Line>) -> Option<Line> {
    if yard.is_interrupted() {
        return None;
    }
    tokio::select! {
        biased;
        () = yard.interrupted() => None,
        line = lines.recv() => line,
    }
}

fn episode(line: &Line) -> Result<Episode, String> {
    let text = line.text.as_ref().map_err(ToString::to_string)?;
    Episode::parse_line(text).map_err(|error| error.to_string())
}

/// Runs the turns of an episode. After an interrupt the engine is drained, and answers the remaining turns as such.
async fn play(yard: &mut Yard, episode: &Episode) -> Result<(), Fault> {
    let session = yard.session(episode.id.as_str());
    for (number, calls) in episode.turns.iter().enumerate() {
        let played = yard.play(&session, calls).await;
        let printed = yard.print(|| results::print_line(&episode.results(number, &played.outcomes)));
        let turn = Turn { episode: episode.id.clone(), turn: number };
        yard.record(Some(turn), played);
        printed?;
    }
    Ok(())
}
