//! Whether what is shown has the planted secret.

use super::Stage;
use crate::sim::{
    journal::{Fact, Shape},
    program::Program,
};
use serde_json::Value;
use toolyard::{Outcome, Redactor};

/// What keeps the secret of a program out of all that is shown.
pub(super) fn redactor(program: &Program) -> Option<Redactor> {
    let secret = program.secret.as_ref()?;
    Some(Redactor::new().with_secret(&secret.whole).expect("it is long enough to be told from other text"))
}

impl Stage {
    /// Looks at something that is shown.
    pub(super) fn look(&self, what: &str, text: impl FnOnce() -> String) {
        if let Some(secret) = &self.program.secret
            && text().contains(&secret.core)
        {
            self.journal.note(Fact::Leaked(what.to_owned()));
        }
    }

    /// What is compared of results, once they have been looked at.
    pub(super) fn shapes(&self, outcomes: &[Outcome]) -> Vec<Shape> {
        for outcome in outcomes {
            self.look_at(outcome);
        }
        outcomes.iter().map(Shape::of).collect()
    }

    /// Looks at all of a result: what the model reads, what a log may have of it, and its cause.
    pub(super) fn look_at(&self, outcome: &Outcome) {
        self.look("a result", || {
            let cause = outcome.error().and_then(|error| error.source.as_ref());
            format!("{outcome:?} {} {} {cause:?}", outcome.to_text(), outcome.arguments)
        });
    }

    /// Looks at what a handler was given, which is to be what was sent.
    pub(super) fn look_at_given(&self, node: u32, args: &Value) {
        if let Some(secret) = &self.program.secret
            && args["pass"] != secret.whole.as_str()
        {
            self.journal.note(Fact::Withheld(node));
        }
    }
}
