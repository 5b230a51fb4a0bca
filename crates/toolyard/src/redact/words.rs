//! Which patterns are worth a try: one pass for the words that each of them has in all that it finds.

use aho_corasick::{AhoCorasick, MatchKind};

/// The words of some patterns.
pub(super) struct Words {
    finder: AhoCorasick,
    /// The patterns of each word, a bit each.
    patterns: Vec<u32>,
    all: u32,
}

impl Words {
    /// The words of each pattern. There are at most 32 patterns.
    pub(super) fn of<'a>(patterns: impl Iterator<Item = &'a [&'a str]>) -> Self {
        let (mut words, mut of_word, mut all) = (Vec::new(), Vec::new(), 0);
        for (at, its) in patterns.enumerate() {
            words.extend_from_slice(its);
            of_word.extend(its.iter().map(|_| 1 << at));
            all |= 1 << at;
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(words)
            .expect("there are few words, and they are short");
        Self { finder, patterns: of_word, all }
    }

    /// The patterns one of whose words is in the text, in order.
    pub(super) fn seen_in(&self, text: &str) -> impl Iterator<Item = usize> {
        let mut seen = 0;
        for found in self.finder.find_overlapping_iter(text) {
            seen |= self.patterns[found.pattern().as_usize()];
            if seen == self.all {
                break;
            }
        }
        (0..32).filter(move |at| seen >> at & 1 == 1)
    }
}
