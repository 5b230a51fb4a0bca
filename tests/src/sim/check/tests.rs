//! Tests of the checks: the journal of a good run, spoilt in one way, must break a certain rule.

mod gate;
mod rare;
mod recorded;
mod sandboxes;
mod secrets;
mod survival;

use super::check;
use crate::sim::{
    Entry, Fact, HandlerStep, Program, play,
    program::{
        AnswerPlan, BatchPlan, CallPlan, Chaos, Consent, DispatchMode, EditPlan, End, Guards, HookPlan,
        OnCancel, Placement, PolicyPlan, Script, SessionPlan, Step, ToolPlan, TurnPlan,
    },
};
use toolyard::{Budget, ErrorKind, EventKind, LimitScope, Priority, ToolClass};

pub(in crate::sim) const READ: usize = 0;
pub(in crate::sim) const SERIAL: usize = 1;
const ASKED: usize = 3;
pub(in crate::sim) const UNKNOWN: usize = 9;

pub(in crate::sim) fn tool(class: ToolClass, consent: Consent) -> ToolPlan {
    ToolPlan {
        class,
        limit: None,
        limit_scope: LimitScope::Agent,
        scope: None,
        placement: Placement::Task,
        timeout_ms: 60_000,
        consent,
        hidden_from_forks: false,
        needs_no_capability: false,
        recursive: false,
        sandboxed: false,
        on_drop: None,
        guards: Guards::NONE,
    }
}

pub(in crate::sim) fn call(node: u32, tool: usize) -> CallPlan {
    CallPlan {
        node,
        tool,
        broken: false,
        twin: false,
        timeout_ms: None,
        deadline_ms: None,
        answer: AnswerPlan::Yes(1),
        edit: EditPlan::Nothing,
        held_ms: None,
        hook: HookPlan::Go(0),
        key: None,
        script: Script {
            steps: vec![Step::Sleep(10)],
            first_ends: Vec::new(),
            end: End::Ok,
            on_cancel: OnCancel::Deaf,
            bytes: 0,
        },
    }
}

pub(in crate::sim) fn turn(first: u32, tools: &[usize]) -> TurnPlan {
    let calls = (first..).zip(tools).map(|(node, tool)| call(node, *tool)).collect();
    let batch = BatchPlan { calls };
    let mode = DispatchMode::Runs;
    TurnPlan { gap_ms: 0, overlaps_next: false, mode, resend: false, cut: None, cancel_at: None, batch }
}

/// A program with one session per list of tools, each with one turn.
pub(in crate::sim) fn program(read: usize, sessions: &[&[usize]]) -> Program {
    let mut first = 0;
    let sessions = sessions.iter().map(|tools| {
        let turns = vec![turn(first, tools)];
        first += tools.len() as u32;
        let (barred, priority) = (Vec::new(), Priority::Normal);
        SessionPlan { cap: None, tree_cap: None, barred, priority, turns, forks: Vec::new() }
    });
    Program {
        chaos: Chaos { seed: 1, yields: 0, naps: 0 },
        read,
        concurrent: 2,
        cap: None,
        grace_ms: 1_000,
        skip_rest: false,
        queue_max: None,
        answer_within_ms: 2_000,
        queue_timeout_ms: None,
        deadline_ms: None,
        threads: None,
        room: None,
        recorder: None,
        lives: None,
        hooks: false,
        budgets: [Budget::UNLIMITED; 3],
        secret: None,
        policies: vec![PolicyPlan::default()],
        tools: vec![
            tool(ToolClass::Read, Consent::Free),
            tool(ToolClass::Serial, Consent::Free),
            tool(ToolClass::Concurrent, Consent::Free),
            tool(ToolClass::Serial, Consent::Asked),
        ],
        sessions: sessions.collect(),
        orders: Vec::new(),
    }
}

/// c0 and c1 read, c2 and c3 write, c4 needs an approval, c5 has an unknown tool.
pub(super) fn mixed() -> Program {
    program(1, &[&[READ, READ, SERIAL, SERIAL, ASKED, UNKNOWN]])
}

/// Asserts that a good run of the program breaks no rule, and that its spoilt journal breaks this one.
pub(super) fn breaks(rule: &str, program: &Program, spoil: impl FnOnce(&mut Vec<Entry>)) {
    let report = play(program);
    assert_eq!(report.violations, [], "before the journal is spoilt");
    let mut entries = report.entries;
    spoil(&mut entries);
    let violations = check(program, &entries);
    assert!(
        violations.iter().any(|violation| violation.rule == rule),
        "no violation of {rule} in {violations:#?}"
    );
}

pub(super) fn find(entries: &[Entry], is_it: impl Fn(&Fact) -> bool) -> usize {
    entries.iter().position(|entry| is_it(&entry.fact)).expect("no such entry in the journal")
}

fn handler(entries: &[Entry], node: u32, step: HandlerStep) -> usize {
    find(entries, |fact| matches!(fact, Fact::Handler(it, did) if (*it, *did) == (node, step)))
}

fn event(entries: &[Entry], call: &str, is_it: impl Fn(&EventKind) -> bool) -> usize {
    find(entries, |fact| {
        matches!(fact, Fact::Event(event)
            if event.call_id.as_ref().is_some_and(|id| id.as_str() == call) && is_it(&event.kind))
    })
}

/// Moves an entry to right behind a later one, with the later one's time.
fn put_behind(entries: &mut Vec<Entry>, what: usize, behind: usize) {
    let mut entry = entries.remove(what);
    entry.at_us = entries[behind - 1].at_us;
    entries.insert(behind, entry);
}

/// Removes an event and renumbers the rest.
fn forget_event(entries: &mut Vec<Entry>, at: usize) {
    entries.remove(at);
    let mut seq = std::collections::BTreeMap::new();
    for entry in entries {
        if let Fact::Event(event) = &mut entry.fact {
            let last: &mut u64 = seq.entry(event.session.clone()).or_default();
            *last += 1;
            event.seq = *last;
        }
    }
}

/// I1, I2.
#[test]
fn a_second_end_is_found() {
    breaks("I2", &mixed(), |entries| {
        let end = event(entries, "c2", EventKind::is_terminal);
        entries.insert(end + 1, entries[end].clone());
    });
}

/// I2.
#[test]
fn a_gap_in_the_numbers_is_found() {
    breaks("I2", &mixed(), |entries| {
        let started =
            find(entries, |fact| matches!(fact, Fact::Event(it) if it.kind.name() == "turn.started"));
        entries.remove(started);
    });
}

/// I1.
#[test]
fn a_call_without_an_end_is_found() {
    breaks("I1", &mixed(), |entries| {
        let end = event(entries, "c2", EventKind::is_terminal);
        forget_event(entries, end);
    });
}

/// I1.
#[test]
fn a_batch_that_is_never_answered_is_found() {
    breaks("I1", &mixed(), |entries| entries.retain(|entry| !matches!(entry.fact, Fact::Results(..))));
}

/// I1.
#[test]
fn a_result_unlike_its_event_is_found() {
    breaks("I1", &mixed(), |entries| {
        spoil_results(entries, |results| results[0].code = Some(ErrorKind::Panic))
    });
}

/// I6.
#[test]
fn results_in_another_order_are_found() {
    breaks("I6", &mixed(), |entries| spoil_results(entries, |results| results.swap(2, 3)));
}

/// I6.
#[test]
fn a_missing_result_is_found() {
    breaks("I6", &mixed(), |entries| spoil_results(entries, |results| drop(results.pop())));
}

fn spoil_results(entries: &mut [Entry], spoil: impl FnOnce(&mut Vec<crate::sim::ResultView>)) {
    let at = find(entries, |fact| matches!(fact, Fact::Results(..)));
    if let Fact::Results(_, results) = &mut entries[at].fact {
        spoil(results);
    }
}

/// I3.
#[test]
fn a_pool_over_its_width_is_found() {
    breaks("I3", &mixed(), |entries| {
        let (end, begin) =
            (handler(entries, 0, HandlerStep::Ended), handler(entries, 1, HandlerStep::Started));
        put_behind(entries, end, begin);
    });
}

/// I3.
#[test]
fn a_permit_held_after_all_work_is_found() {
    breaks("I3", &mixed(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Quiet(_)));
        if let Fact::Quiet(pools) = &mut entries[at].fact {
            pools[0].running = 1;
        }
    });
}

/// I4.
#[test]
fn serial_handlers_that_overlap_are_found() {
    breaks("I4", &mixed(), |entries| {
        let (end, begin) =
            (handler(entries, 2, HandlerStep::Ended), handler(entries, 3, HandlerStep::Started));
        put_behind(entries, end, begin);
    });
}

/// I4: a parked handler does not count.
#[test]
fn a_parked_handler_overlaps_nobody() {
    let program = mixed();
    let mut entries = play(&program).entries;
    let (end, begin) = (handler(&entries, 2, HandlerStep::Ended), handler(&entries, 3, HandlerStep::Started));
    put_behind(&mut entries, end, begin);
    let parked = Entry { at_us: entries[begin - 1].at_us, fact: Fact::Handler(2, HandlerStep::Parked) };
    entries.insert(begin - 1, parked);
    assert!(check(&program, &entries).iter().all(|violation| violation.rule != "I4"));
}

/// I7.
#[test]
fn a_run_that_starts_too_early_is_found() {
    breaks("I7", &mixed(), |entries| {
        let (end, begin) =
            (handler(entries, 1, HandlerStep::Ended), handler(entries, 2, HandlerStep::Started));
        put_behind(entries, end, begin);
    });
}

/// I7.
#[test]
fn a_run_that_starts_before_earlier_results_is_found() {
    breaks("I7", &mixed(), |entries| {
        let (end, begin) =
            (event(entries, "c1", EventKind::is_terminal), handler(entries, 2, HandlerStep::Started));
        put_behind(entries, end, begin);
    });
}

/// CL-3.
#[test]
fn writes_in_another_order_are_found() {
    breaks("CL-3", &mixed(), |entries| {
        let (first, second) =
            (handler(entries, 2, HandlerStep::Wrote), handler(entries, 3, HandlerStep::Wrote));
        entries.swap(first, second);
    });
}

/// I10.
#[test]
fn a_start_after_a_cancel_is_found() {
    breaks("I10", &mixed(), |entries| {
        entries.insert(0, Entry { at_us: 0, fact: Fact::CancelSession(0) });
        entries.iter_mut().skip(1).for_each(|entry| entry.at_us += 10_000_000);
    });
}

/// I10.
#[test]
fn a_handler_that_outlives_its_grace_is_found() {
    breaks("I10", &mixed(), |entries| {
        let (begin, end) =
            (handler(entries, 2, HandlerStep::Started), handler(entries, 2, HandlerStep::Ended));
        let cancel = Entry { at_us: entries[begin].at_us, fact: Fact::CancelTurn(0) };
        entries[end..].iter_mut().for_each(|entry| entry.at_us += 10_000_000);
        entries.insert(begin + 1, cancel);
    });
}

/// I14.
#[test]
fn a_refused_call_that_runs_is_found() {
    breaks("I14", &mixed(), |entries| {
        let at = event(entries, "c5", EventKind::is_terminal);
        let at_us = entries[at].at_us;
        entries.insert(at, Entry { at_us, fact: Fact::Handler(5, HandlerStep::Started) });
    });
}

/// I14.
#[test]
fn a_handler_that_runs_without_approval_is_found() {
    breaks("I14", &mixed(), |entries| {
        let yes = event(entries, "c4", |kind| matches!(kind, EventKind::ConfirmationResolved(_)));
        forget_event(entries, yes);
    });
}

/// SC-3.
#[test]
fn a_call_that_ran_and_is_reported_as_not_started_is_found() {
    let mut program = mixed();
    program.sessions[0].turns[0].batch.calls[0].script.end = End::Fail;
    breaks("SC-3", &program, |entries| {
        let at = event(entries, "c0", EventKind::is_terminal);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::Failed(failure) = &mut event.kind
        {
            failure.attempts = 0;
        }
    });
}

/// The model: an undisturbed call ends as it does alone.
#[test]
fn an_unexplained_end_is_found() {
    let mut program = mixed();
    program.sessions[0].turns[0].batch.calls[0].script.end = End::Fail;
    breaks("model", &program, |entries| {
        let at = event(entries, "c0", EventKind::is_terminal);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::Failed(failure) = &mut event.kind
        {
            failure.code = ErrorKind::Cancelled;
        }
    });
}

/// I12.
#[test]
fn a_session_that_waits_for_another_is_found() {
    let many = [READ; 12];
    breaks("I12", &program(1, &[&[READ, READ], &many]), |entries| {
        // The second read of the first session, moved behind all reads of the other.
        let mut late = Vec::new();
        let is_late = |entry: &Entry| match &entry.fact {
            Fact::Event(event) => {
                event.call_id.as_ref().is_some_and(|id| id.as_str() == "c1")
                    && event.kind.name() != "tool.call.received"
            }
            fact => matches!(fact, Fact::Handler(1, _)),
        };
        entries.retain(|entry| {
            let keep = !is_late(entry);
            if !keep {
                late.push(entry.clone());
            }
            keep
        });
        let last = handler(entries, 13, HandlerStep::Ended);
        let at_us = entries[last].at_us;
        for mut entry in late.into_iter().rev() {
            entry.at_us = at_us;
            if let Fact::Event(event) = &mut entry.fact
                && let EventKind::Called { queue_ms, .. } = &mut event.kind
            {
                *queue_ms = at_us / 1000;
            }
            entries.insert(last + 1, entry);
        }
    });
}

/// TS-3.
#[test]
fn a_stuck_run_is_found() {
    breaks("TS-3", &mixed(), |entries| {
        entries.push(Entry { at_us: 7_200_000_000, fact: Fact::Stuck("held".to_owned()) });
    });
}
