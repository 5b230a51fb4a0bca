//! Where bytes may be cut so that characters stay whole.

/// The most bytes of a character that may be missing at a cut.
const PARTIAL_MAX: usize = 3;

/// The length of `bytes` without an incomplete character at its end. Bytes that are not text are kept.
///
/// # Examples
/// ```
/// use toolyard_process::utf8::complete_len;
/// assert_eq!(complete_len("5 €".as_bytes()), 5);
/// assert_eq!(complete_len(&"5 €".as_bytes()[..4]), 2);
/// ```
pub fn complete_len(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(PARTIAL_MAX);
    for at in (start..bytes.len()).rev() {
        let length = match bytes[at] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if at + length > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

/// How many bytes at the start belong to a character that began before.
///
/// # Examples
/// ```
/// use toolyard_process::utf8::continuation_len;
/// assert_eq!(continuation_len(&"€ 5".as_bytes()[1..]), 2);
/// ```
pub fn continuation_len(bytes: &[u8]) -> usize {
    let is_inner = |byte: &&u8| matches!(byte, 0x80..=0xBF);
    bytes.iter().take(PARTIAL_MAX).take_while(is_inner).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_has_only_begun_is_left_out() {
        let check = |bytes: &[u8], expect| assert_eq!(complete_len(bytes), expect, "{bytes:?}");
        check(b"", 0);
        check(b"abc", 3);
        check("aü".as_bytes(), 3);
        check(&"aü".as_bytes()[..2], 1);
        check(&"a€".as_bytes()[..3], 1);
        check(&"😀".as_bytes()[..3], 0);
        check("😀".as_bytes(), 4);
        check(&[b'a', 0xFF], 2);
        check(&[0x80, 0x80, 0x80, 0x80], 4);
    }

    #[test]
    fn the_rest_of_a_character_is_told() {
        assert_eq!(continuation_len(&"ü".as_bytes()[1..]), 1);
        assert_eq!(continuation_len(&"😀x".as_bytes()[1..]), 3);
        assert_eq!(continuation_len(b"x"), 0);
    }
}
