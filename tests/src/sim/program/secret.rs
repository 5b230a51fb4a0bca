//! A secret planted in a program: it is in everything that the tools receive and return.

use super::{Index, Program};
use crate::sim::Dice;

/// A planted secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// A part of it that looks the same in every encoding.
    pub core: String,
    /// All of it.
    pub whole: String,
}

impl Secret {
    /// The two pieces in which it is streamed; neither contains its core.
    pub fn pieces(&self) -> (&str, &str) {
        self.whole.split_at(self.core.len() / 2)
    }
}

impl Program {
    /// Plants a secret, as the dice say.
    pub(super) fn plant(&mut self, seed: u64, dice: &mut Dice) {
        let core = format!("hush{seed:06x}");
        self.secret = dice.maybe(200, |_| Secret { whole: format!("{core}-\"ö/ &"), core });
    }

    /// This text as a tool says it: followed by the secret, if there is one.
    pub fn with_secret(&self, text: &str) -> String {
        self.secret.as_ref().map_or_else(|| text.to_owned(), |secret| format!("{text} {}", secret.whole))
    }

    /// A tool's text as it may be shown: with the secret redacted.
    pub fn redacted(&self, text: &str) -> String {
        if self.secret.is_some() { format!("{text} [redacted]") } else { text.to_owned() }
    }
}

impl Index<'_> {
    /// The output of a call as it may be shown.
    pub fn output_of(&self, node: u32) -> String {
        self.program.redacted(&self.nodes[&node].id())
    }
}
