//! State changes of breakers while calls ran.

use serde_json::{Value, json};
use std::{fmt::Write, time::Duration};
use toolyard::{BreakerOf, BreakerState};

/// The number of changes kept per breaker; later ones are only counted.
const CHANGES_MAX: usize = 20;

/// The breakers that changed state, in the order of their first change.
#[derive(Debug, Clone, Default)]
pub(crate) struct BreakerChanges {
    breakers: Vec<Breaker>,
}

#[derive(Debug, Clone)]
struct Breaker {
    of: BreakerOf,
    /// The time since the engine was built, and the new state.
    changes: Vec<(Duration, BreakerState)>,
    more: usize,
}

impl BreakerChanges {
    /// Records a state change of a breaker.
    pub(super) fn add(&mut self, of: BreakerOf, at: Duration, to: BreakerState) {
        let known = self.breakers.iter().position(|one| one.of == of);
        let place = known.unwrap_or_else(|| {
            self.breakers.push(Breaker { of, changes: Vec::new(), more: 0 });
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
        for Breaker { of, changes, more } in &self.breakers {
            let of = match of {
                BreakerOf::Tool(name) => format!("tool '{name}'"),
                BreakerOf::Backend(name) => format!("back-end '{name}'"),
                BreakerOf::Sandbox(sandbox) => format!("sandbox '{}'", sandbox.as_str()),
            };
            let changes: Vec<&str> = changes.iter().map(|(_, to)| to.as_str()).collect();
            let more = if *more > 0 { format!(", … and {more} more") } else { String::new() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "breaker of {of}: {}{more}", changes.join(", "));
        }
        text
    }

    /// Every change that was kept.
    pub(super) fn json(&self) -> Value {
        let of_breaker = |breaker: &Breaker| {
            let one = |(at, to): &(Duration, BreakerState)| json!({"at_ms": super::json::ms(*at), "to": to});
            let changes: Value = breaker.changes.iter().map(one).collect();
            let mut shown = json!(breaker.of);
            shown["moves"] = changes;
            shown["more_moves"] = breaker.more.into();
            shown
        };
        self.breakers.iter().map(of_breaker).collect()
    }
}
