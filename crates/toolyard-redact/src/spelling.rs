//! The usual spellings of a character: as itself, escaped in JSON (also in JSON inside JSON), in URLs and in HTML.
//!
//! A text is read in *units*. A unit is a character or an escape, and stands for the bytes it spells, so that every
//! spelling of a secret reads as the same bytes, whichever of its characters a writer escapes, and how. A backslash is
//! read as part of an escape or as nothing, because how many there are depends only on how often the text was encoded.

/// The longest run of backslashes that is read as one: those of six nested levels.
const BACKSLASHES_MAX: usize = 64;
/// How often a percent sign may be encoded again.
const NESTED_PERCENTS_MAX: usize = 8;
/// Longer than any unit without its backslashes.
pub(super) const UNIT_BYTES_MAX: usize = 24;

/// What the units of a text stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Text. A plus sign and a space are the same, as in a form.
    Text,
    /// Base64, in either alphabet, whatever its line breaks.
    Base64,
}

/// One unit of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    bytes: [u8; 4],
    count: usize,
    /// Where it ends in the text.
    pub(super) end: usize,
    /// For an escape: where the characters start that it would be if it were none.
    pub(super) inside: Option<usize>,
    /// How many backslashes it starts with.
    pub(super) backslashes: usize,
}

impl Unit {
    fn plain(byte: u8, end: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], count: 1, end, inside: None, backslashes: 0 }
    }

    fn char(char: char, end: usize) -> Self {
        let mut unit = Self { count: char.len_utf8(), ..Self::plain(0, end) };
        char.encode_utf8(&mut unit.bytes);
        unit
    }

    fn escape(self, inside: usize) -> Self {
        Self { inside: Some(inside), ..self }
    }

    /// The bytes that it stands for.
    pub(super) fn bytes(&self, reading: Reading) -> impl Iterator<Item = u8> + use<> {
        let (bytes, count) = (self.bytes, self.count);
        (0..count).filter_map(move |at| reading.of(bytes[at]))
    }
}

impl Reading {
    /// What a byte is read as, if anything.
    pub(super) fn of(self, byte: u8) -> Option<u8> {
        match (self, byte) {
            (Self::Text, b'+') => Some(b' '),
            (Self::Base64, b'-') => Some(b'+'),
            (Self::Base64, b'_') => Some(b'/'),
            (Self::Base64, b' ' | b'\t' | b'\r' | b'\n') | (_, b'\\') => None,
            (_, byte) => Some(byte),
        }
    }

    /// A whole text as it is read if every character in it that starts an escape is itself escaped.
    pub(super) fn literal(self, text: &str) -> Vec<u8> {
        text.bytes().filter_map(|byte| self.of(byte)).collect()
    }

    /// A whole text as it is read.
    pub(super) fn all(self, text: &str) -> Vec<u8> {
        let (text, mut at, mut read) = (text.as_bytes(), 0, Vec::new());
        while at < text.len() {
            let unit = unit(text, at);
            read.extend(unit.bytes(self));
            at = unit.end;
        }
        read
    }
}

/// Whether a byte may start an escape.
pub(super) fn starts_escape(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&')
}

/// The unit of the text that starts at this byte.
pub(super) fn unit(text: &[u8], at: usize) -> Unit {
    let (run_end, backslashes) = backslashes(text, at);
    if backslashes > 0 {
        let escaped = if backslashes < BACKSLASHES_MAX { escaped(text, run_end) } else { None };
        // A run without end is read as a byte that is in no secret, so that nothing goes on behind it.
        let none = Unit { count: usize::from(backslashes == BACKSLASHES_MAX), ..Unit::plain(0, run_end) };
        return Unit { backslashes, ..escaped.unwrap_or(none) };
    }
    let found = match text[at] {
        b'%' => percent(text, at).map(|(byte, end)| Unit::plain(byte, end)),
        b'&' => entity(text, at),
        _ => None,
    };
    found.map_or(Unit::plain(text[at], at + 1), |unit| unit.escape(at + 1))
}

/// The end of the run of backslashes that starts here, and their number. They may be encoded as in a URL.
fn backslashes(text: &[u8], at: usize) -> (usize, usize) {
    let (mut end, mut count) = (at, 0);
    while count < BACKSLASHES_MAX {
        end = match text.get(end) {
            Some(b'\\') => end + 1,
            Some(b'%') => match percent(text, end) {
                Some((b'\\', end)) => end,
                _ => break,
            },
            _ => break,
        };
        count += 1;
    }
    (end, count)
}

/// What backslashes before this place escape; `None` for a character that stands for itself.
fn escaped(text: &[u8], at: usize) -> Option<Unit> {
    let byte = |byte| Some(Unit::plain(byte, at + 1));
    let unit = match text.get(at)? {
        b'n' => byte(b'\n'),
        b't' => byte(b'\t'),
        b'r' => byte(b'\r'),
        b'b' => byte(8),
        b'f' => byte(12),
        b'x' => {
            hex(text, at + 1, 2).map(|value| Unit::plain(u8::try_from(value).unwrap_or_default(), at + 3))
        }
        b'u' => unicode(text, at),
        _ => None,
    };
    unit.map(|unit| unit.escape(at))
}

/// `u` and four digits; two of them, with backslashes between, for a character beyond the first 65 536.
fn unicode(text: &[u8], at: usize) -> Option<Unit> {
    let first = hex(text, at + 1, 4)?;
    let end = at + 5;
    if !(0xd800..0xdc00).contains(&first) {
        return Some(Unit::char(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), end));
    }
    let (next, count) = backslashes(text, end);
    let second = hex(text, next + 1, 4).filter(|_| count > 0 && text.get(next) == Some(&b'u'));
    let both = second.filter(|second| (0xdc00..0xe000).contains(second));
    let char =
        both.and_then(|second| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
    Some(char.map_or(Unit::char(char::REPLACEMENT_CHARACTER, end), |char| Unit::char(char, next + 5)))
}

/// `%` and two digits, the percent sign itself encoded any number of times.
fn percent(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let mut digits = at + 1;
    for _ in 0..NESTED_PERCENTS_MAX {
        let is_nested =
            text[digits.min(text.len())..].starts_with(b"25") && hex(text, digits + 2, 2).is_some();
        digits += if is_nested { 2 } else { break };
    }
    let byte = u8::try_from(hex(text, digits, 2)?).ok()?;
    Some((byte, digits + 2))
}

/// A character reference of HTML: by its name or its number.
fn entity(text: &[u8], at: usize) -> Option<Unit> {
    const NAMED: [(&[u8], u8); 5] =
        [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];
    let rest = &text[at + 1..];
    if let Some((name, byte)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some(Unit::plain(*byte, at + 1 + name.len()));
    }
    let number = rest.strip_prefix(b"#")?;
    let (digits, radix) = match number.first()? {
        b'x' | b'X' => (&number[1..], 16),
        _ => (number, 10),
    };
    let count = digits.iter().take(8).position(|byte| *byte == b';')?;
    let value = u32::from_str_radix(std::str::from_utf8(&digits[..count]).ok()?, radix).ok()?;
    let end = text.len() - digits.len() + count + 1;
    char::from_u32(value).map(|char| Unit::char(char, end))
}

/// The value of this many hexadecimal digits.
fn hex(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text.get(at..at + count)?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}
