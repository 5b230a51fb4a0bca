//! SM-6: every answer gets one receipt, only what was taken counts, and no two questions have one id.

use super::{Traces, Violation};
use crate::sim::{Fact, program::Index};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{EventKind, Receipt, event::SettledBy};

/// The answers about one call, and what became of them.
#[derive(Default)]
struct Answers {
    given: usize,
    receipts: usize,
    taken: bool,
}

pub(super) fn check(_: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut broken =
        |call: u32, what: &str| violations.push(Violation::new("SM-6", format!("c{call} {what}")));
    let mut calls: BTreeMap<u32, Answers> = BTreeMap::new();
    for entry in traces.entries {
        match &entry.fact {
            Fact::Answered(node, ..) => {
                let answers = calls.entry(*node).or_default();
                answers.given += 1;
                if answers.taken {
                    broken(*node, "was asked about again although its answer counts");
                }
            }
            Fact::Receipt(node, receipt) => {
                let answers = calls.entry(*node).or_default();
                answers.receipts += 1;
                answers.taken |= *receipt == Receipt::Taken;
                if answers.receipts > answers.given {
                    broken(*node, "had a receipt without an answer");
                }
            }
            _ => {}
        }
    }
    for (node, answers) in &calls {
        if traces.is_finished && answers.given != answers.receipts {
            broken(*node, "was answered, and nobody was told what became of that");
        }
    }
    let mut ids = BTreeSet::new();
    for (node, trace) in &traces.calls {
        for (_, _, event) in &trace.events {
            match event.kind {
                EventKind::ConfirmationRequested { request, .. } if !ids.insert(request) => {
                    broken(*node, "has the question id of another call");
                }
                EventKind::ConfirmationResolved { approved: true, by: Some(SettledBy::Approver), .. }
                    if !calls.get(node).is_some_and(|answers| answers.taken) =>
                {
                    broken(*node, "was approved by an answer that was not taken");
                }
                _ => {}
            }
        }
    }
    violations
}
