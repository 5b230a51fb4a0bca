//! I15: a planted secret shows in no event, span, log line or result, but the handler it is meant for gets it.

use super::{Seen, Violation};
use crate::sim::{Fact, program::Index};
use std::collections::BTreeMap;
use toolyard::EventKind;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let Some(secret) = &index.program.secret else { return Vec::new() };
    let (mut violations, mut streams) = (Vec::new(), BTreeMap::<_, String>::new());
    let mut broken = |what: String| violations.push(Violation::new("I15", what));
    for entry in seen.entries {
        match &entry.fact {
            Fact::Leaked(what) => broken(format!("the secret is in {what}")),
            Fact::Withheld(node) => broken(format!("c{node} was not given what was sent")),
            Fact::Event(event) => {
                let text = serde_json::to_string(event)
                    .unwrap_or_else(|error| secret.core.clone() + &error.to_string());
                if text.contains(&secret.core) {
                    broken(format!("the secret is in an event: {text}"));
                }
                if let EventKind::OutputDelta { text } = &event.kind {
                    let of = (&event.session, &event.agent, event.batch, event.index, event.attempt);
                    streams.entry(of).or_default().push_str(text);
                }
            }
            _ => {}
        }
    }
    let told = streams.values().filter(|text| text.contains(&secret.core));
    told.for_each(|text| broken(format!("the secret is in a stream: {text}")));
    violations
}
