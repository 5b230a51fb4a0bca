//! What a connection holds while it is open: its place among all of them, and among those of its token.

use super::{Place, Places};
use crate::{access::Token, problem::Problem};
use std::sync::{Arc, OnceLock};
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolyard_mcp::Seat;

/// What a connection holds. Cheap to clone; the last clone lets go of it.
#[derive(Debug, Clone)]
pub(crate) struct Held(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    seat: Seat,
    of_token: OnceLock<Place>,
    /// The server waits for it when it stops.
    _open: TaskTrackerToken,
}

impl Held {
    pub(crate) fn new(seat: Seat, open: TaskTrackerToken) -> Self {
        Self(Arc::new(Inner { seat, of_token: OnceLock::new(), _open: open }))
    }

    /// Notes that a request with this token was admitted on the connection.
    ///
    /// # Errors
    /// A [`Problem`]: the token has too many connections, or there are too many altogether.
    pub(super) fn admit(&self, connections: &Places, token: &Token) -> Result<(), Problem> {
        if self.0.of_token.get().is_some() {
            return Ok(());
        }
        let place = connections.open(token)?;
        if !self.0.seat.admit() {
            return Err(Problem::no_room("there are too many connections"));
        }
        // A connection has one request at a time, so nobody else sets it.
        let _ = self.0.of_token.set(place);
        Ok(())
    }
}
