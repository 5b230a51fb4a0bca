//! Bounds what a message becomes when it is parsed, before it is parsed.
//!
//! A value in memory is many times as large as its text: `[[],[],…]` of 10 MB would be hundreds. So the keys and values
//! of a text are counted first, in one pass that keeps nothing.

/// Maximum number of keys and values in one message of a server.
pub(crate) const NODES_MAX: usize = 100_000;

/// A message has more keys and values than [`NODES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {NODES_MAX} keys and values")]
pub(crate) struct TooMany;

/// Checks that a JSON text has no more keys and values than [`NODES_MAX`]. Text that is not JSON passes or fails, but is
/// never looked at twice.
pub(crate) fn check(text: &str) -> Result<(), TooMany> {
    // Every key or value takes at least a byte, so most messages need no look at all.
    if text.len() <= NODES_MAX || nodes(text.as_bytes()) <= NODES_MAX { Ok(()) } else { Err(TooMany) }
}

/// The number of keys and values; an empty array or object counts as if it had one.
fn nodes(text: &[u8]) -> usize {
    let (mut nodes, mut at) = (1, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            // The value after it, or the key after it and before the colon.
            b',' | b':' | b'[' | b'{' => nodes += 1,
            _ => {}
        }
        at += 1;
    }
    nodes
}

/// The place of the quote that ends the string which begins here; the end of the text if none does.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_count_and_texts_do_not() {
        for (text, expect) in [
            ("7", 1),
            ("[]", 2),
            ("[1,2]", 3),
            (r#"{"a":1,"b":[2]}"#, 6),
            (r#""[,:{\",,\\""#, 1),
            (r#"{"a,b":"c\\\",:["}"#, 3),
            (r#"["a",","]"#, 3),
            (r#"["open"#, 2),
            (r#"["open\"#, 2),
        ] {
            assert_eq!(nodes(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn the_bound_itself_passes() {
        let list = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        assert_eq!(check(&list(NODES_MAX - 1)), Ok(()));
        assert_eq!(check(&list(NODES_MAX)), Err(TooMany));
        assert_eq!(check(&format!("\"{}\"", ",".repeat(2 * NODES_MAX))), Ok(()));
    }
}
