//! Messages over HTTP, read no further than there is a place for them.

use super::{Intake, Place, SHORT_BYTES, Slow};
use tokio::time::timeout_at;

/// The place of a message that is read in pieces, as soon as it needs one.
#[derive(Debug)]
pub(crate) struct Pace {
    intake: Intake,
    place: Option<Place>,
}

impl Intake {
    /// For one message after another.
    pub(crate) fn pace(&self) -> Pace {
        Pace { intake: self.clone(), place: None }
    }
}

impl Pace {
    /// Reads the next piece of a message of which this many bytes have been read. Waits for a place if it needs one.
    ///
    /// # Errors
    /// [`Slow`] if the time of the place is over.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing but what `read` loses.
    pub(crate) async fn read<T>(&mut self, bytes: usize, read: impl Future<Output = T>) -> Result<T, Slow> {
        if self.place.is_none() && bytes > SHORT_BYTES {
            let permit = self.intake.0.clone().acquire_owned().await.expect("the places are never closed");
            self.place = Some(Place::new(permit));
        }
        match &self.place {
            None => Ok(read.await),
            Some(place) => timeout_at(place.deadline, read).await.map_err(|_| Slow),
        }
    }

    /// Gives the place back: the message has been parsed.
    pub(crate) fn done(&mut self) {
        self.place = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protocol::intake::PLACES;
    use futures::FutureExt;
    use std::future::{pending, ready};

    /// A long message over HTTP takes one of the places that there are for all servers, and a short one none.
    #[tokio::test(start_paused = true)]
    async fn long_messages_wait_for_a_place_and_short_ones_do_not() {
        let intake = Intake::default();
        let mut all: Vec<Pace> = (0..PLACES).map(|_| intake.pace()).collect();
        for pace in &mut all {
            assert_eq!(pace.read(SHORT_BYTES + 1, ready(1)).await, Ok(1));
        }
        let mut fifth = intake.pace();
        assert_eq!(fifth.read(SHORT_BYTES, ready(2)).now_or_never(), Some(Ok(2)));
        assert_eq!(fifth.read(SHORT_BYTES + 1, ready(3)).now_or_never(), None, "there was a fifth place");
        all[0].done();
        assert_eq!(fifth.read(SHORT_BYTES + 1, ready(3)).now_or_never(), Some(Ok(3)));
    }

    /// A server that holds a place and sends no more loses it.
    #[tokio::test(start_paused = true)]
    async fn a_place_is_not_held_for_ever() {
        let intake = Intake::default();
        let mut pace = intake.pace();
        assert_eq!(pace.read(SHORT_BYTES + 1, pending::<()>()).await, Err(Slow));
        drop(pace);
        assert_eq!(intake.0.available_permits(), PLACES);
    }
}
