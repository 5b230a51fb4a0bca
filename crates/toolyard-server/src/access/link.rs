//! The link of the page: a code that is exchanged once for a key (HT-9).

use super::{Scope, SecretHash, Token, secret};
use parking_lot::Mutex;
use std::sync::Arc;

/// The name under which answers from the page are recorded.
const NAME: &str = "page";

/// What the page may do.
const SCOPES: [Scope; 3] = [Scope::Approve, Scope::Observe, Scope::Operate];

/// A code that has not been exchanged, and the key that it was exchanged for.
#[derive(Debug)]
pub(crate) struct Link {
    code: Mutex<Option<SecretHash>>,
    key: Mutex<Option<Arc<Token>>>,
}

impl Link {
    /// A link, and its code.
    pub(crate) fn fresh() -> (Self, String) {
        let code = secret::fresh("");
        (Self { code: Mutex::new(Some(SecretHash::of(&code))), key: Mutex::default() }, code)
    }

    /// Exchanges the code for a key. A code that was used, or is another, gives none.
    pub(crate) fn exchange(&self, code: &str) -> Option<(String, Arc<Token>)> {
        let given = SecretHash::of(code);
        self.code.lock().take_if(|code| code.is(&given))?;
        let key = secret::fresh("page_");
        let token = Arc::new(Token::new(NAME, SecretHash::of(&key), SCOPES));
        *self.key.lock() = Some(token.clone());
        Some((key, token))
    }

    /// The token of this key.
    pub(super) fn token(&self, hash: &SecretHash) -> Option<Arc<Token>> {
        self.key.lock().clone().filter(|token| token.hash.is(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-9: a code is good once, and its key has no `call`.
    #[test]
    fn a_code_is_good_once() {
        let (link, code) = Link::fresh();
        assert!(link.exchange("another").is_none());
        let (key, token) = link.exchange(&code).unwrap();
        assert!(link.exchange(&code).is_none());
        assert!(token.has(Scope::Approve) && !token.has(Scope::Call));
        assert!(link.token(&SecretHash::of(&key)).is_some() && link.token(&SecretHash::of(&code)).is_none());
    }
}
