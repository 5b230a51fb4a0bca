//! Tickets: what a WebSocket is opened with, which cannot send a header from a page (HT-9).

use super::{SecretHash, Token, secret};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long a ticket is good.
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(30);

/// How many unused tickets there are at most; a further one displaces the oldest.
const TICKETS_MAX: usize = 4096;

/// How many unused tickets of a token there are at most; a further one displaces its oldest.
const TICKETS_OF_TOKEN_MAX: usize = 64;

/// The unused tickets, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<VecDeque<Ticket>>);

#[derive(Debug)]
struct Ticket {
    hash: SecretHash,
    until: Instant,
    token: Arc<Token>,
}

impl Tickets {
    /// A ticket that is good once, for what this token is good for.
    pub(crate) fn issue(&self, token: Arc<Token>) -> String {
        let ticket = secret::fresh("ticket_");
        let now = Instant::now();
        let mut all = self.0.lock();
        while all.len() >= TICKETS_MAX || all.front().is_some_and(|oldest| oldest.until <= now) {
            all.pop_front();
        }
        let own = |ticket: &Ticket| Arc::ptr_eq(&ticket.token, &token);
        if all.iter().filter(|ticket| own(ticket)).count() >= TICKETS_OF_TOKEN_MAX
            && let Some(oldest) = all.iter().position(own)
        {
            all.remove(oldest);
        }
        all.push_back(Ticket { hash: SecretHash::of(&ticket), until: now + TICKET_LIFE, token });
        ticket
    }

    /// The token for which this ticket was issued, if it is still good; it is not afterwards.
    pub(crate) fn redeem(&self, ticket: &str) -> Option<Arc<Token>> {
        let (hash, now) = (SecretHash::of(ticket), Instant::now());
        let mut all = self.0.lock();
        let at = all.iter().position(|ticket| ticket.hash.is(&hash))?;
        let good = |ticket: &Ticket| ticket.until > now && !ticket.token.gone.is_cancelled();
        all.remove(at).filter(good).map(|ticket| ticket.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;

    /// HT-9: a ticket is good once, and for 30 s.
    #[tokio::test(start_paused = true)]
    async fn a_ticket_is_good_once_and_not_for_long() {
        let token = Arc::new(Token::new("a", SecretHash::of("a"), [Scope::Observe]));
        let tickets = Tickets::default();
        let [used, late] = [(); 2].map(|()| tickets.issue(token.clone()));
        assert!(tickets.redeem(&used).is_some() && tickets.redeem(&used).is_none());
        tokio::time::advance(TICKET_LIFE).await;
        assert!(tickets.redeem(&late).is_none());
        let other = tickets.issue(Arc::new(Token::new("b", SecretHash::of("b"), [Scope::Observe])));
        (0..3 * TICKETS_MAX).for_each(|_| drop(tickets.issue(token.clone())));
        assert_eq!(tickets.0.lock().len(), TICKETS_OF_TOKEN_MAX + 1);
        assert!(tickets.redeem(&other).is_some(), "one token displaces only its own");
    }
}
