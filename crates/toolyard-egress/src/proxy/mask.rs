//! Secrets in what an upstream sends back.
//!
//! Some upstreams say what they were sent: an echo for debugging, or an error that quotes the key. A secret in it is
//! written over, byte for byte, so that no length changes. This finds a secret as it was sent, also across pieces; it
//! does not find one that the upstream has encoded, or sends in parts that the program asks for.

use aho_corasick::{AhoCorasick, MatchKind};
use http::{HeaderMap, HeaderValue};

/// Shorter texts occur everywhere.
const SECRET_BYTES_MIN: usize = 6;

/// What secrets are written over with.
const COVER: u8 = b'*';

/// The secrets that are sent to an upstream.
pub(super) struct Mask {
    secrets: Vec<Vec<u8>>,
    /// The bytes of the longest of them.
    longest: usize,
    finder: AhoCorasick,
}

impl Mask {
    /// A mask for the values of these headers, and for what stands behind a scheme in them: in `Bearer hunter22` it is
    /// the last word. `None` if there is nothing to hide.
    pub(super) fn new(headers: &HeaderMap) -> Option<Self> {
        let words = |value: &HeaderValue| {
            let whole = value.as_bytes().to_vec();
            let last = whole.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default().to_vec();
            [whole, last]
        };
        let secrets: Vec<Vec<u8>> =
            headers.values().flat_map(words).filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
        let longest = secrets.iter().map(Vec::len).max()?;
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&secrets);
        let finder = finder.expect("what is configured is bounded, far below the 2^31 states of a finder");
        Some(Self { secrets, longest, finder })
    }

    /// Covers secrets in the values of headers. A header whose name is one is left out.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        let is_secret = |name: &[u8]| self.secrets.iter().any(|secret| secret.eq_ignore_ascii_case(name));
        let names: Vec<_> =
            headers.keys().filter(|name| is_secret(name.as_str().as_bytes())).cloned().collect();
        for name in names {
            headers.remove(name);
        }
        for value in headers.values_mut().filter(|value| self.finder.is_match(value.as_bytes())) {
            let mut bytes = value.as_bytes().to_vec();
            let end = bytes.len();
            self.cover(&mut bytes, end);
            // What was a value is one with stars in it.
            *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("*"));
        }
    }

    /// Covers the secrets that begin before this place. Returns where the last of them ends, or that place.
    fn cover(&self, bytes: &mut [u8], before: usize) -> usize {
        let (mut at, mut end) = (0, before);
        while let Some(found) = self.finder.find(&bytes[at..]) {
            let range = at + found.start()..at + found.end();
            if range.start >= before {
                break;
            }
            (at, end) = (range.end, end.max(range.end));
            bytes[range].fill(COVER);
        }
        end
    }

    /// Where a secret may have begun whose end is still to come.
    fn begun(&self, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(self.longest - 1);
        let is_begun = |at: &usize| {
            let rest = &bytes[*at..];
            self.secrets.iter().any(|secret| secret.len() > rest.len() && secret.starts_with(rest))
        };
        (from..bytes.len()).find(is_begun).unwrap_or(bytes.len())
    }
}

/// A text that arrives in pieces.
#[derive(Default)]
pub(super) struct Pieces {
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

impl Pieces {
    /// Adds a piece, and returns what can be shown by now.
    pub(super) fn push(&mut self, mask: &Mask, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let begun = mask.begun(&bytes);
        let end = mask.cover(&mut bytes, begun);
        self.held = bytes.split_off(end);
        bytes
    }

    /// The rest, when no piece is to come.
    pub(super) fn finish(&mut self, mask: &Mask) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        let end = bytes.len();
        mask.cover(&mut bytes, end);
        bytes
    }

    /// How many bytes are held back.
    pub(super) fn held(&self) -> u64 {
        self.held.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;
    use proptest::prelude::*;

    fn mask(values: &[&str]) -> Mask {
        let header = |(at, value): (usize, &&str)| {
            (format!("x-{at}").parse::<HeaderName>().unwrap(), value.parse().unwrap())
        };
        Mask::new(&values.iter().enumerate().map(header).collect()).unwrap()
    }

    /// The text after it came in pieces of this size.
    fn covered(mask: &Mask, text: &str, size: usize) -> String {
        let mut pieces = Pieces::default();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend(pieces.push(mask, piece));
        }
        out.extend(pieces.finish(mask));
        String::from_utf8(out).unwrap()
    }

    /// SB-10: a secret is covered wherever it is cut, and nothing else is.
    #[test]
    fn a_secret_is_covered_across_pieces() {
        let mask = mask(&["Bearer hunter22", "hunted"]);
        let text = "a hunter22, Bearer hunter22; hunter2 hunt hunthunter22hunter22 Bearer hunted hunter2";
        let expect = "a ********, ***************; hunter2 hunt hunt**************** Bearer ****** hunter2";
        for size in 1..text.len() {
            assert_eq!(covered(&mask, text, size), expect, "{size}");
        }
    }

    /// SB-10: of two secrets that begin alike, the longer one is covered whole.
    #[test]
    fn a_longer_secret_is_covered_whole() {
        let mask = mask(&["abcdef", "abcdefghi"]);
        for size in 1..12 {
            assert_eq!(covered(&mask, "-abcdefghi-abcdefg", size), "-*********-******g", "{size}");
        }
    }

    proptest! {
        /// SB-10: however secrets overlap, and wherever a text is cut, none of them is in what is shown, and no length
        /// changes.
        #[test]
        fn no_secret_is_shown(
            secrets in proptest::collection::vec("[ab]{6,9}", 1..4),
            pieces in proptest::collection::vec("[ab]{0,12}", 0..12),
        ) {
            let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let (mask, mut kept, mut shown) = (mask(&secrets), Pieces::default(), Vec::new());
            for piece in &pieces {
                shown.extend(kept.push(&mask, piece.as_bytes()));
            }
            shown.extend(kept.finish(&mask));
            let shown = String::from_utf8(shown).unwrap();
            prop_assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
            let text = pieces.concat();
            prop_assert_eq!(shown.len(), text.len());
            prop_assert!(shown.bytes().zip(text.bytes()).all(|(shown, was)| shown == was || shown == COVER));
            let is_secret = secrets.iter().any(|secret| text.contains(secret));
            prop_assert_eq!(shown.contains('*'), is_secret);
        }
    }

    /// What is no beginning of a secret is not held back.
    #[test]
    fn nothing_is_held_back_without_need() {
        let (mask, mut pieces) = (mask(&["hunter22"]), Pieces::default());
        assert_eq!(pieces.push(&mask, b"data: x\n\n"), b"data: x\n\n");
        assert_eq!((pieces.push(&mask, b"data: hun"), pieces.held()), (b"data: ".to_vec(), 3));
        assert_eq!(pieces.push(&mask, b"t"), b"");
        assert_eq!(pieces.push(&mask, b"ing"), b"hunting");
    }

    /// SB-10: headers are covered too.
    #[test]
    fn headers_are_covered() {
        let mask = mask(&["Bearer hunter22"]);
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", "you sent hunter22".parse().unwrap());
        headers.insert("hunter22", "x".parse().unwrap());
        headers.insert("x", "y".parse().unwrap());
        mask.headers(&mut headers);
        assert_eq!(headers["x-echo"], "you sent ********");
        assert!(headers.len() == 2 && headers["x"] == "y");
    }

    #[test]
    fn without_a_secret_there_is_no_mask() {
        let headers =
            HeaderMap::from_iter([("x-tenant".parse::<HeaderName>().unwrap(), "42".parse().unwrap())]);
        assert!(Mask::new(&headers).is_none() && Mask::new(&HeaderMap::new()).is_none());
    }
}
