//! State changes of breakers while calls ran.

use serde_json::{Value, json};
use std::{fmt::Write, sync::Arc, time::Duration};
use toolyard::BreakerState;

/// The number of changes kept per breaker; later ones are only counted.
const CHANGES_MAX: usize = 20;

/// The breakers that changed state, in the order of their first change.
#[derive(Debug, Clone, Default)]
pub(crate) struct BreakerChanges {
    breakers: Vec<Breaker>,
}

#[derive(Debug, Clone)]
struct Breaker {
    of_backend: bool,
    name: Arc<str>,
    /// The time since the engine was built, and the new state.
    changes: Vec<(Duration, BreakerState)>,
    more: usize,
}

impl BreakerChanges {
    /// Records a state change of the breaker of a tool or of a back-end.
    pub(super) fn add(
        &mut self,
        tool: Option<&Arc<str>>,
        backend: Option<&Arc<str>>,
        at: Duration,
        to: BreakerState,
    ) {
        let Some(name) = tool.or(backend) else { return };
        let of_backend = tool.is_none();
        let known = self.breakers.iter().position(|one| one.of_backend == of_backend && one.name == *name);
        let place = known.unwrap_or_else(|| {
            self.breakers.push(Breaker { of_backend, name: name.clone(), changes: Vec::new(), more: 0 });
            self.breakers.len() - 1
        });
        let breaker = &mut self.breakers[place];
        if breaker.changes.len() < CHANGES_MAX {
            breaker.changes.push((at, to));
        } else {
            breaker.more += 1;
        }
    }

    /// One line per breaker.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Breaker { of_backend, name, changes, more } in &self.breakers {
            let of = if *of_backend { "back-end" } else { "tool" };
            let changes: Vec<&str> = changes.iter().map(|(_, to)| to.as_str()).collect();
            let more = if *more > 0 { format!(", … and {more} more") } else { String::new() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "breaker of {of} '{name}': {}{more}", changes.join(", "));
        }
        text
    }

    /// Every change that was kept.
    pub(super) fn json(&self) -> Value {
        let of_breaker = |breaker: &Breaker| {
            let key = if breaker.of_backend { "backend" } else { "tool" };
            let one = |(at, to): &(Duration, BreakerState)| json!({"at_ms": super::json::ms(*at), "to": to});
            let changes: Value = breaker.changes.iter().map(one).collect();
            json!({key: breaker.name.as_ref(), "moves": changes, "more_moves": breaker.more})
        };
        self.breakers.iter().map(of_breaker).collect()
    }
}
