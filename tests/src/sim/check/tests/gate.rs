//! Tests of the checks on policies and approvals.

use super::{ASKED, READ, SERIAL, breaks, event, find, forget_event, mixed, program};
use crate::sim::{
    Entry, Fact, HandlerStep, Program,
    program::{Act, AnswerPlan, Consent, Order, PolicyPlan},
};
use toolyard::{Answer, CallDigest, Decision, EventKind, Receipt, event::Approval};

/// c0 writes for a second before c1 may; meanwhile a second policy, which allows both too, comes into force.
fn changed() -> Program {
    let mut program = program(1, &[&[SERIAL, SERIAL]]);
    program.sessions[0].turns[0].batch.calls[0].script.steps = vec![crate::sim::program::Step::Sleep(1_000)];
    program.policies.push(PolicyPlan::default());
    program.orders.push(Order { at_ms: 500, act: Act::SetPolicy(1) });
    program
}

/// c0 is asked about and gets an `Always`, so c1 needs no question.
fn always() -> Program {
    let mut program = program(1, &[&[ASKED]]);
    let mut later = program.sessions[0].turns[0].clone();
    program.sessions[0].turns[0].batch.calls[0].answer = AnswerPlan::Always(1);
    later.batch.calls[0].node = 1;
    later.gap_ms = 100;
    program.sessions[0].turns.push(later);
    program
}

fn called(entries: &mut [Entry], call: &str, spoil: impl FnOnce(&mut EventKind)) {
    let at = event(entries, call, |kind| matches!(kind, EventKind::Called { .. }));
    if let Fact::Event(event) = &mut entries[at].fact {
        spoil(&mut event.kind);
    }
}

/// I14: a call starts under a policy that is no longer in force.
#[test]
fn a_start_under_a_replaced_policy_is_found() {
    breaks("I14", &changed(), |entries| {
        called(entries, "c1", |kind| {
            if let EventKind::Called { policy_version, digest, .. } = kind {
                (*policy_version, *digest) = (1, None);
            }
        });
    });
}

/// I14: a call starts under a policy that denies it, because the journal is changed to name a denying policy.
#[test]
fn a_start_that_no_policy_allows_is_found() {
    let mut other = changed();
    other.policies.push(PolicyPlan { denied: vec![SERIAL], ..PolicyPlan::default() });
    breaks("I14", &other, |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::SetPolicy(1)));
        entries[at].fact = Fact::SetPolicy(2);
    });
}

/// PO-1: a change of policy without its event.
#[test]
fn an_unreported_policy_change_is_found() {
    breaks("PO-1", &changed(), |entries| {
        entries.retain(|entry| {
            !matches!(&entry.fact, Fact::Event(event) if matches!(event.kind, EventKind::PolicyChanged { .. }))
        });
    });
}

/// I14: a yes that the approver never gave.
#[test]
fn an_approval_that_nobody_gave_is_found() {
    breaks("I14", &mixed(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Answered(4, ..)));
        entries.remove(at);
    });
    breaks("I14", &mixed(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Answered(4, ..)));
        if let Fact::Answered(_, _, answer) = &mut entries[at].fact {
            *answer = Answer::deny("ada");
        }
    });
}

/// I14: a yes to something other than what runs.
#[test]
fn an_approval_of_another_call_is_found() {
    let other = CallDigest::of_text("else", "", &"s0".into());
    breaks("I14", &mixed(), |entries| {
        called(entries, "c4", |kind| {
            if let EventKind::Called { digest, .. } = kind {
                *digest = Some(other.into());
            }
        });
    });
    breaks("I14", &mixed(), |entries| {
        let at = event(entries, "c4", |kind| matches!(kind, EventKind::ConfirmationResolved(_)));
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::ConfirmationResolved(it) = &mut event.kind
        {
            it.digest = Some(other);
        }
    });
}

/// I14: a call that needs an approval starts without a question.
#[test]
fn a_start_without_a_question_is_found() {
    breaks("I14", &mixed(), |entries| {
        let asked = event(entries, "c4", |kind| matches!(kind, EventKind::ConfirmationRequested(_)));
        forget_event(entries, asked);
        let yes = event(entries, "c4", |kind| matches!(kind, EventKind::ConfirmationResolved(_)));
        forget_event(entries, yes);
        called(entries, "c4", |kind| {
            if let EventKind::Called { approval, .. } = kind {
                *approval = None;
            }
        });
    });
}

/// I14: an answer holds for other calls only if it was meant to, and only until it is forgotten.
#[test]
fn a_start_on_an_answer_not_remembered_is_found() {
    breaks("I14", &always(), |entries| {
        called(entries, "c1", |kind| {
            assert!(matches!(kind, EventKind::Called { approval: Some(Approval::Remembered), .. }));
        });
        let at = find(entries, |fact| matches!(fact, Fact::Answered(0, ..)));
        if let Fact::Answered(_, _, answer) = &mut entries[at].fact {
            *answer = Answer::allow("ada");
        }
    });
    breaks("I14", &always(), |entries| {
        let at = event(entries, "c1", |kind| matches!(kind, EventKind::Received { .. }));
        let at_us = entries[at].at_us;
        entries.insert(at, Entry { at_us, fact: Fact::Forget(0) });
    });
}

/// PO-3: a question that already has its answer.
#[test]
fn a_needless_question_is_found() {
    let mut twice = always();
    twice.sessions[0].turns[0].batch.calls[0].answer = AnswerPlan::Yes(1);
    breaks("PO-3", &twice, |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Answered(0, ..)));
        if let Fact::Answered(_, _, answer) = &mut entries[at].fact {
            *answer = Answer::always("ada");
        }
    });
}

/// SM-6: an answer without a receipt, one that counts twice, and one that approves without having been taken.
#[test]
fn a_receipt_that_is_wrong_is_found() {
    let receipt = |entries: &[Entry]| find(entries, |fact| matches!(fact, Fact::Receipt(4, Receipt::Taken)));
    breaks("SM-6", &mixed(), |entries| {
        let at = receipt(entries);
        entries.remove(at);
    });
    breaks("SM-6", &mixed(), |entries| {
        let at = receipt(entries);
        entries.insert(at, entries[at].clone());
    });
    breaks("SM-6", &mixed(), |entries| {
        let at = receipt(entries);
        entries[at].fact = Fact::Receipt(4, Receipt::Withdrawn);
    });
}

/// SM-5: a record that does not say who said no, or says more than was said.
#[test]
fn a_record_without_its_decision_is_found() {
    let mut no = program(1, &[&[ASKED]]);
    no.sessions[0].turns[0].batch.calls[0].answer = AnswerPlan::No(1);
    let spoilt = |spoil: &dyn Fn(&mut EventKind)| {
        breaks("SM-5", &no, |entries| {
            let at = event(entries, "c0", |kind| matches!(kind, EventKind::ConfirmationResolved(_)));
            if let Fact::Event(event) = &mut entries[at].fact {
                spoil(&mut event.kind);
            }
        });
    };
    spoilt(&|kind| {
        if let EventKind::ConfirmationResolved(it) = kind {
            it.who = None;
        }
    });
    spoilt(&|kind| {
        if let EventKind::ConfirmationResolved(it) = kind {
            it.reason = None;
        }
    });
    spoilt(&|kind| {
        if let EventKind::ConfirmationResolved(it) = kind {
            it.decision = Some(Decision::TooLong);
        }
    });
}

/// SM-6: a question with the id of another one.
#[test]
fn a_repeated_question_id_is_found() {
    let mut program = always();
    program.sessions[0].turns[0].batch.calls[0].answer = AnswerPlan::Yes(1);
    breaks("SM-6", &program, |entries| {
        let asked = |call| event(entries, call, |kind| matches!(kind, EventKind::ConfirmationRequested(_)));
        let ids = ["c0", "c1"].map(|call| match &entries[asked(call)].fact {
            Fact::Event(event) => match &event.kind {
                EventKind::ConfirmationRequested(it) => it.request,
                _ => unreachable!("it is a question"),
            },
            _ => unreachable!("it is an event"),
        });
        assert!(ids[0] < ids[1]);
        let at = asked("c1");
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::ConfirmationRequested(it) = &mut event.kind
        {
            it.request = ids[0];
        }
    });
}

/// PO-1b: a handler runs for an agent that may not call its tool.
#[test]
fn a_handler_of_a_forbidden_tool_is_found() {
    let mut barred = program(1, &[&[READ]]);
    barred.sessions[0].barred = vec![READ];
    breaks("PO-1b", &barred, |entries| {
        let at = event(entries, "c0", EventKind::is_terminal);
        let at_us = entries[at].at_us;
        entries.insert(at, Entry { at_us, fact: Fact::Handler(0, HandlerStep::Started) });
    });
}

/// The model: a policy that allows a call does not explain its refusal.
#[test]
fn a_refusal_that_no_policy_explains_is_found() {
    let mut denied = program(1, &[&[READ]]);
    denied.policies[0].denied = vec![READ];
    let report = crate::sim::play(&denied);
    assert_eq!(report.violations, []);
    denied.policies[0].denied.clear();
    let violations = super::check(&denied, &report.entries);
    assert!(violations.iter().any(|violation| violation.rule == "model"), "{violations:#?}");
}

/// PO-3: one answer, yes or no, holds for all calls of its pattern, both earlier and later ones.
#[test]
fn one_answer_covers_its_pattern() {
    for answer in [AnswerPlan::Yes(50), AnswerPlan::No(50)] {
        let mut program = always();
        program.tools[ASKED].consent = Consent::AskedOnce;
        let first = &mut program.sessions[0].turns[0].batch.calls;
        first[0].answer = answer;
        let mut second = first[0].clone();
        (second.node, second.answer) = (2, AnswerPlan::Never);
        first.push(second);
        let report = crate::sim::play(&program);
        assert_eq!(report.violations, []);
        let answers = report.entries.iter().filter(|entry| matches!(entry.fact, Fact::Answered(..)));
        assert_eq!(answers.count(), 1);
        let ran =
            report.entries.iter().filter(|it| matches!(it.fact, Fact::Handler(_, HandlerStep::Started)));
        assert_eq!(ran.count(), if matches!(answer, AnswerPlan::Yes(_)) { 3 } else { 0 });
    }
}
