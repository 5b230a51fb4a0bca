//! Which connections are open, and which one goes if there are too many.
//!
//! ```text
//!   accepted ─► stranger ──── first admitted request ────► member ─► closed
//!               bounded:                                   bounded:
//!               a new one closes the oldest                a new one is refused with 503
//! ```
//!
//! A stranger has sent nothing that was admitted: no request at all, or none with the token. However many there are,
//! they keep nobody waiting.

use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum number of connections that have not made an admitted request. Clients that connect at the same moment are
/// strangers together until their requests are read.
const STRANGERS_MAX: usize = 512;

/// Maximum number of other connections. A client has one for notifications and one for each request.
const MEMBERS_MAX: usize = 1024;

/// The open connections of a server that serves a gateway, alone or [mounted](crate::Gateway::mounted). Those on which
/// nothing was admitted are bounded apart from the others, so that however many connect and say nothing, they keep nobody
/// waiting. Cheap to clone; clones are the same. By default 512 are strangers and 1024 are members.
///
/// # Examples
/// ```
/// use toolyard_mcp::Connections;
/// let all = Connections::new(1, 1);
/// let (first, second) = (all.accept(), all.accept()); // the first one is to be closed: only one may say nothing
/// assert!(second.admit() && !first.admit());
/// ```
#[derive(Debug, Clone)]
pub struct Connections {
    strangers: Arc<Mutex<VecDeque<CancellationToken>>>,
    strangers_max: usize,
    members: Arc<Semaphore>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(STRANGERS_MAX, MEMBERS_MAX)
    }
}

impl Connections {
    /// No connections yet, and how many there may be: of those on which nothing was admitted, and of the others.
    pub fn new(strangers_max: usize, members_max: usize) -> Self {
        let members = Arc::new(Semaphore::new(members_max.min(Semaphore::MAX_PERMITS)));
        Self { strangers: Arc::default(), strangers_max, members }
    }

    /// Adds a connection that was accepted. If there are too many strangers, the oldest one is closed.
    pub fn accept(&self) -> Seat {
        let closed = CancellationToken::new();
        let mut strangers = self.strangers.lock();
        if strangers.len() >= self.strangers_max
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.cancel();
        }
        strangers.push_back(closed.clone());
        Seat(Arc::new(Place { all: self.clone(), closed, membership: OnceLock::new() }))
    }
}

/// A connection's place among the open ones, until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Seat(Arc<Place>);

#[derive(Debug)]
struct Place {
    all: Connections,
    closed: CancellationToken,
    membership: OnceLock<OwnedSemaphorePermit>,
}

impl Seat {
    /// Waits until the connection is to be closed in favour of a newer one.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Makes the connection a member, because a request on it was admitted; returns whether there was room.
    pub fn admit(&self) -> bool {
        let Place { all, membership, .. } = &*self.0;
        if membership.get().is_some() {
            return true;
        }
        let Ok(permit) = all.members.clone().try_acquire_owned() else { return false };
        // A connection has one request at a time, so nobody else sets it.
        let _ = membership.set(permit);
        self.0.leave_strangers();
        true
    }
}

impl Place {
    fn leave_strangers(&self) {
        // The newest are at the end, and most leave soon after they came.
        let mut strangers = self.all.strangers.lock();
        if let Some(at) = strangers.iter().rposition(|other| *other == self.closed) {
            strangers.remove(at);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave_strangers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(seat: &Seat) -> bool {
        seat.0.closed.is_cancelled()
    }

    /// However many connections say nothing, a new one is taken at once, and the oldest of them is closed.
    #[test]
    fn silent_connections_keep_nobody_waiting() {
        let all = Connections::default();
        let member = all.accept();
        assert!(member.admit());
        let silent: Vec<Seat> = (0..10 * MEMBERS_MAX).map(|_| all.accept()).collect();
        let closed = silent.iter().filter(|seat| is_closed(seat)).count();
        assert_eq!(closed, silent.len() - STRANGERS_MAX);
        assert!(silent[..closed].iter().all(is_closed) && !is_closed(&member));
        let new = all.accept();
        assert!(new.admit() && is_closed(&silent[closed]) && !is_closed(&silent[closed + 1]));
    }

    /// Members are bounded apart from strangers, and a place that is left is free again.
    #[test]
    fn members_are_bounded_apart() {
        let all = Connections::default();
        let mut members: Vec<Seat> = (0..MEMBERS_MAX).map(|_| all.accept()).collect();
        assert!(members.iter().all(Seat::admit) && members.iter().all(Seat::admit));
        let late = all.accept();
        assert!(!late.admit() && !is_closed(&late));
        members.pop();
        assert!(late.admit());
        drop((members, late));
        assert_eq!((all.strangers.lock().len(), all.members.available_permits()), (0, MEMBERS_MAX));
    }
}
