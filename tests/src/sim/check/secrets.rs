//! I15: a planted secret shows in no event, span, log line or result, but the handler it is meant for gets it.

use super::{Traces, Violation};
use crate::sim::{Fact, program::Index};
use std::collections::BTreeMap;
use toolyard::EventKind;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let Some(secret) = &index.program.secret else { return Vec::new() };
    let (mut violations, mut streams) = (Vec::new(), BTreeMap::<_, String>::new());
    let mut broken = |what: String| violations.push(Violation::new("I15", what));
    for entry in traces.entries {
        match &entry.fact {
            Fact::Leaked(what) => broken(format!("the secret is in {what}")),
            Fact::Withheld(node) => broken(format!("c{node} did not get the secret that was sent")),
            Fact::Event(event) => {
                let text = serde_json::to_string(event)
                    .unwrap_or_else(|error| secret.core.clone() + &error.to_string());
                if text.contains(&secret.core) {
                    broken(format!("the secret is in an event: {text}"));
                }
                if let EventKind::OutputDelta { text } = &event.kind {
                    let attempt = (&event.session, &event.agent, event.batch, event.index, event.attempt);
                    streams.entry(attempt).or_default().push_str(text);
                }
            }
            _ => {}
        }
    }
    let reported = streams.values().filter(|text| text.contains(&secret.core));
    reported.for_each(|text| broken(format!("the secret is in a stream: {text}")));
    violations
}
