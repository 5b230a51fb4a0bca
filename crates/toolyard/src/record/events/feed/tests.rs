use super::*;
use futures::task::{ArcWake, waker};
use toolyard_core::{AgentPath, EventKind, SessionId};

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl ArcWake for Wakes {
    fn wake_by_ref(wakes: &Arc<Self>) {
        wakes.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn poll(self: &Arc<Self>, feed: &Feed, key: ReaderKey) -> Poll<Option<Received>> {
        feed.poll_read(key, &mut Taken::new(), &mut Context::from_waker(&waker(self.clone())))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn event(seq: u64) -> Arc<Event> {
    let mut event = Event::new(SessionId::from("s"), AgentPath::root(), EventKind::SessionOpened);
    event.seq = seq;
    Arc::new(event)
}

/// Adds events; whether a reader waits for them.
fn feed_all(feed: &Feed, events: impl IntoIterator<Item = Arc<Event>>) -> bool {
    let Some(mut feeding) = feed.feeding() else { return false };
    events.into_iter().for_each(|event| feeding.push(event));
    feeding.end()
}

fn push(feed: &Feed, numbers: impl IntoIterator<Item = u64>) {
    if feed_all(feed, numbers.into_iter().map(event)) {
        feed.wake();
    }
}

/// What a reader finds: the numbers of events, and of missed ones with a minus.
fn read(feed: &Feed, key: ReaderKey) -> Vec<i64> {
    let number = |received| match received {
        Received::Event(event) => i64::try_from(event.seq).unwrap(),
        Received::Missed(count) => -i64::try_from(count).unwrap(),
    };
    let mut taken = Taken::new();
    let next = || taken.pop_front().map(Received::Event).or_else(|| feed.try_read(key, &mut taken));
    std::iter::from_fn(next).map(number).collect()
}

/// OB-3: each reader gets all events from when it came, in order.
#[test]
fn each_reader_has_its_own_place() {
    let feed = Feed::default();
    push(&feed, [1]);
    let one = feed.join();
    push(&feed, [2, 3]);
    let other = feed.join();
    push(&feed, [4]);
    assert_eq!(read(&feed, other), [4]);
    assert_eq!(read(&feed, one), [2, 3, 4]);
    assert!(read(&feed, one).is_empty());
}

/// OB-3: one that is too slow learns how many events it has missed, and goes on with the oldest that is kept; another
/// misses nothing.
#[test]
fn a_slow_reader_misses_the_oldest() {
    let feed = Feed::default();
    let (slow, fast) = (feed.join(), feed.join());
    let max = LAG_MAX as u64;
    push(&feed, 1..=max);
    assert_eq!(read(&feed, fast).len(), LAG_MAX);
    push(&feed, [max + 1, max + 2]);
    assert_eq!(read(&feed, fast), [4097, 4098]);
    let of_slow = read(&feed, slow);
    assert_eq!((of_slow.len(), &of_slow[..3]), (1 + LAG_MAX, &[-2, 3, 4][..]));
}

/// CC-4: an event is kept until the last of its readers has read it, or has gone.
#[test]
fn what_all_have_read_is_not_kept() {
    let feed = Feed::default();
    let (one, other) = (feed.join(), feed.join());
    let events = [event(1), event(2), event(3)];
    let held = || events.iter().map(Arc::strong_count).collect::<Vec<_>>();
    assert!(!feed_all(&feed, events[..2].iter().cloned()), "nobody waits");
    assert_eq!(read(&feed, one), [1, 2]);
    assert_eq!(held(), [2, 2, 1]);
    let mut taken = Taken::new();
    assert!(matches!(feed.try_read(other, &mut taken), Some(Received::Event(_))));
    assert_eq!(held(), [1, 2, 1], "the second one was taken with the first");
    drop(taken);
    assert_eq!(held(), [1, 1, 1]);
    feed_all(&feed, [events[2].clone()]);
    assert_eq!(read(&feed, one), [3]);
    assert_eq!(held(), [1, 1, 2]);
    feed.leave(other);
    assert_eq!(held(), [1, 1, 1]);
    feed.leave(one);
    assert!(!feed_all(&feed, [events[0].clone()]));
    assert_eq!(held(), [1, 1, 1], "nobody is there to read it");
}

/// OB-3: a reader takes many events at once, and never more than it may: what it has taken it does not miss.
#[test]
fn a_reader_takes_many_at_once() {
    let feed = Feed::default();
    let (quick, slow) = (feed.join(), feed.join());
    let (max, at_once) = (LAG_MAX as u64, TAKEN_MAX as u64);
    let mut taken = Taken::new();
    push(&feed, 1..=at_once + 1);
    assert!(matches!(feed.try_read(slow, &mut taken), Some(Received::Event(_))));
    assert_eq!(taken.iter().map(|event| event.seq).collect::<Vec<_>>(), (2..=at_once).collect::<Vec<_>>());
    assert_eq!(read(&feed, quick).len(), TAKEN_MAX + 1);
    assert_eq!(feed.state.lock().events.len(), 1, "the slow one is still to take the last");
    push(&feed, at_once + 2..=at_once + 2 + max);
    assert!(matches!(feed.try_read(slow, &mut taken), Some(Received::Missed(2))));
    assert_eq!(taken.len(), TAKEN_MAX - 1);
    assert_eq!(read(&feed, slow).len(), LAG_MAX);
    assert_eq!(read(&feed, quick)[..2], [-1, i64::try_from(at_once).unwrap() + 3]);
}

/// OB-3: a reader that waits is woken by what comes, once however much that is, and by the end.
#[test]
fn a_reader_is_woken_once() {
    let (feed, wakes) = (Feed::default(), Arc::new(Wakes::default()));
    let key = feed.join();
    assert!(wakes.poll(&feed, key).is_pending());
    assert!(wakes.poll(&feed, key).is_pending());
    push(&feed, [1, 2, 3]);
    assert_eq!(wakes.count(), 1);
    push(&feed, [4]);
    assert_eq!(wakes.count(), 1, "it has not been back");
    assert_eq!(read(&feed, key), [1, 2, 3, 4]);
    assert!(wakes.poll(&feed, key).is_pending());
    feed.end();
    assert_eq!(wakes.count(), 2);
    push(&feed, [5]);
    assert!(matches!(wakes.poll(&feed, key), Poll::Ready(None)));
}

/// OB-3: after the end a reader gets what was published before it.
#[test]
fn the_end_comes_last() {
    let (feed, wakes) = (Feed::default(), Arc::new(Wakes::default()));
    let key = feed.join();
    push(&feed, [1]);
    feed.end();
    assert!(matches!(wakes.poll(&feed, key), Poll::Ready(Some(Received::Event(_)))));
    assert!(matches!(wakes.poll(&feed, key), Poll::Ready(None)));
    assert!(matches!(wakes.poll(&feed, feed.join()), Poll::Ready(None)));
}

/// OB-3: with readers and publishers on threads of their own, each reader gets all events of each publisher, in order.
#[test]
fn nothing_is_lost_between_threads() {
    let feed = Feed::default();
    let keys = [feed.join(), feed.join()];
    std::thread::scope(|scope| {
        for first in [0, 1000] {
            let feed = &feed;
            scope.spawn(move || (first..first + 1000).for_each(|seq| push(feed, [seq])));
        }
        for key in keys {
            let feed = &feed;
            scope.spawn(move || {
                let (mut seen, mut taken) = ([Vec::new(), Vec::new()], Taken::new());
                while seen.iter().map(Vec::len).sum::<usize>() < 2000 {
                    let next = taken.pop_front().map(Received::Event).or_else(|| {
                        let polled = std::future::poll_fn(|cx| feed.poll_read(key, &mut taken, cx));
                        futures::executor::block_on(polled)
                    });
                    let Some(Received::Event(event)) = next else { panic!("{next:?}") };
                    seen[usize::from(event.seq >= 1000)].push(event.seq);
                }
                assert!(seen[0].iter().copied().eq(0..1000) && seen[1].iter().copied().eq(1000..2000));
            });
        }
    });
    assert!(feed.state.lock().events.is_empty());
}
