//! How much clients may send, and how much of it the gateway holds at once.
//!
//! ```text
//!   in_flight_bytes ─┬─ three quarters: requests until they are answered, as much as they take once parsed
//!                    │                  at most half of that for one client over HTTP
//!                    └─ a quarter:      messages that are being received
//! ```
//!
//! The parts are separate so that answers and cancellations, which end requests, get through when requests may not.

use super::weight;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Maximum size of a message of a client that has no session yet, in bytes.
const OPENING_BYTES_MAX: usize = 64 << 10;

/// Memory of a request beside what it says, in bytes: its task, its call and their places in line.
const REQUEST: usize = 2 << 10;

/// How much clients may send. What is over a limit is refused, and the client can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    message_bytes: usize,
    in_flight_bytes: usize,
}

impl Default for ClientLimits {
    /// 1 MiB a message and 64 MiB in flight.
    fn default() -> Self {
        Self { message_bytes: 1 << 20, in_flight_bytes: 64 << 20 }
    }
}

impl ClientLimits {
    /// Sets the maximum size of one message, in bytes, of a client that has a session. Before that it is 64 KiB, or
    /// this if it is less.
    #[must_use]
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.message_bytes = bytes;
        self
    }

    /// The maximum size of one message in bytes.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes
    }

    /// The maximum memory in bytes of all messages in flight.
    pub fn in_flight_bytes_max(&self) -> usize {
        self.in_flight_bytes
    }

    /// Sets the maximum memory, in bytes, that the messages of all clients take: while they are received, and, if they
    /// are requests, until they are answered. It is estimated from what a message takes once it is parsed, which may
    /// be a hundred times its size. One client over HTTP gets less than half of it.
    #[must_use]
    pub fn in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight_bytes = bytes;
        self
    }
}

/// The room that the messages of all clients share.
#[derive(Debug)]
pub(super) struct Room {
    limits: ClientLimits,
    arriving: Arc<Semaphore>,
    held: Arc<Semaphore>,
    held_max: usize,
}

impl Room {
    pub(super) fn new(limits: ClientLimits) -> Arc<Self> {
        // A semaphore takes no more.
        let in_flight = limits.in_flight_bytes.min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        let arriving = in_flight / 4;
        let held_max = in_flight - arriving;
        let (arriving, held) = (Arc::new(Semaphore::new(arriving)), Arc::new(Semaphore::new(held_max)));
        Arc::new(Self { limits, arriving, held, held_max })
    }

    /// Maximum size of a message.
    pub(super) fn message_max(&self, has_session: bool) -> usize {
        let max = self.limits.message_bytes;
        if has_session { max } else { max.min(OPENING_BYTES_MAX) }
    }

    /// A message that is about to be received.
    pub(super) fn arriving(&self) -> Arriving {
        Arriving { room: self.arriving.clone(), taken: None }
    }

    /// The share of the one client of a pipe: everything.
    pub(super) fn whole(self: &Arc<Self>) -> Share {
        Share { own: self.held.clone(), own_max: self.held_max, room: None }
    }

    /// The share of one of many clients.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        let own_max = self.held_max / 2;
        Share { own: Arc::new(Semaphore::new(own_max)), own_max, room: Some(self.held.clone()) }
    }
}

/// A message that is being received. It takes room for what has arrived, not for what its sender announces.
#[derive(Debug)]
pub(super) struct Arriving {
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Arriving {
    /// Takes room for more bytes; returns whether there is any.
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        let Ok(more) = take(&self.room, bytes) else { return false };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            taken => *taken = Some(more),
        }
        true
    }
}

/// The part of the room that a client may fill with unanswered requests.
#[derive(Debug, Clone)]
pub(super) struct Share {
    own: Arc<Semaphore>,
    own_max: usize,
    /// The room, if it has more than this share.
    room: Option<Arc<Semaphore>>,
}

/// Why a request has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// It takes more than this, which is all that a client may have.
    Ever { bytes: usize },
    /// Others have to be answered first.
    Now,
}

impl Share {
    /// Whether a message of these bytes is within the share once it is parsed.
    ///
    /// # Errors
    /// [`NoRoom::Ever`].
    pub(super) fn fits(&self, message: &[u8]) -> Result<usize, NoRoom> {
        let weight = weight::parsed(message);
        if weight > self.own_max { Err(NoRoom::Ever { bytes: self.own_max }) } else { Ok(weight) }
    }

    /// Takes room for a request until it is answered. `extra` is what comes with it, in bytes.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub(super) fn hold(&self, message: &[u8], extra: usize) -> Result<Held, NoRoom> {
        let bytes = self.fits(message)?.saturating_add(REQUEST).saturating_add(extra);
        let own = take(&self.own, bytes).map_err(|_| NoRoom::Now)?;
        let room = self.room.as_ref().map(|room| take(room, bytes)).transpose().map_err(|_| NoRoom::Now)?;
        Ok(Held(Arc::new((own, room))))
    }
}

/// Room that is taken until the last clone is dropped. It travels with its request.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "it is held, not read")]
pub(super) struct Held(Arc<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)>);

fn take(from: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, TryAcquireError> {
    let bytes = u32::try_from(bytes).map_err(|_| TryAcquireError::NoPermits)?;
    from.clone().try_acquire_many_owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(in_flight: usize) -> Arc<Room> {
        Room::new(ClientLimits::default().in_flight_bytes(in_flight))
    }

    /// Before a session exists a message is at most 64 KiB, and never more than what is set.
    #[test]
    fn a_client_without_a_session_may_send_less() {
        let room = Room::new(ClientLimits::default());
        assert_eq!((room.message_max(false), room.message_max(true)), (64 << 10, 1 << 20));
        let room = Room::new(ClientLimits::default().message_bytes(1000));
        assert_eq!((room.message_max(false), room.message_max(true)), (1000, 1000));
    }

    /// What arrives takes room as it arrives, and gives it back.
    #[test]
    fn messages_that_arrive_are_bounded_together() {
        let room = room(4000);
        let (mut first, mut second) = (room.arriving(), room.arriving());
        assert!(first.add(600) && second.add(300) && !second.add(101) && second.add(100));
        assert!(!room.arriving().add(1));
        drop(first);
        assert!(room.arriving().add(600) && !room.arriving().add(601));
    }

    /// Requests are bounded together, one client has at most half, and room comes back with the last clone.
    #[test]
    fn requests_are_bounded_over_all_clients() {
        let room = room(64 << 10);
        let (one, other, third) = (room.share(), room.share(), room.share());
        let message = [b'x'; 4096];
        let fill = |share: &Share| {
            let held: Vec<Held> = std::iter::from_fn(|| share.hold(&message, 0).ok()).collect();
            assert_eq!(share.hold(&message, 0).unwrap_err(), NoRoom::Now);
            held
        };
        let (of_one, of_other) = (fill(&one), fill(&other));
        assert_eq!((of_one.len(), of_other.len()), (2, 2));
        assert_eq!(third.hold(&message, 0).unwrap_err(), NoRoom::Now);
        let last = of_one[1].clone();
        drop(of_one);
        assert_eq!(fill(&third).len(), 1);
        drop(last);
        assert_eq!(fill(&third).len(), 2);
    }

    /// A message that can never fit is told apart from one that has to wait.
    #[test]
    fn a_message_that_never_fits_is_told_so() {
        let room = room(64 << 10);
        let many = b"[0".iter().chain(b",0".repeat(200).iter()).copied().collect::<Vec<u8>>();
        assert_eq!(room.share().hold(&many, 0).unwrap_err(), NoRoom::Ever { bytes: 24 << 10 });
        assert!(room.whole().hold(&many, 0).is_ok());
    }
}
