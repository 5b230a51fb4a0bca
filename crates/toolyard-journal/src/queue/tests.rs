use super::*;
use futures::FutureExt;

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
