//! PO-1, PO-5, PO-6: the policy in force decides.

use super::{message, no_hang};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolyard::{
    Answer, AnswerError, ApprovalDesk, ApprovalRequest, Approver, Call, Caller, Denied, ErrorKind, EventKind,
    Grant, PolicyRules, Redactor, ResourceLimits, Rule, RuntimePolicy, Sandbox, SideEffects, ToolSpec,
    async_trait,
};
use toolyard_tests::{Yard, call, kinds, scripted, shape, yard};

fn allow_all() -> PolicyRules {
    PolicyRules::new(Rule::allow())
}

fn deny(tool: &str) -> PolicyRules {
    allow_all().tool(tool, Rule::Deny)
}

/// PO-1, PO-5: rules match by name and by side effects; if the default is to deny, a tool without a rule is refused.
#[tokio::test(start_paused = true)]
async fn rules_decide_who_runs() {
    let rules = PolicyRules::new(Rule::Deny)
        .side_effects(SideEffects::Read, Rule::allow())
        .tool("conc*", Rule::allow());
    let yard = yard(|builder, _| builder.policy(rules)).await;
    let batch =
        vec![call("r", "read", 0, "ok"), call("s", "serial", 0, "ok"), call("c", "concurrent", 0, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "r ok, s permission_denied, c ok");
    assert_eq!(message(&outcomes[1]), "Permission denied: tool 'serial' is disabled by policy");
    assert_eq!(yard.events.of_call("s"), ["tool.call.received", "tool.call.denied"]);
    yard.events.check();
}

/// PO-1: a limit that the host cannot enforce is `sandbox_error`; the handler does not run without it.
#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_enforced_is_refused() {
    let mut memory = ResourceLimits::unlimited();
    memory.memory = Some(1 << 20);
    for grant in [Grant { limits: memory, ..Grant::host() }, Grant { limits: memory, ..Grant::own_form() }] {
        let rules = allow_all().tool("read", Rule::Allow(grant));
        let yard = yard(|builder, _| builder.policy(rules)).await;
        let outcomes = yard.engine.session("s").dispatch(vec![call("r", "read", 0, "ok")]).await;
        assert_eq!(kinds(&outcomes), [Some(ErrorKind::SandboxError)]);
        assert_eq!(message(&outcomes[0]), "sandbox 'host' cannot limit memory: the call was not run");
        assert_eq!((outcomes[0].attempts, outcomes[0].sandbox), (0, Sandbox::Host));
        assert_eq!(yard.log.started(), [""; 0]);
        yard.events.check();
    }
}

/// V1: a new policy applies to waiting calls, whether they wait for permits, for their next attempt or for their run;
/// running calls go on.
#[tokio::test(start_paused = true)]
async fn a_new_policy_rechecks_waiting_calls() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch = vec![
        call("runs", "serial", 1000, "ok"),
        call("next", "serial", 0, "ok"),
        call("free", "concurrent", 0, "ok"),
    ];
    let queued = vec![call("queued", "serial", 0, "ok")];
    let retried = vec![Call::new("retried", "read", json!({"ends": ["transient", "ok"]}))];
    let swap = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let rules = deny("serial").tool("read", Rule::Deny);
        assert_eq!(yard.engine.set_policy(rules), 2);
    };
    let (other, third) = (yard.engine.session("s"), yard.engine.session("t"));
    let (outcomes, queued, retried, ()) = no_hang(async {
        tokio::join!(session.dispatch(batch), other.dispatch(queued), third.dispatch(retried), swap)
    })
    .await;
    assert_eq!(shape(&outcomes), "runs ok, next permission_denied, free ok");
    assert_eq!(shape(&queued), "queued permission_denied");
    assert_eq!(queued[0].attempts, 0);
    assert_eq!((shape(&retried).as_str(), retried[0].attempts), ("retried permission_denied", 1));
    assert_eq!(retried[0].error().unwrap().last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    let changed = yard.events.events().into_iter().find(|event| event.kind.name() == "policy.changed");
    assert_eq!(changed.unwrap().kind, EventKind::PolicyChanged { version: 2 });
    let called = yard.events.events().into_iter().find_map(|event| match event.kind {
        EventKind::Called { policy_version, .. } if event.call_id.as_ref()?.as_str() == "free" => {
            Some(policy_version)
        }
        _ => None,
    });
    assert_eq!(called, Some(2), "it was allowed by the policy in force");
    yard.events.check();
}

/// PO-1, V1: the bound on an output is that of the policy under which its call ran, also with redaction.
#[tokio::test(start_paused = true)]
async fn an_output_is_bounded_by_the_grant_in_force() {
    let of = |bytes| {
        let mut limits = ResourceLimits::unlimited();
        limits.output_bytes = bytes;
        PolicyRules::new(Rule::Allow(Grant { limits, ..Grant::host() }))
    };
    for (before, after, expected) in
        [(Some(3), None, "a ok, long-id ok"), (None, Some(3), "a ok, long-id output_too_large")]
    {
        let yard = yard(|builder, _| builder.policy(of(before)).redact(Redactor::standard())).await;
        let session = yard.engine.session("s");
        let batch =
            session.dispatch(vec![call("a", "serial", 1000, "ok"), call("long-id", "serial", 0, "ok")]);
        let swap = async {
            tokio::time::sleep(super::SECOND / 2).await;
            yard.engine.set_policy(of(after));
        };
        let (outcomes, ()) = tokio::join!(batch, swap);
        assert_eq!(shape(&outcomes), expected);
        yard.events.check();
    }
}

/// V1: a waiting call runs under the grant of the new policy.
#[tokio::test(start_paused = true)]
async fn a_waiting_call_runs_under_the_new_grant() {
    let yard = yard(|builder, _| builder).await;
    let batch =
        vec![call("a", "serial", 1000, "ok"), call("b", "serial", 5000, "ok"), call("c", "serial", 0, "ok")];
    let swap = async {
        let mut limits = ResourceLimits::unlimited();
        limits.wall_time = Some(super::SECOND);
        yard.engine.set_policy(PolicyRules::new(Rule::Allow(Grant { limits, ..Grant::host() })));
    };
    let session = yard.engine.session("s");
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), swap);
    assert_eq!(shape(&outcomes), "a ok, b timeout, c ok");
    assert_eq!(message(&outcomes[1]), "Tool exceeded 1s wall time limit");
    yard.events.check();
}

/// T13: revoking a policy during a question ends the call `permission_denied` at once, and withdraws the question.
#[tokio::test(start_paused = true)]
async fn t13_a_revoked_policy_ends_the_question() {
    let desk = ApprovalDesk::default();
    let yard =
        yard(|builder, _| builder.confirmations(toolyard::Confirmations::default()).approver(desk.clone()))
            .await;
    let session = yard.engine.session("s");
    let revoke = async {
        let question = desk.next().await.unwrap();
        yard.engine.set_policy(deny("serial"));
        question
    };
    let from = tokio::time::Instant::now();
    let (outcomes, question) =
        no_hang(async { tokio::join!(session.dispatch(vec![call("s", "serial", 0, "ok")]), revoke) }).await;
    assert_eq!(shape(&outcomes), "s permission_denied");
    assert!(from.elapsed() < super::SECOND);
    let late = desk.answer(question.id(), question.digest(), Answer::allow("ada")).await;
    assert_eq!(late, Err(toolyard::AnswerError::Withdrawn(question.id())));
    yard.events.check();
}

/// PO-4: an answer holds only for the policy under which the question was asked. If another policy also allows the
/// call, the question is asked anew within its time, and an answer to the old question is refused.
#[tokio::test(start_paused = true)]
async fn a_question_is_asked_again_under_a_new_policy() {
    let desk = ApprovalDesk::default();
    let yard =
        yard(|builder, _| builder.confirmations(toolyard::Confirmations::default()).approver(desk.clone()))
            .await;
    let session = yard.engine.session("s");
    let person = async {
        let old = desk.next().await.unwrap();
        yard.engine.set_policy(allow_all());
        let new = desk.next().await.unwrap();
        assert_eq!((old.id(), old.call_id()), (new.id(), new.call_id()));
        assert_ne!(old.digest(), new.digest());
        let refused = desk.answer(old.id(), old.digest(), Answer::allow("ada")).await;
        assert_eq!(refused, Err(toolyard::AnswerError::Digest(old.id())));
        assert_eq!(desk.pending().len(), 1, "still open");
        desk.answer(new.id(), new.digest(), Answer::allow("ada")).await.unwrap();
        *new.digest()
    };
    let (outcomes, asked) =
        no_hang(async { tokio::join!(session.dispatch(vec![call("s", "serial", 0, "ok")]), person) }).await;
    assert_eq!(shape(&outcomes), "s ok");
    let called = yard.events.events().into_iter().find_map(|event| match event.kind {
        EventKind::Called { policy_version, .. } => Some((event.kind.digest(), policy_version)),
        _ => None,
    });
    assert_eq!(called, Some((Some(asked), 2)));
    yard.events.check();
}

/// PO-4, TS-2: under another policy, questions are asked anew in their original order.
#[tokio::test(start_paused = true)]
async fn questions_are_asked_again_in_order() {
    #[derive(Clone, Default)]
    struct Asked(Arc<Mutex<Vec<String>>>);
    #[async_trait]
    impl Approver for Asked {
        async fn ask(&self, request: &ApprovalRequest) -> Answer {
            self.0.lock().unwrap().push(request.call_id().to_string());
            std::future::pending().await
        }
    }
    let asked = Asked::default();
    let yard =
        yard(|builder, _| builder.confirmations(toolyard::Confirmations::default()).approver(asked.clone()))
            .await;
    let calls: Vec<_> = (10..40).map(|at| call(&format!("c{at}"), "serial", 0, "ok")).collect();
    let session = yard.engine.session("s");
    let swap = async {
        tokio::time::sleep(super::SECOND).await;
        yard.engine.set_policy(allow_all());
        tokio::time::sleep(super::SECOND).await;
        session.cancel();
    };
    no_hang(async { tokio::join!(session.dispatch(calls), swap) }).await;
    let asked = asked.0.lock().unwrap();
    assert_eq!(asked.len(), 60);
    assert_eq!(asked[..30], asked[30..]);
    assert!(asked[..30].is_sorted());
    yard.events.check();
}

/// PO-4: a call that was approved and still waits when the policy changes does not run on that approval.
#[tokio::test(start_paused = true)]
async fn an_approval_does_not_outlive_its_policy() {
    let yard = yard(|builder, _| builder.confirmations(toolyard::Confirmations::default())).await;
    let session = yard.engine.session("s");
    let swap = async {
        tokio::time::sleep(super::SECOND / 2).await;
        yard.engine.set_policy(allow_all());
    };
    let batch = vec![call("a", "serial", 1000, "ok"), call("b", "serial", 0, "ok")];
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), swap);
    assert_eq!(shape(&outcomes), "a ok, b permission_denied");
    assert_eq!(message(&outcomes[1]), "The policy changed after this call was approved.");
    assert!(outcomes[1].error().unwrap().retryable);
    yard.events.check();
}

/// Grants a call so many seconds, and more if its arguments say so.
struct Seconds(u64);

impl RuntimePolicy for Seconds {
    fn check(&self, _: &ToolSpec, args: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        let mut limits = ResourceLimits::unlimited();
        limits.wall_time = Some(super::SECOND * (self.0 + args["more"].as_u64().unwrap_or(0)) as u32);
        Ok(Grant { limits, ..Grant::own_form() })
    }
}

/// What a call is told whose grant would change a second time.
const TWICE: &str = "What this call may do changed twice while it was waiting.";

async fn seconds(desk: &ApprovalDesk) -> Yard {
    let approver = desk.clone();
    yard(|builder, _| {
        builder.policy(Seconds(1)).confirmations(toolyard::Confirmations::default()).approver(approver)
    })
    .await
}

/// V1: a call whose grant changes twice while it waits does not run.
#[tokio::test(start_paused = true)]
async fn a_grant_may_change_once_while_a_call_waits() {
    let desk = ApprovalDesk::default();
    let yard = seconds(&desk).await;
    let session = yard.engine.session("s");
    let policy = async {
        for seconds in [2, 3] {
            desk.next().await.unwrap();
            yard.engine.set_policy(Seconds(seconds));
        }
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), policy) }).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::PermissionDenied);
    assert_eq!(message(&outcome), TWICE);
    yard.events.check();
}

/// V1, SM-5: an edit with another grant is the second change, if the policy has changed before. It is refused to whoever
/// gave it, and the call may still run as it is.
#[tokio::test(start_paused = true)]
async fn an_edit_may_not_change_a_grant_again() {
    let desk = ApprovalDesk::default();
    let yard = seconds(&desk).await;
    let session = yard.engine.session("s");
    let person = async {
        desk.next().await.unwrap();
        yard.engine.set_policy(Seconds(2));
        let asked = desk.next().await.unwrap();
        let edit = Answer::edit("ada", json!({"more": 5}));
        let refused = desk.answer(asked.id(), asked.digest(), edit).await.unwrap_err();
        let AnswerError::Refused(_, refused) = refused else { panic!("{refused}") };
        assert_eq!((refused.kind, refused.why.as_ref()), (ErrorKind::PermissionDenied, TWICE));
        let asked = desk.next().await.unwrap();
        desk.answer(asked.id(), asked.digest(), Answer::allow("ada")).await.unwrap();
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), person) }).await;
    assert!(outcome.success(), "{outcome:?}");
    assert_eq!(outcome.edited(), None);
    yard.events.check();
}

/// PO-1: the policy learns who the caller is. PO-6: if the policy panics, nothing runs.
#[tokio::test(start_paused = true)]
async fn the_policy_knows_the_caller() {
    struct ByRole;
    impl RuntimePolicy for ByRole {
        fn check(&self, _: &ToolSpec, _: &Value, caller: &Caller<'_>) -> Result<Grant, Denied> {
            match caller.role {
                Some("writer") => Ok(Grant::host()),
                Some(role) => Err(Denied::Because(format!("a {role} does not do this"))),
                None => panic!("scripted panic"),
            }
        }
    }
    let yard = yard(|builder, log| builder.policy(ByRole).tool(scripted(ToolSpec::read("more"), log))).await;
    let mut errors = Vec::new();
    for role in [Some("writer"), Some("reader"), None] {
        let options =
            role.map_or_else(Default::default, |role| toolyard::SessionOptions::default().role(role));
        let session = yard.engine.session_with(role.unwrap_or("none"), options);
        let outcome = session.call(call("c", "more", 0, "ok")).await;
        errors.push(
            outcome.error().map_or_else(String::new, |error| format!("{}: {}", error.kind, error.message)),
        );
    }
    let refused = "permission_denied: a reader does not do this";
    assert_eq!(errors, ["", refused, "internal: the policy check failed"]);
    assert_eq!(yard.log.started(), ["c"]);
    yard.events.check();
}
