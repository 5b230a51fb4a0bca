//! Agents whose calls a journal has, when they are started again (CL-8, JR-8).

use crate::{
    cli::SuperviseArgs,
    error::{Error, chain},
    journal_file::JournalFile,
    left::end_turn,
};
use std::sync::{Arc, OnceLock};
use toolyard::{Engine, ForkPolicy, Session};
use toolyard_agents::Recorded;

/// What agents were answered before in the session of the arguments, which needs the engine once that is built.
pub(super) fn recorded(
    args: &SuperviseArgs,
    journal: &JournalFile,
    engine: &Arc<OnceLock<Engine>>,
) -> Result<Option<Arc<dyn Recorded>>, Error> {
    match &args.session {
        Some(session) => journal.recorded(session, Arc::clone(engine)),
        None => Ok(None),
    }
}

/// Ends what agents of earlier lives have left open in this session: they are started anew, and ask again for what they
/// still want. What others had started for them ended with the call of `Agent`.
pub(super) async fn end_left(engine: &Engine, session: &Session) -> Result<(), Error> {
    let open = engine.open_turns().map_err(|error| Error::Usage(format!("--journal: {}", chain(&error))))?;
    for turn in open.iter().filter(|turn| turn.session == *session.id()) {
        if turn.agent == *session.agent() {
            end_turn(session, turn.turn, "an earlier program").await;
            continue;
        }
        // The agent of that name, until it is started.
        let policy = ForkPolicy::default().name(turn.agent.name());
        match session.fork(policy) {
            Ok(agent) => end_turn(&agent, turn.turn, "an earlier agent").await,
            Err(error) => anstream::eprintln!("toolyard: --journal: agent {}: {error}", turn.agent),
        }
    }
    Ok(())
}
