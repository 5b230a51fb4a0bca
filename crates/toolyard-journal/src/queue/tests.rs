use super::*;
use futures::FutureExt;
use toolyard::{Batch, Call, Engine, Recorder, ToolContext, ToolSpec, tool_fn};

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
    assert_eq!(queue.take(Duration::ZERO).map(|jobs| jobs.len()), Some(10));
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
    queue.take(Duration::ZERO);
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
    queue.take(Duration::ZERO);
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

/// Makes so many reads, in batches of 100, whose results have some 70 bytes. Returns the queue, and the ids of the ends in
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
    let jobs = queue.take(Duration::ZERO).unwrap_or_default();
    let ids = jobs.iter().map(|job| {
        let Some(Op::Ends(ends)) = &job.op else { panic!("it has ends") };
        let ids = ends.each().map(|(call, end)| {
            assert!(end.status.contains(&format!("{:>20}", call.call_id.as_str())), "{}", end.status);
            call.call_id.as_str().to_owned()
        });
        let ids: Vec<_> = ids.collect();
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

/// JR-3: they are left out one by one where half of the records, or of the bytes, are taken.
#[tokio::test]
async fn the_ends_of_reads_have_half_of_the_queue() {
    let (queue, ids) = ends_of(Queue::new(60, 1 << 20), 100).await;
    assert_eq!((ids.concat().len(), queue.status().lost), (30, 70));
    let (queue, ids) = ends_of(Queue::new(1000, 2000), 100).await;
    let kept = ids.concat().len();
    assert!((5..20).contains(&kept), "{kept}");
    assert_eq!(queue.status().lost, 100 - kept as u64);
}
