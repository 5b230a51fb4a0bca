//! Searches everything that is shown for the planted secret.

use super::Stage;
use crate::sim::{
    journal::{Fact, ResultView},
    program::Program,
};
use serde_json::Value;
use toolyard::{Outcome, Redactor};

/// The redactor that keeps the program's secret out of everything shown.
pub(super) fn redactor(program: &Program) -> Option<Redactor> {
    let secret = program.secret.as_ref()?;
    Some(Redactor::new().with_secret(&secret.whole).expect("the secret is too short"))
}

impl Stage {
    /// Searches a shown text for the secret.
    pub(super) fn search(&self, what: &str, text: impl FnOnce() -> String) {
        if let Some(secret) = &self.program.secret
            && text().contains(&secret.core)
        {
            self.journal.note(Fact::Leaked(what.to_owned()));
        }
    }

    /// Searches the results for the secret and returns the parts that the checks compare.
    pub(super) fn views(&self, outcomes: &[Outcome]) -> Vec<ResultView> {
        for outcome in outcomes {
            self.search_outcome(outcome);
        }
        outcomes.iter().map(ResultView::of).collect()
    }

    /// Searches all of a result: the text for the model, its log form, and its cause.
    pub(super) fn search_outcome(&self, outcome: &Outcome) {
        self.search("a result", || {
            let cause = outcome.error().and_then(|error| error.source.as_ref());
            format!("{outcome:?} {} {} {cause:?}", outcome.to_text(), outcome.arguments)
        });
    }

    /// Checks that a handler was given the secret that was sent.
    pub(super) fn check_secret_given(&self, node: u32, args: &Value) {
        if let Some(secret) = &self.program.secret
            && args["pass"] != secret.whole.as_str()
        {
            self.journal.note(Fact::Withheld(node));
        }
    }
}
