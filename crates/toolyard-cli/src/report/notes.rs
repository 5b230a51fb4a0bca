//! Calls without output, summarised in a few lines.

use super::Turn;
use crate::{
    display::{clip, count},
    logging::redacted,
    setup::settings_allowing,
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolyard::{CallError, ErrorKind, Outcome, SideEffects};

/// The number of different errors that are kept; calls with other errors are only counted.
const GROUPS_MAX: usize = 100;

/// The number of those that get a line.
const LINES_MAX: usize = 10;

const MESSAGE_CHARS: usize = 300;

/// Notes on the calls that have no output.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    groups: Vec<Group>,
    /// The number of calls with errors beyond those groups.
    others: usize,
    /// The number of calls refused because nobody could be asked, and their side effects.
    unapproved: usize,
    side_effects: Vec<SideEffects>,
}

/// Calls of a tool with the same error.
#[derive(Debug)]
struct Group {
    kind: ErrorKind,
    tool: Arc<str>,
    message: String,
    advice: String,
    /// The first of these calls.
    place: String,
    calls: usize,
}

impl Notes {
    /// Adds an outcome. `unapproved` holds the side effects of a call that needs approval when nobody can give it.
    pub(crate) fn add(&mut self, turn: Option<&Turn>, outcome: &Outcome, unapproved: Option<SideEffects>) {
        let Some(error) = outcome.error() else { return };
        match unapproved {
            Some(side_effects) if error.kind == ErrorKind::UserDenied => {
                self.unapproved += 1;
                if !self.side_effects.contains(&side_effects) {
                    self.side_effects.push(side_effects);
                }
            }
            _ => self.add_error(turn, outcome, error),
        }
    }

    fn add_error(&mut self, turn: Option<&Turn>, outcome: &Outcome, error: &CallError) {
        let message = clip(&redacted(&error.message), MESSAGE_CHARS);
        let same = |group: &&mut Group| {
            group.kind == error.kind && group.tool == outcome.tool && group.message == message
        };
        if let Some(group) = self.groups.iter_mut().find(same) {
            group.calls += 1;
            return;
        }
        if self.groups.len() == GROUPS_MAX {
            self.others += 1;
            return;
        }
        let place = match turn {
            Some(Turn { episode, turn, .. }) => format!("{} turn {turn} ", clip(episode, 60)),
            None => String::new(),
        };
        let call = format!("{place}{} '{}'", clip(outcome.call_id.as_str(), 60), clip(&outcome.tool, 60));
        self.groups.push(Group {
            kind: error.kind,
            tool: outcome.tool.clone(),
            message,
            advice: error.advice.to_string(),
            place: call,
            calls: 1,
        });
    }

    /// The notes as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.groups.iter().take(LINES_MAX).map(Group::line).collect();
        let others: usize = self.groups.iter().skip(LINES_MAX).map(|group| group.calls).sum();
        let others = others + self.others;
        if others > 0 {
            lines.push(format!("… and {} with other errors: see the results", count(others, "call")));
        }
        lines.extend(self.advice());
        lines
    }

    fn advice(&self) -> Option<String> {
        (self.unapproved > 0).then(|| {
            let calls = count(self.unapproved, "call");
            let kinds: Vec<&str> = self.side_effects.iter().map(|effects| effects.as_str()).collect();
            let kinds = kinds.join(", ");
            format!(
                "{calls} refused because {kinds} calls need approval: to allow them, use {}",
                settings_allowing(&self.side_effects)
            )
        })
    }

    /// The notes as data.
    pub(crate) fn json(&self) -> Value {
        let group = |group: &Group| {
            json!({
                "code": group.kind, "name": group.tool.as_ref(), "message": group.message, "advice": group.advice,
                "first": group.place, "calls": group.calls,
            })
        };
        let groups: Vec<Value> = self.groups.iter().map(group).collect();
        json!({ "errors": groups, "calls_with_other_errors": self.others, "to_allow": self.advice() })
    }
}

impl Group {
    fn line(&self) -> String {
        let more = match self.calls - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}: {}{more}: {}", self.kind, self.place, self.message)
    }
}
