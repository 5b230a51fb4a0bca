//! Who may do what (HT-6, HT-7).
//!
//! ```text
//!   Authorization: Bearer … ─► SHA-256 ─┬─ a configured token ──┐
//!                                       └─ the page's key ──────┴─► Caller ─► may(scope)? ─► 403
//!   ?ticket=… ─────────────► one use ────────────────────────────────┘
//! ```

mod link;
mod scope;
mod secret;
mod tickets;
mod token;

pub(crate) use link::Link;
pub use scope::{Scope, UnknownScope};
pub use secret::{SecretHash, SecretHashError};
pub(crate) use tickets::{TICKET_LIFE, Tickets};
pub(crate) use token::PARENT;
pub use token::{SelfApproval, Token};

use crate::problem::Problem;
use axum::http::{HeaderMap, header};
use parking_lot::RwLock;
use std::sync::Arc;

/// A new bearer token, to be given to somebody and not kept: what a server is configured with is its
/// [hash](SecretHash::of).
///
/// # Examples
/// ```
/// let token = toolyard_server::new_token();
/// assert!(token.starts_with("toolyard_") && token.len() > 40);
/// ```
pub fn new_token() -> String {
    secret::fresh("toolyard_")
}

/// Who is admitted.
#[derive(Debug, Default)]
pub(crate) struct Access {
    tokens: RwLock<Vec<Arc<Token>>>,
    link: Option<Link>,
    /// Who calls without a token, where that is allowed (HT-6).
    anybody: Option<Arc<Token>>,
    pub(crate) tickets: Tickets,
}

impl Access {
    pub(crate) fn new(tokens: Vec<Token>, link: Option<Link>, anybody: Option<Token>) -> Self {
        let tokens = RwLock::new(tokens.into_iter().map(Arc::new).collect());
        Self { tokens, link, anybody: anybody.map(Arc::new), tickets: Tickets::default() }
    }

    /// Admits these from now on, and returns those that are not admitted any more; whatever they have open ends. One that
    /// is as it was stays the same.
    pub(crate) fn replace(&self, tokens: Vec<Token>) -> Vec<Arc<Token>> {
        let mut all = self.tokens.write();
        let same = |token: &Token| all.iter().find(|known| known.is(token)).cloned();
        let next: Vec<_> =
            tokens.into_iter().map(|token| same(&token).unwrap_or_else(|| Arc::new(token))).collect();
        let mut before = std::mem::replace(&mut *all, next);
        before.retain(|known| !all.iter().any(|token| Arc::ptr_eq(token, known)));
        before.iter().for_each(|gone| gone.gone.cancel());
        before
    }

    /// Whether anybody can answer questions.
    pub(crate) fn has_approvers(&self) -> bool {
        self.link.is_some() || self.tokens.read().iter().any(|token| token.has(Scope::Approve))
    }

    /// The token of this name that may make calls.
    pub(crate) fn caller_named(&self, name: &str) -> Option<Arc<Token>> {
        let is_of = |token: &&Arc<Token>| token.name() == name && token.has(Scope::Call);
        self.tokens.read().iter().chain(&self.anybody).find(is_of).cloned()
    }

    /// The link of the page, if there is one.
    pub(crate) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Who makes this request.
    ///
    /// # Errors
    /// A [`Problem`] of status 401.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return self.anybody.clone().map(Caller).ok_or_else(Problem::no_token);
        };
        let given = given.to_str().ok().and_then(|given| given.split_once(' '));
        let bearer = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let hash = SecretHash::of(bearer.ok_or_else(Problem::no_token)?.1.trim());
        // All of them are looked at, so that time does not tell which one was nearly right.
        let token = self
            .tokens
            .read()
            .iter()
            .fold(None, |found, token| if token.hash.is(&hash) { Some(token.clone()) } else { found });
        let token = token.or_else(|| self.link.as_ref()?.token(&hash));
        token.map(Caller).ok_or_else(Problem::unknown_token)
    }
}

/// Whoever makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<Token>);

impl Caller {
    /// Passes if the caller's token has one of these scopes.
    ///
    /// # Errors
    /// A [`Problem`] of status 403 that names what is missing.
    pub(crate) fn needs(&self, any: &[Scope]) -> Result<(), Problem> {
        if any.iter().any(|scope| self.0.has(*scope)) {
            return Ok(());
        }
        let words: Vec<&str> = any.iter().map(|scope| scope.as_str()).collect();
        Err(Problem::scope(&words.join(" or ")))
    }

    /// Whether it may see what belongs to others (HT-7).
    pub(crate) fn sees_all(&self) -> bool {
        [Scope::Approve, Scope::Observe, Scope::Operate].iter().any(|scope| self.0.has(*scope))
    }

    /// Whether something of this owner is its own.
    pub(crate) fn is(&self, owner: &Token) -> bool {
        self.0.is_of(owner)
    }
}
