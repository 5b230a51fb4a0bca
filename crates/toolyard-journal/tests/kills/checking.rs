//! Compares what all lives have said and done with the rules.

mod approvals;
mod ends;
mod history;

use crate::{killing::Life, plan::origin, tally::Tally};
use approvals::check_approvals;
use ends::check_ends;
use history::History;
use std::collections::{BTreeMap, BTreeSet};
use toolyard_journal::verify;
use toolyard_tests::event_faults;

pub(crate) fn check(lives: &[Life], tally: &mut Tally) {
    let last = lives.last().expect("there is one");
    tally.counts.scenes += 1;
    tally.counts.lives += lives.len();
    tally.counts.kills += lives.iter().filter(|life| was_ended(life)).count();
    for life in lives {
        let ended_well = life.status.success() && life.lines.iter().any(|line| line == "closed");
        if !ended_well && !life.was_killed() {
            tally.faults.push(format!("life {} has failed: {}", life.order.life, life.status));
        }
        check_events(life, tally);
    }
    if !last.status.success() {
        return;
    }
    let report = verify(last.order.journal()).unwrap();
    tally.faults.extend(report.findings.iter().map(|finding| format!("verify: {finding:?}")));
    let history = History::of(lives);
    tally.faults.extend(history.said_faults.iter().cloned());
    tally.counts.acknowledged += history.acks.len();
    tally.counts.suspended += history.suspended.len();
    check_acks(&history, tally);
    check_effects(&history, tally);
    check_cancels(&history, tally);
    check_approvals(&history, tally);
    check_ends(&history, &last.order, tally);
}

fn was_ended(life: &Life) -> bool {
    life.was_killed() || life.lines.iter().any(|line| line == "stopping")
}

/// OB-1: the events of a life follow their grammar, as far as it came.
fn check_events(life: &Life, tally: &mut Tally) {
    let Ok(text) = std::fs::read_to_string(life.order.events()) else { return };
    let events = text.lines().map_while(|line| serde_json::from_str(line).ok());
    let events: Vec<toolyard::Event> = events.collect();
    let faults = event_faults(&events, life.status.success());
    tally.faults.extend(faults.into_iter().map(|fault| format!("life {}: {fault}", life.order.life)));
}

/// JR-1: no result that somebody was given is another one later. A plain read may run again, and so fail otherwise.
fn check_acks(history: &History, tally: &mut Tally) {
    for (id, results) in &history.acks {
        let is_read = history.kind_of(id).is_none_or(|kind| kind == crate::plan::Kind::Look);
        let has_key = history.plan_of(id).is_some_and(|call| call.key.is_some());
        let mut different: BTreeSet<&str> = results.iter().map(String::as_str).collect();
        if is_read && !has_key {
            different.retain(|result| result.starts_with("[\"ok\""));
        }
        if different.len() > 1 {
            tally.counts.lost += 1;
            tally.faults.push(format!("{id}: its result has changed: {different:?}"));
        }
    }
}

/// JR-5, JR-6, JR-10: nothing is done twice, neither by one call nor under one key.
fn check_effects(history: &History, tally: &mut Tally) {
    let (mut of_call, mut of_key) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    for effect in history.effects.iter().filter(|effect| !effect.kind.is_repeatable()) {
        *of_call.entry(&effect.id).or_default() += 1;
        if let Some(key) = &effect.key {
            *of_key.entry(key).or_default() += 1;
        }
    }
    for (what, times) in of_call.iter().chain(&of_key).filter(|(_, times)| **times > 1) {
        tally.counts.twice += 1;
        tally.faults.push(format!("{what}: done {times} times"));
    }
    for (id, started) in &history.starts {
        let Some(kind) = history.kind_of(id) else { continue };
        // What was to be repeated may be, and what has surely not been done.
        let may_start = 1 + history.harmless.get(id).copied().unwrap_or(0);
        if !kind.is_repeatable() && !kind.is_checked() && started.len() > may_start {
            tally.faults.push(format!("{id}: started {} times", started.len()));
        }
    }
}

/// JR-1: a call whose cancel was acknowledged does not start in a later life.
fn check_cancels(history: &History, tally: &mut Tally) {
    for (id, cancelled) in &history.cancelled {
        let started = history.starts.get(id).into_iter().flatten();
        if started.clone().any(|life| life > cancelled) {
            tally.counts.cancelled_run += 1;
            tally.faults.push(format!("{id}: started after its cancel ({})", origin(id)));
        }
    }
}
