//! The calls that a journal has open, for `toolyard check`.

use crate::{
    check::open::{OpenCall, OpenState},
    error::Error,
};
use std::path::Path;
use toolyard_journal::{BatchRow, CallRow, CallState, OpenTurn, Reader};

/// Reads them, beside whoever writes the journal: the oldest turn first.
pub(crate) fn open_calls(file: &Path) -> Result<Vec<OpenCall>, Error> {
    let reader = Reader::open(file)?;
    let mut all = Vec::new();
    for open in reader.open_turns()? {
        // Pruned or ended since.
        let Some(turn) = reader.turn_of(open.epoch, open.session.as_str(), open.turn)? else { continue };
        // A turn has those of several agents, each of which is open by itself.
        let own = turn.batches.into_iter().filter(|it| it.agent == open.agent && it.parent.is_none());
        all.extend(own.flat_map(|batch| of_batch(&open, batch)));
    }
    Ok(all)
}

fn of_batch(turn: &OpenTurn, batch: BatchRow) -> impl Iterator<Item = OpenCall> {
    let number = batch.batch;
    batch.calls.into_iter().filter_map(move |call| of_call(turn, number, call))
}

fn of_call(turn: &OpenTurn, batch: u64, row: CallRow) -> Option<OpenCall> {
    let CallRow { place, call, state, is_cancelled, .. } = row;
    let state = match state {
        CallState::Ended(_) => return None,
        CallState::Attempted { attempts } => {
            OpenState::Attempted { version: attempts.into_iter().next_back()?.version }
        }
        CallState::NotStarted if is_cancelled => OpenState::Cancelled,
        CallState::NotStarted => OpenState::NotStarted,
    };
    Some(OpenCall {
        session: turn.session.to_string(),
        agent: turn.agent.to_string(),
        turn: turn.turn,
        batch,
        place,
        call_id: call.id.to_string(),
        tool: call.name.to_string(),
        arguments: call.arguments.to_value(),
        state,
    })
}
