//! What clients of earlier lives have left open (JR-8). They have gone, so nothing of it starts: a call that had not started
//! is cancelled, of one that was running its tool says what became of it, and under its key that is given to whoever
//! sends it again.
//!
//! ```text
//!   open turns of MCP clients ─┬─ a tool's server is not there ─► left open, for a later life to ask
//!                              └─ taken up, cancelled, finished ─► in the journal
//! ```

use crate::{
    display::count,
    error::{Error, chain},
    journal::open_calls,
    left::end_turn,
    setup::Setup,
};
use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    time::Duration,
};
use tokio::time::timeout;
use toolyard::{Engine, OpenTurn, Session, SessionId, SessionOptions};
use toolyard_mcp::Gateway;

/// How long clients are kept waiting while tools are asked what became of calls. Then they are asked beside the clients'
/// calls; until a tool has answered, a key of such a call is `interrupted`.
const AT_START: Duration = Duration::from_secs(5);

/// Ends what clients of earlier lives have left open in this journal: those that had the session of this name, and those that
/// had one of their own.
pub(super) async fn end(
    engine: &Engine,
    setup: &Setup,
    journal: &Path,
    own: Option<&Session>,
    options: &SessionOptions,
) -> Result<(), Error> {
    let is_ours = |turn: &OpenTurn| {
        let is_own = own.is_some_and(|own| *own.id() == turn.session);
        is_own || turn.session.as_str().starts_with(Gateway::UNIQUE_PREFIX)
    };
    let open = engine.open_turns().map_err(|error| Error::Usage(format!("--journal: {}", chain(&error))))?;
    let open: Vec<OpenTurn> = open.into_iter().filter(is_ours).collect();
    if open.is_empty() {
        return Ok(());
    }
    let missing = missing(journal, setup)?;
    let (later, now): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|turn| missing.contains(&(turn.session.clone(), turn.turn)));
    if !later.is_empty() {
        anstream::eprintln!(
            "toolyard: {} of earlier clients stay open, because the servers of their tools are not there: see 'toolyard \
             check --journal {}'",
            count(later.len(), "turn"),
            journal.display()
        );
    }
    let mut by_session: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for turn in now {
        by_session.entry(turn.session.to_string()).or_default().push(turn.turn);
    }
    let (engine, options) = (engine.clone(), options.clone());
    let ending = tokio::spawn(async move {
        for (session, turns) in by_session {
            // Held until all of its turns have ended.
            let session = engine.session_with(session.as_str(), options.clone());
            for turn in turns {
                end_turn(&session, turn, "an earlier client").await;
            }
        }
    });
    // Beyond that it goes on by itself, until the engine is shut down.
    let _ = timeout(AT_START, ending).await;
    Ok(())
}

/// The turns with a call whose tool is not there now, and may be later.
fn missing(journal: &Path, setup: &Setup) -> Result<HashSet<(SessionId, u64)>, Error> {
    let open = open_calls(journal)?;
    let is_missing = |tool: &str| !setup.has_tool(tool) && setup.is_missing(tool);
    let missing = open.into_iter().filter(|call| is_missing(&call.tool));
    Ok(missing.map(|call| (SessionId::from(call.session.as_str()), call.turn)).collect())
}
