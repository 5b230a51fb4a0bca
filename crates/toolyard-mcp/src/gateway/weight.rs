//! How much memory a message takes once it is parsed, estimated from its bytes without parsing it.

/// Memory per value, in bytes, with room for the growth of the list that it is in, or for the key that it is under.
const VALUE: usize = 160;

/// Memory per object beside its values, in bytes: its table, its first entries and their keys.
const OBJECT: usize = 512;

/// How often a text is kept while its request is handled: by the request and by the call.
const TEXTS: usize = 2;

/// An upper estimate of the memory that a message takes once it is parsed, in bytes. Linear, and good for any bytes:
/// what is not JSON is estimated too.
pub(super) fn parsed(message: &[u8]) -> usize {
    let (mut values, mut objects) = (1usize, 0usize);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b',' | b'[' => values += 1,
            b'{' => (values, objects) = (values + 1, objects + 1),
            _ => {}
        }
    }
    TEXTS * message.len() + VALUE * values + OBJECT * objects
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commas and brackets count where they separate values, not inside texts, whatever is escaped there.
    #[test]
    fn only_what_separates_values_counts() {
        let plain = |text: &str| parsed(text.as_bytes()) - TEXTS * text.len();
        assert_eq!(plain("0"), VALUE);
        assert_eq!(plain("[1,2]"), 3 * VALUE);
        assert_eq!(plain(r#"{"a":1,"b":{}}"#), 4 * VALUE + 2 * OBJECT);
        assert_eq!(plain(r#""[,{\",{\\""#), VALUE);
        assert_eq!(plain(r#"["\\",1]"#), 3 * VALUE);
        assert_eq!(plain("not json, at all"), 2 * VALUE);
    }
}
