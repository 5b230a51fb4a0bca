//! The bearer token that clients have to send.

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;

/// Minimum number of characters of a token where others can reach the address: enough that it cannot be guessed.
const CHARS_MIN: usize = 16;

/// Which token admits a client. The token itself is not kept.
#[derive(Clone)]
pub(super) struct Token {
    digest: [u8; 32],
    chars: usize,
}

/// Why a token does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadToken {
    Empty,
    /// It has fewer characters than this.
    Short(usize),
}

impl Token {
    /// The token, without white space around it, which no client could send.
    pub(super) fn new(token: &str) -> Self {
        let token = token.trim();
        Self { digest: Sha256::digest(token).into(), chars: token.chars().count() }
    }

    /// Checks that the token guards this address.
    pub(super) fn check(&self, address: SocketAddr) -> Result<(), BadToken> {
        match self.chars {
            0 => Err(BadToken::Empty),
            chars if chars < CHARS_MIN && !address.ip().is_loopback() => Err(BadToken::Short(CHARS_MIN)),
            _ => Ok(()),
        }
    }

    /// Whether a request has it. Compares digests, so that timing reveals nothing about the token.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.split_once(' '));
        given.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && Sha256::digest(given.trim()).as_slice() == self.digest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(token: &str, given: Option<&str>) -> bool {
        let given = given.map(|given| (header::AUTHORIZATION, given.parse().unwrap()));
        Token::new(token).is_in(&given.into_iter().collect())
    }

    /// Only the right token is admitted.
    #[test]
    fn only_the_right_token_is_admitted() {
        assert!(is_in("s3cret", Some("Bearer s3cret")) && is_in("s3cret\n", Some("bearer s3cret")));
        for wrong in [None, Some("Bearer s3cre"), Some("Basic s3cret"), Some("s3cret"), Some("Bearer ")] {
            assert!(!is_in("s3cret", wrong), "{wrong:?}");
        }
    }

    /// A token that anyone could guess does not guard an address that anyone can reach, and an empty one guards none.
    #[test]
    fn a_token_must_not_be_guessed() {
        let (public, own) = ("0.0.0.0:80".parse().unwrap(), "[::1]:80".parse().unwrap());
        let check = |token: &str, address| Token::new(token).check(address);
        assert_eq!(check(&"x".repeat(15), public), Err(BadToken::Short(16)));
        assert_eq!(check(&"x".repeat(16), public), Ok(()));
        assert_eq!(check("x", own), Ok(()));
        for empty in ["", " \n"] {
            assert_eq!(
                (check(empty, own), check(empty, public)),
                (Err(BadToken::Empty), Err(BadToken::Empty))
            );
        }
    }
}
