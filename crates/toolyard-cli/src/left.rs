//! Turns that somebody has left open who has gone: nothing of them starts (JR-8).

use crate::{display::count, error::chain};
use toolyard::Session;

/// Ends such a turn: a call that had not started is cancelled, of one that was running its tool says what became of it.
pub(crate) async fn end_turn(session: &Session, turn: u64, whose: &str) {
    let (name, agent) = (session.id(), session.agent());
    match session.resume(turn).await {
        Ok(resumed) => {
            // Nobody waits for what has not started.
            resumed.turn().cancel();
            let ended: usize = resumed.finish().await.iter().map(Vec::len).sum();
            anstream::eprintln!(
                "toolyard: turn {turn} of session {name}, which {whose} had left open, has ended: {}",
                count(ended, "call")
            );
        }
        Err(error) => {
            anstream::eprintln!("toolyard: --journal: session {name}, agent {agent}: {}", chain(&error));
        }
    }
}
