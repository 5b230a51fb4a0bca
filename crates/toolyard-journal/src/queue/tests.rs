use super::*;
use crate::op::json_of;
use futures::{FutureExt, future::BoxFuture};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Wake},
};
use toolyard::{Batch, Call, Engine, Recorder, ToolContext, ToolError, ToolOutput, ToolSpec, tool_fn};

fn op() -> Op {
    Op::Engine { epoch: String::new() }
}

/// Whether the record is let in.
fn needs(queue: &Arc<Queue>, bytes: usize) -> bool {
    match queue.wait_for(Some(op()), bytes, Faulty::Kept) {
        Durable::When(durable) => durable.now_or_never().is_none(),
        Durable::Nothing => panic!("it is waited for"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the writer's clock is the machine's")]
fn now() -> Instant {
    Instant::now()
}

/// What the writer takes.
fn taken(queue: &Queue) -> Vec<Job> {
    let mut group = Vec::new();
    queue.begin(Duration::ZERO, &mut group);
    group
}

fn lost_of(queue: &Queue, given: usize, bytes: usize) -> u64 {
    let before = queue.status().lost;
    for _ in 0..given {
        queue.give(op(), bytes);
    }
    queue.status().lost - before
}

/// JR-3: what nobody needs has half of the places, and what somebody waits for has all that it leaves.
#[test]
fn spare_records_take_half_of_the_places() {
    let queue = Arc::new(Queue::new(10, 1000));
    assert_eq!(lost_of(&queue, 9, 1), 4);
    assert_eq!((0..9).filter(|_| needs(&queue, 1)).count(), 5);
    assert_eq!(queue.status().waiting, 10);
    assert_eq!(taken(&queue).len(), 10);
    assert_eq!((0..12).filter(|_| needs(&queue, 1)).count(), 10);
    assert_eq!(lost_of(&queue, 1, 1), 1, "all places are taken");
}

/// JR-3: and half of the bytes, also if a single one of them is larger.
#[test]
fn spare_records_take_half_of_the_bytes() {
    let queue = Arc::new(Queue::new(100, 1000));
    assert_eq!(lost_of(&queue, 4, 200), 2);
    assert!(needs(&queue, 300) && needs(&queue, 300));
    assert!(!needs(&queue, 1));
    taken(&queue);
    assert_eq!(lost_of(&queue, 2, 5000), 1);
    assert!(needs(&queue, 300) && needs(&queue, 200));
    assert!(!needs(&queue, 1));
}

/// JR-2: a record that is larger than the bound goes when nothing of its kind waits, and no other then.
#[test]
fn a_large_record_goes_alone() {
    let queue = Arc::new(Queue::new(100, 1000));
    assert_eq!(lost_of(&queue, 2, 200), 0);
    assert!(needs(&queue, 5000));
    assert!(!needs(&queue, 1));
    taken(&queue);
    assert_eq!(queue.status().waiting_bytes, 0);
    assert!(needs(&queue, 1));
}

/// Gives the ends of reads to a queue, and nothing else.
struct Ends(Arc<Queue>);

impl Recorder for Ends {
    fn ended(&self, end: &EndRecord<'_>) -> Durable {
        self.0.give_end(end, 1);
        Durable::Nothing
    }
}

/// Makes so many reads, in batches of 100, whose ids and results have some 30 bytes. Returns the queue, and the ids of the ends in
/// each of its records.
async fn ends_of(queue: Queue, reads: usize) -> (Arc<Queue>, Vec<Vec<String>>) {
    let queue = Arc::new(queue);
    let read = tool_fn(ToolSpec::read("read"), |_: serde_json::Value, cx: ToolContext| async move {
        Ok(format!("{:>20}", cx.call_id().as_str()))
    });
    let engine =
        Engine::builder().tool(read).recorder(Ends(Arc::clone(&queue))).build().await.expect("a tool");
    let session = engine.session("demo");
    for batch in (0..reads).collect::<Vec<_>>().chunks(100) {
        let calls = batch.iter().map(|at| Call::new(format!("call_{at}"), "read", "{}"));
        assert!(session.dispatch(calls.collect::<Batch>()).await.iter().all(toolyard::Outcome::success));
    }
    let jobs = taken(&queue);
    let ids = jobs.iter().map(|job| {
        let Some(Op::Ends(ends)) = &job.op else { panic!("it has ends") };
        let mut ids = Vec::new();
        let each = ends.try_each(|call, end| {
            assert!(end.status.contains(&format!("{:>20}", call.call_id.as_str())), "{}", end.status);
            ids.push(call.call_id.as_str().to_owned());
            Ok::<_, std::convert::Infallible>(())
        });
        assert!(each.is_ok());
        assert_eq!(ids.len(), job.records);
        ids
    });
    let ids = ids.collect();
    (queue, ids)
}

/// JR-3: the ends of a batch's reads are one record, and each has its own call and result.
#[tokio::test]
async fn the_ends_of_reads_go_together() {
    let (queue, ids) = ends_of(Queue::new(1000, 1 << 20), 250).await;
    let mut all: Vec<_> = ids.concat();
    all.sort_by_key(|id| id["call_".len()..].parse::<usize>().expect("a number"));
    assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    assert_eq!(all, (0..250).map(|at| format!("call_{at}")).collect::<Vec<_>>());
    assert_eq!((queue.status().lost, queue.status().waiting), (0, 250));
}

/// JR-3: the ends of one record are read as they were given, whatever each of them is.
#[tokio::test]
async fn ends_of_all_kinds_go_together() {
    let queue = Arc::new(Queue::new(1000, 1 << 20));
    let read = tool_fn(ToolSpec::read("read"), |asked: serde_json::Value, _: ToolContext| async move {
        match asked["kind"].as_u64().unwrap_or_default() {
            0 => Ok(ToolOutput::text("a \"b\" \u{1}")),
            1 => Err(ToolError::execution("no")),
            2 => Ok(ToolOutput::failure("")),
            _ => Ok(ToolOutput::json(serde_json::json!({"a": 1}))),
        }
    });
    let engine =
        Engine::builder().tool(read).recorder(Ends(Arc::clone(&queue))).build().await.expect("a tool");
    let calls = (0..12).map(|at| Call::new(format!("call_{at}"), "read", format!("{{\"kind\":{}}}", at % 4)));
    let outcomes = engine.session("demo").dispatch(calls.collect::<Batch>()).await;
    let expected = outcomes.iter().map(|outcome| {
        let json = match &outcome.status {
            Ok(output) => json_of(output),
            Err(error) => json_of(error),
        };
        (outcome.call_id.to_string(), json)
    });
    let expected: BTreeMap<_, _> = expected.collect();
    let jobs = taken(&queue);
    let [Job { op: Some(Op::Ends(ends)), .. }] = &jobs[..] else { panic!("they are one record") };
    let mut read = BTreeMap::new();
    let all = ends.try_each(|call, end| {
        assert_eq!(end.code.is_some(), end.status.contains("\"code\""));
        read.insert(call.call_id.to_string(), end.status.to_string());
        Ok::<_, std::convert::Infallible>(())
    });
    assert!(all.is_ok());
    assert_eq!((read.len(), read), (12, expected));
}

/// JR-3: they are left out one by one where half of the records, or of the bytes, are taken.
#[tokio::test]
async fn the_ends_of_reads_have_half_of_the_queue() {
    let (queue, ids) = ends_of(Queue::new(60, 1 << 20), 100).await;
    assert_eq!((ids.concat().len(), queue.status().lost), (30, 70));
    let (queue, ids) = ends_of(Queue::new(1000, 1000), 100).await;
    let kept = ids.concat().len();
    assert!((5..20).contains(&kept), "{kept}");
    assert_eq!(queue.status().lost, 100 - kept as u64);
}

fn names(group: &[Job]) -> Vec<&str> {
    let each = group.iter().map(|job| match &job.op {
        Some(Op::Engine { epoch }) => epoch.as_str(),
        _ => "another record",
    });
    each.collect()
}

fn named(name: &str) -> Option<Op> {
    Some(Op::Engine { epoch: name.to_owned() })
}

/// JR-2: what comes while a group is applied belongs to it, and it ends once nothing does; whoever waits for what was
/// taken before it was asked for counts among those who are in flight.
#[tokio::test]
async fn a_group_takes_what_comes_while_it_is_applied() {
    let queue = Arc::new(Queue::new(100, 1000));
    let given = |name| match queue.wait_for(named(name), 1, Faulty::Kept) {
        Durable::When(durable) => durable,
        Durable::Nothing => panic!("it is waited for"),
    };
    let mut group = Vec::new();
    let mut first = given("first");
    assert!(futures::poll!(&mut first).is_pending());
    assert!(queue.begin(Duration::MAX, &mut group));
    let mut second = given("second");
    queue.add_to(&mut group, now());
    assert_eq!(names(&group), ["first", "second"]);
    assert!(futures::poll!(&mut second).is_pending(), "it is hurried when the writer has it already");
    queue.add_to(&mut group, now());
    assert_eq!((group.len(), queue.waiting.lock().in_flight()), (2, 2));
    let third = given("third");
    queue.written(2, 0, &[]);
    second.await.expect("it is written");
    first.await.expect("it is written");
    let mut third = std::pin::pin!(third);
    assert!(futures::poll!(&mut third).is_pending());
    assert_eq!(queue.waiting.lock().in_flight(), 1);
}

/// What becomes of a record.
type Told = BoxFuture<'static, Result<(), RecordError>>;

/// So many who wait for records that are taken, each of whom has asked, and what becomes of them.
fn waiting(queue: &Arc<Queue>, count: usize, waker: &Waker) -> Vec<Told> {
    let each = (0..count).map(|_| {
        let Durable::When(mut durable) = queue.wait_for(Some(op()), 1, Faulty::Kept) else {
            panic!("it is waited for")
        };
        assert!(durable.poll_unpin(&mut Context::from_waker(waker)).is_pending());
        durable
    });
    let each = each.collect();
    taken(queue);
    each
}

/// How often it was woken; whoever wakes it waits for the lock.
#[derive(Default)]
struct Woken(AtomicUsize, Mutex<()>);

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        drop(self.1.lock());
    }
}

/// JR-2: of many who are told the writer wakes one; whoever asks first, or goes, wakes the others, and so does the writer
/// later; a few it wakes itself.
#[test]
fn one_who_is_told_wakes_the_others() {
    let ways: [fn(&Queue, &mut Vec<Told>); 3] = [
        |_, each| assert!(each[3].poll_unpin(&mut Context::from_waker(Waker::noop())).is_ready()),
        |_, each| drop(each.remove(0)),
        |queue, _| queue.wake_others(),
    ];
    for way in ways {
        let (queue, woken) = (Arc::new(Queue::new(100, 1000)), Arc::new(Woken::default()));
        let mut each = waiting(&queue, 6, &Waker::from(Arc::clone(&woken)));
        queue.written(6, 0, &[]);
        assert_eq!((woken.times(), queue.are_woken()), (1, false));
        way(&queue, &mut each);
        assert_eq!((woken.times(), queue.are_woken()), (6, true));
        let _few = waiting(&queue, 3, &Waker::from(Arc::clone(&woken)));
        queue.written(3, 0, &[]);
        assert_eq!((woken.times(), queue.are_woken()), (9, true));
    }
}

/// JR-2: nobody depends on the one who wakes the others: while it is held up, the writer wakes those that are left.
#[test]
fn who_is_held_up_holds_up_nobody() {
    let (queue, woken) = (Arc::new(Queue::new(100, 1000)), Arc::new(Woken::default()));
    let (slow, held) = (Arc::new(Woken::default()), Arc::clone(&woken));
    let mut each = waiting(&queue, 6, &Waker::from(Arc::clone(&slow)));
    each.iter_mut().skip(2).for_each(|last| {
        assert!(last.poll_unpin(&mut Context::from_waker(&Waker::from(Arc::clone(&held)))).is_pending());
    });
    queue.written(6, 0, &[]);
    assert_eq!((slow.times(), woken.times()), (1, 0));
    std::thread::scope(|threads| {
        let holds = slow.1.lock();
        threads.spawn(|| queue.wake_others());
        let began = now();
        while slow.times() < 2 && began.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        queue.wake_others();
        assert_eq!((slow.times(), woken.times()), (2, 4));
        drop(holds);
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("nobody is to wake it")
    }
}

fn caught<T>(run: impl FnOnce() -> T) -> std::thread::Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
}

/// JR-2, JR-12: where the writer wakes a task that panics, all others are told, and woken by the end of the writer; what was
/// not written has failed.
#[test]
fn a_waker_that_panics_concerns_nobody_else() {
    let (queue, woken) = (Arc::new(Queue::new(100, 1000)), Arc::new(Woken::default()));
    let waker = Waker::from(Arc::clone(&woken));
    let _panics = waiting(&queue, 1, &Waker::from(Arc::new(Panics)));
    let mut each = waiting(&queue, 5, &waker);
    let Durable::When(mut last) = queue.wait_for(Some(op()), 1, Faulty::Kept) else {
        panic!("it is waited for")
    };
    assert!(last.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    assert!(caught(|| queue.written(6, 0, &[])).is_err());
    queue.stop(JournalState::Stopped("it panicked".to_owned()), "it panicked");
    assert_eq!(woken.times(), 6);
    let all = each.iter_mut().map(|told| told.now_or_never());
    assert!(all.into_iter().all(|told| matches!(told, Some(Ok(())))));
    assert!(matches!(last.now_or_never(), Some(Err(error)) if error.to_string().contains("it panicked")));
}

/// JR-12: a record that has failed is not told to be written if it is asked for again after a panic.
#[test]
fn an_error_outlasts_a_panic() {
    let (queue, full) = (Arc::new(Queue::new(100, 1000)), RecordError::new("the disk is full"));
    let mut each = waiting(&queue, 6, &Waker::from(Arc::new(Panics)));
    let asks = |each: &mut Vec<Told>| each[5].poll_unpin(&mut Context::from_waker(Waker::noop()));
    assert!(caught(|| queue.written(5, 0, &[(5, full)])).is_err());
    for _ in 0..5 {
        assert!(caught(|| asks(&mut each)).is_err(), "it wakes one more, which panics");
    }
    assert!(matches!(asks(&mut each), Poll::Ready(Err(error)) if error.to_string().contains("full")));
}

/// JR-2: a group that comes to have very many records is ended, although more wait.
#[tokio::test]
async fn a_group_is_bounded() {
    let queue = Arc::new(Queue::new(10_000, 1 << 30));
    let mut group = Vec::new();
    queue.give(op(), 1);
    assert!(queue.begin(Duration::ZERO, &mut group));
    let mut before = 0;
    while group.len() > before && before < 10_000 {
        before = group.len();
        for _ in 0..100 {
            queue.give(op(), 1);
        }
        queue.add_to(&mut group, now());
    }
    assert_eq!((group.len(), queue.status().waiting), (1101, 1201));
}

/// JR-2: what is given at the moment when nobody is expected any more is not overlooked by the writer, which waits without an
/// end then: a record for which nobody waits, and that nothing more comes.
#[test]
#[expect(clippy::disallowed_methods, reason = "the writer is a thread, whose clock is the machine's")]
fn nothing_is_overlooked_once_nobody_is_expected() {
    const MILLISECOND: Duration = Duration::from_millis(1);
    let yield_until = |time| {
        while Instant::now() < time {
            std::thread::yield_now();
        }
    };
    for is_closed in [false, true].repeat(3) {
        let (queue, until) = (Arc::new(Queue::new(100, 1000)), Instant::now() + 20 * MILLISECOND);
        // Those who were told are expected for a millisecond.
        queue.waiting.lock().gathering.told(8, 0, until - MILLISECOND);
        let (tell, told) = std::sync::mpsc::channel();
        let writer = Arc::clone(&queue);
        std::thread::spawn(move || tell.send(writer.begin(Duration::ZERO, &mut Vec::new())));
        yield_until(until - 5 * MILLISECOND);
        // The writer's wait ends while the lock is held, and it is not among those who are woken any more.
        let mut waiting = queue.waiting.lock();
        yield_until(until + 5 * MILLISECOND);
        if is_closed {
            waiting.is_closing = true;
            queue.bell.ring();
        } else {
            let op = Some(Op::Engine { epoch: String::new() });
            let job = Job { op, asked: None, faulty: Faulty::Kept, is_spare: true, bytes: 1, records: 1 };
            queue.add(&mut waiting, job);
        }
        drop(waiting);
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(!is_closed));
    }
}
