//! Breakers: tools that keep failing are not called for a while (CB-1 to CB-10), nor are tools with too many zombies.

use super::{SECOND, no_hang};
use futures::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use toolyard::{
    Blocking, BreakerOf, BreakerPolicy, BreakerState, CallError, Engine, ErrorKind, EventKind, Outcome,
    Reason, RetryPolicy, Tool, ToolContext, ToolError, ToolOutput, ToolSettings, ToolSpec, async_trait,
    from_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

async fn read(yard: &Yard, ms: u64, end: &str) -> Outcome {
    no_hang(yard.engine.session("s").call(call("a", "read", ms, end))).await
}

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("expected a failed call")
}

fn state(engine: &Engine, of: &BreakerOf) -> BreakerState {
    engine.breakers().into_iter().find(|breaker| breaker.of == *of).unwrap().state
}

fn of_read() -> BreakerOf {
    BreakerOf::tool("read")
}

/// The transitions in the events: owner, from, to.
fn moves(yard: &Yard) -> Vec<String> {
    let transition = |kind: &EventKind| match kind {
        EventKind::BreakerTransition { tool_name, backend, from, to, .. } => {
            let of = tool_name.as_ref().or(backend.as_ref()).unwrap();
            Some(format!("{of} {}→{}", from.as_str(), to.as_str()))
        }
        _ => None,
    };
    yard.events.events().iter().filter_map(|event| transition(&event.kind)).collect()
}

/// Opens the breaker with five failures within ten seconds.
async fn open(yard: &Yard) {
    for _ in 0..5 {
        assert_eq!(error(&read(yard, 2000, "transient").await).kind, ErrorKind::Transient);
    }
}

/// T8, CB-2 to CB-5, CB-8: five failures open the breaker, the next call is answered at once, and after 30 s ± 20 %
/// one probe is admitted and no other call. If the probe is cancelled, the next call is the probe; a failed probe
/// opens the breaker for twice as long, a successful one closes it.
#[tokio::test(start_paused = true)]
async fn t8_a_failing_tool_opens_its_breaker() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    open(&yard).await;
    let from = Instant::now();
    let refused = read(&yard, 0, "ok").await;
    let refusal = error(&refused);
    assert_eq!((refusal.kind, refusal.attempts, from.elapsed()), (ErrorKind::CircuitOpen, 0, Duration::ZERO));
    let wait = refusal.retry_after.unwrap();
    assert!((24 * SECOND..=36 * SECOND).contains(&wait), "{wait:?}");

    sleep(wait).await;
    let session = yard.engine.session("s");
    let probe = session.call(call("probe", "read", 5000, "polite"));
    let beside = async {
        sleep(SECOND).await;
        let second = read(&yard, 0, "ok").await;
        assert_eq!(error(&second).kind, ErrorKind::CircuitOpen);
        assert!(session.cancel_call("probe"));
    };
    let (probe, ()) = no_hang(async { tokio::join!(probe, beside) }).await;
    assert_eq!(error(&probe).kind, ErrorKind::Cancelled);
    assert_eq!(state(&yard.engine, &of_read()), BreakerState::HalfOpen);

    let failed = read(&yard, 0, "transient").await;
    assert_eq!(error(&failed).kind, ErrorKind::Transient, "the slot is free again, this is the probe");
    let wait = error(&read(&yard, 0, "ok").await).retry_after.unwrap();
    assert!((48 * SECOND..=72 * SECOND).contains(&wait), "{wait:?}");

    sleep(wait).await;
    assert!(read(&yard, 0, "ok").await.success());
    assert_eq!(
        moves(&yard),
        [
            "read closed→open",
            "read open→half_open",
            "read half_open→open",
            "read open→half_open",
            "read half_open→closed"
        ]
    );
    yard.events.check();
}

/// T9, CB-6: a call admitted while closed that fails after the breaker went open and half-open causes no transition.
#[tokio::test(start_paused = true)]
async fn t9_calls_admitted_earlier_do_not_move_the_breaker() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    let late = yard.engine.session("late");
    let late = late.call(call("late", "read", 56_000, "transient"));
    let meanwhile = async {
        open(&yard).await;
        let wait = error(&read(&yard, 0, "ok").await).retry_after.unwrap();
        sleep(wait).await;
        let session = yard.engine.session("probe");
        let probe = session.call(call("probe", "read", 30_000, "ok"));
        assert!(probe.await.success());
    };
    let (late, ()) = no_hang(async { tokio::join!(late, meanwhile) }).await;
    assert_eq!(error(&late).kind, ErrorKind::Transient);
    assert_eq!(moves(&yard), ["read closed→open", "read open→half_open", "read half_open→closed"]);
    yard.events.check();
}

/// CB-2, V4: outcomes that say nothing about a tool's health are ignored, and a tool that says no counts as a success.
#[tokio::test(start_paused = true)]
async fn tool_reported_errors_are_not_breaker_failures() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    for _ in 0..20 {
        read(&yard, 0, "fail").await;
        read(&yard, 0, "limited").await;
    }
    assert_eq!(state(&yard.engine, &of_read()), BreakerState::Closed);
    let counts = yard.engine.breakers().into_iter().find(|breaker| breaker.of == of_read()).unwrap();
    assert_eq!((counts.successes, counts.failures), (20, 0));
}

/// RT-8: a breaker that opens between two attempts ends the call; the result has the last attempt's error.
#[tokio::test(start_paused = true)]
async fn an_opening_breaker_ends_retries() {
    let yard = yard(|builder, _| builder).await;
    read(&yard, 0, "transient").await;
    let outcome = read(&yard, 0, "transient").await;
    let refusal = error(&outcome);
    assert_eq!((refusal.kind, refusal.attempts), (ErrorKind::CircuitOpen, 2));
    assert_eq!(refusal.last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    yard.events.check();
}

/// CB-9: tools with the same back-end share a breaker that counts only transport failures.
#[tokio::test(start_paused = true)]
async fn tools_with_one_back_end_fail_together() {
    let yard = yard(|builder, log| {
        let of_host = |name| scripted(ToolSpec::read(name).backend("host"), log);
        builder.retry(RetryPolicy::NONE).tool(of_host("one")).tool(of_host("two")).tool_config(
            "one",
            ToolSettings { breaker: Some(BreakerPolicy::DISABLED), ..ToolSettings::default() },
        )
    })
    .await;
    let session = yard.engine.session("s");
    for _ in 0..10 {
        no_hang(session.call(call("a", "one", 0, "panic"))).await;
    }
    assert_eq!(state(&yard.engine, &BreakerOf::backend("host")), BreakerState::Closed);
    for _ in 0..5 {
        no_hang(session.call(call("a", "one", 0, "transient"))).await;
    }
    let outcomes =
        no_hang(session.dispatch(vec![call("a", "two", 0, "ok"), call("b", "read", 0, "ok")])).await;
    assert_eq!(shape(&outcomes), "a circuit_open, b ok");
    assert_eq!(outcomes[0].run, outcomes[1].run, "its routing is unchanged");
    assert_eq!(moves(&yard), ["host closed→open"]);
    yard.events.check();
}

/// CB-10: an operator opens, closes and resets a breaker.
#[tokio::test(start_paused = true)]
async fn an_operator_overrides_the_breaker() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    assert!(!yard.engine.force_open(&BreakerOf::tool("nobody")));
    assert!(yard.engine.force_open(&of_read()));
    sleep(1000 * SECOND).await;
    assert_eq!(error(&read(&yard, 0, "ok").await).kind, ErrorKind::CircuitOpen);
    assert!(yard.engine.force_closed(&of_read()));
    for _ in 0..10 {
        assert_eq!(error(&read(&yard, 0, "transient").await).kind, ErrorKind::Transient);
    }
    assert!(yard.engine.reset_breaker(&of_read()));
    open(&yard).await;
    assert_eq!(
        moves(&yard),
        [
            "read closed→forced_open",
            "read forced_open→forced_closed",
            "read forced_closed→closed",
            "read closed→open"
        ]
    );
    assert_eq!(state(&yard.engine, &of_read()), BreakerState::Open);
}

/// Handlers that block until they are released.
#[derive(Clone, Default)]
struct Stuck {
    jobs: Arc<Mutex<usize>>,
    go: Arc<Notify>,
}

#[async_trait]
impl Tool for Stuck {
    async fn execute(&self, _: &serde_json::Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        *self.jobs.lock().unwrap() += 1;
        self.go.notified().await;
        Ok("late".into())
    }
}

/// A `Blocking` executor for paused time: a task that ignores drop and cancel.
struct Tasks;

impl Blocking for Tasks {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

async fn stuck(spec: ToolSpec) -> (Yard, Stuck) {
    let stuck = Stuck::default();
    let tool = stuck.clone();
    let spec = spec.blocking().timeout(SECOND).breaker(BreakerPolicy::DISABLED);
    let yard =
        yard(|builder, _| builder.blocking(Arc::new(Tasks)).tool(from_fn(spec, move || tool.clone()))).await;
    (yard, stuck)
}

/// SC-6: a tool with four zombies is refused until they have stopped.
#[tokio::test(start_paused = true)]
async fn four_zombies_open_the_breaker() {
    let (yard, stuck) = stuck(ToolSpec::read("stuck")).await;
    let session = yard.engine.session("s");
    let calls = (0..4).map(|n| call(&format!("c{n}"), "stuck", 0, ""));
    let outcomes = no_hang(session.dispatch(calls.collect::<Vec<_>>())).await;
    assert!(
        outcomes.iter().all(|outcome| error(outcome).kind == ErrorKind::Timeout && outcome.attempts == 1)
    );
    let refused = no_hang(session.call(call("c5", "stuck", 0, ""))).await;
    assert_eq!(
        (error(&refused).kind, error(&refused).reason),
        (ErrorKind::CircuitOpen, Some(Reason::Zombie))
    );
    stuck.go.notify_waiters();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(error(&no_hang(session.call(call("c6", "stuck", 0, ""))).await).kind, ErrorKind::Timeout);
    assert_eq!(*stuck.jobs.lock().unwrap(), 5);
    yard.events.check();
}

/// T4, second half: a blocking serial tool deaf to its timeout keeps the lease until it ends. SC-6: or until an
/// operator releases it by force, which is an event.
#[tokio::test(start_paused = true)]
async fn t4_a_serial_zombie_keeps_the_lease_until_it_ends_or_is_released() {
    for released in [false, true] {
        let (yard, stuck) = stuck(ToolSpec::write("stuck")).await;
        let session = yard.engine.session("s");
        assert_eq!(error(&no_hang(session.call(call("a", "stuck", 0, ""))).await).kind, ErrorKind::Timeout);
        let from = Instant::now();
        let end = async {
            sleep(5 * SECOND).await;
            match released {
                true => assert_eq!(yard.engine.release_zombies("stuck"), 1),
                false => stuck.go.notify_waiters(),
            }
        };
        let (next, ()) =
            no_hang(async { tokio::join!(session.call(call("b", "serial", 0, "ok")), end) }).await;
        assert!(next.success());
        assert_eq!(from.elapsed(), 5 * SECOND, "it waited for the lease");
        let reported = yard
            .events
            .events()
            .iter()
            .any(|event| matches!(event.kind, EventKind::ZombiesReleased { count: 1, .. }));
        assert_eq!(reported, released);
        assert_eq!(yard.engine.release_zombies("stuck"), 0);
        stuck.go.notify_waiters();
        sleep(SECOND).await;
        yard.events.check();
    }
}

/// CB-3, CB-2: each attempt counts, a timeout at the instant it happens; an attempt cut off by a deadline or a cancel
/// is ignored.
#[tokio::test(start_paused = true)]
async fn cancelled_attempts_are_not_counted() {
    let slow = ToolSettings { timeout: Some(10 * SECOND), ..ToolSettings::default() };
    let yard = yard(|builder, _| builder.tool_config("read", slow)).await;
    let session = yard.engine.session("s");
    let counts = || {
        let read = yard.engine.breakers().into_iter().find(|breaker| breaker.of == of_read()).unwrap();
        (read.failures, read.successes)
    };
    let cancel = async {
        sleep(SECOND).await;
        assert!(session.cancel_call("cancelled"));
        sleep(8 * SECOND + SECOND / 2).await;
        assert_eq!(counts(), (0, 0));
        sleep(Duration::from_millis(501)).await;
        assert_eq!(counts(), (1, 0), "the timeout, at 10 s");
    };
    let batch = vec![
        call("cancelled", "read", 0, "polite"),
        call("late", "read", 0, "hang").deadline(2 * SECOND),
        call("hangs", "read", 0, "hang").deadline(11 * SECOND),
    ];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), cancel) }).await;
    assert_eq!(shape(&outcomes), "cancelled cancelled, late deadline_exceeded, hangs timeout");
    assert!(!read(&yard, 0, "transient").await.success());
    assert_eq!(counts(), (4, 0), "three attempts more");
    yard.events.check();
}

/// CB-7: the breaker is checked before the approver is asked and again after a yes.
#[tokio::test(start_paused = true)]
async fn no_question_is_asked_while_the_circuit_is_open() {
    struct Slow;
    #[async_trait]
    impl toolyard::Approver for Slow {
        async fn ask(&self, _: &toolyard::ApprovalRequest) -> toolyard::Answer {
            sleep(10 * SECOND).await;
            toolyard::Answer::allow("ada")
        }
    }
    let yard =
        yard(|builder, _| builder.confirmations(toolyard::Confirmations::default()).approver(Slow)).await;
    let (session, of) = (yard.engine.session("s"), BreakerOf::tool("concurrent"));
    let from = Instant::now();
    let close = async {
        sleep(SECOND).await;
        assert!(yard.engine.force_open(&of));
    };
    let write = |id: &str| call(id, "concurrent", 0, "ok");
    let (asked, ()) = no_hang(async { tokio::join!(session.call(write("a")), close) }).await;
    assert_eq!((error(&asked).kind, from.elapsed()), (ErrorKind::CircuitOpen, 10 * SECOND));
    let unasked = no_hang(session.call(write("b"))).await;
    assert_eq!((error(&unasked).kind, from.elapsed()), (ErrorKind::CircuitOpen, 10 * SECOND));
    assert!(yard.log.started().is_empty());
    yard.events.check();
}
