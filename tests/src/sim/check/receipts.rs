//! SM-5, SM-6: every answer gets one receipt, only what was taken counts, no two questions have one id, and the record
//! says who decided what.

use super::{Traces, Violation};
use crate::sim::{Fact, program::Index};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{Decision, EventKind, Receipt, event::SettledBy};

/// The answers about one call, and what became of them.
#[derive(Default)]
struct Answers {
    given: usize,
    receipts: usize,
    taken: bool,
}

/// Whether somebody gave this answer before, about this call if it was its own question.
fn is_of(traces: &Traces<'_>, place: usize, node: u32, resolved: &EventKind) -> bool {
    let EventKind::ConfirmationResolved(resolved) = resolved else { return true };
    let own = resolved.by == Some(SettledBy::Approver);
    resolved.decision.is_none_or(|decision| {
        traces.entries[..place].iter().any(|entry| match &entry.fact {
            Fact::Answered(of, _, answer) => {
                // Secrets in names and reasons are not in events.
                let says_who = answer.who().is_some() == resolved.who.is_some();
                let says_why = answer.reason().is_some() == resolved.reason.is_some();
                (*of == node || !own) && answer.decision() == decision && says_who && says_why
            }
            _ => false,
        })
    })
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
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
    let (mut ids, mut unrecorded) = (BTreeSet::new(), Vec::new());
    for (node, trace) in &traces.calls {
        if index.nodes.get(node).is_some_and(|it| index.earlier.is_answered(index, it)) {
            continue; // by what was said in an earlier life
        }
        for (place, _, event) in &trace.events {
            if !is_of(traces, *place, *node, &event.kind) {
                unrecorded.push(*node);
            }
            if let EventKind::ConfirmationResolved(it) = &event.kind
                && (it.approved != it.decision.is_some_and(Decision::allows)
                    || it.decision.is_some() != it.by.is_some())
            {
                unrecorded.push(*node);
            }
            match &event.kind {
                EventKind::ConfirmationRequested(it) if !ids.insert(it.request) => {
                    broken(*node, "has the question id of another call");
                }
                EventKind::ConfirmationResolved(it)
                    if it.approved
                        && it.by == Some(SettledBy::Approver)
                        && !calls.get(node).is_some_and(|answers| answers.taken) =>
                {
                    broken(*node, "was approved by an answer that was not taken");
                }
                _ => {}
            }
        }
    }
    let unrecorded = unrecorded.iter().map(|node| {
        Violation::new("SM-5", format!("the record of c{node} does not say who decided what about it"))
    });
    violations.extend(unrecorded);
    violations
}
