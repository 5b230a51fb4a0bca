//! A first pass over a text that tells which patterns can match at all, by words that all their matches contain.

use aho_corasick::{AhoCorasick, MatchKind};

/// The words of a set of patterns.
pub(super) struct Words {
    finder: AhoCorasick,
    /// The patterns of each word, as a bit set.
    patterns: Vec<u32>,
    all: u32,
}

impl Words {
    /// Takes the words of each pattern, for at most 32 patterns.
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

    /// The patterns with a word in the text, in order.
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
