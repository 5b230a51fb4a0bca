//! Rule by rule.

use super::*;

const fn too_long(millis: u64) -> TooLong {
    TooLong { retry_after: Duration::from_millis(millis) }
}

/// RT-10: a burst starts at once, the rest one by one in order of arrival.
#[test]
fn a_line_is_served_in_order_and_at_its_rate() {
    let mut tool = Tool::new("10/s burst 3");
    assert_eq!(tool.spend(), 3);
    for waiter in 0..4 {
        assert!(tool.enqueue(waiter).is_ok());
    }
    assert_eq!(tool.run_out(), [(0, 100), (1, 200), (2, 300), (3, 400)]);
    tool.pass_ms(250);
    assert_eq!(tool.spend(), 2);
    tool.pass_ms(10_000);
    assert_eq!(tool.spend(), 3);
}

/// RT-10: a newcomer waits behind those in line, even if a token is free.
#[test]
fn nobody_passes_the_line() {
    let mut tool = Tool::new("1/s");
    assert_eq!(tool.spend(), 1);
    tool.enqueue(1).unwrap();
    tool.pass_ms(3_000);
    assert_eq!(tool.take(), TakeResult::Wait);
    tool.enqueue(2).unwrap();
    assert_eq!(tool.due().granted, [1]);
    assert_eq!(tool.take(), TakeResult::Wait);
    assert_eq!(tool.run_out(), [(2, 4_000)]);
}

/// RT-10: a call whose wait would be longer than 5 s is refused at once, and gets a `retry_after`.
#[test]
fn a_wait_that_is_too_long_is_refused_at_once() {
    let mut tool = Tool::new("1/s");
    assert_eq!(tool.spend(), 1);
    for waiter in 1..=5 {
        tool.enqueue(waiter).unwrap();
    }
    assert_eq!(tool.enqueue(6), Err(too_long(6_000)));
    tool.pass_ms(1_000);
    assert_eq!(tool.due().granted, [1]);
    tool.enqueue(6).unwrap();
    assert_eq!(tool.run_out().last(), Some(&(6, 6_000)));
}

/// RT-10: a waiter that `due` reaches too late expires, and its token goes to the next.
#[test]
fn who_has_waited_too_long_gets_no_token() {
    let mut tool = Tool::new("1/s burst 2");
    assert_eq!(tool.spend(), 2);
    tool.enqueue(1).unwrap();
    tool.pass_ms(3_000);
    tool.enqueue(2).unwrap();
    tool.pass_ms(2_001);
    let due = tool.due();
    assert_eq!((due.granted, due.expired, due.next), (vec![2], vec![1], None));
}

/// CC-9, SC-4: a cancelled waiter leaves at once, and those behind it move up.
#[test]
fn who_leaves_leaves_at_once() {
    let mut tool = Tool::new("1/s");
    assert_eq!(tool.spend(), 1);
    let tickets: Vec<_> = (0..3).map(|waiter| tool.enqueue(waiter).unwrap()).collect();
    assert_eq!(tool.queue.leave(tickets[0]), Some(0));
    assert_eq!(tool.queue.leave(tickets[0]), None);
    assert_eq!(tool.queue.waiting(), 2);
    assert_eq!(tool.run_out(), [(1, 1_000), (2, 2_000)]);
    assert_eq!(tool.queue.leave(tickets[1]), None);
}

/// RT-3, T10: a server's hint pauses the line for everybody, whatever tokens are free.
#[test]
fn a_pause_holds_everybody() {
    for rate in ["", "10/s burst 2"] {
        let mut tool = Tool::new(rate);
        tool.pause_ms(2_000);
        assert_eq!(tool.take(), TakeResult::Wait, "{rate}");
        tool.enqueue(1).unwrap();
        tool.pass_ms(1_999);
        assert!(tool.due().granted.is_empty(), "{rate}");
        tool.enqueue(2).unwrap();
        assert_eq!(tool.run_out(), [(1, 2_000), (2, 2_000)], "{rate}");
        tool.pass_ms(500);
        assert_eq!(tool.take(), TakeResult::Now, "{rate}");
    }
}

/// RT-3: after a pause a burst starts, then the rate holds again.
#[test]
fn after_a_pause_the_rate_holds() {
    let mut tool = Tool::new("10/s burst 2");
    assert_eq!(tool.spend(), 2);
    tool.pause_ms(4_000);
    for waiter in 0..12 {
        tool.enqueue(waiter).unwrap();
    }
    assert_eq!(tool.enqueue(12), Err(too_long(5_100)));
    let went = tool.run_out();
    assert_eq!(went[..3], [(0, 4_000), (1, 4_000), (2, 4_100)]);
    assert_eq!(went[11], (11, 5_000));
}

/// RT-3: a pause longer than the allowed wait refuses at once, waiters in line included.
#[test]
fn a_long_pause_refuses_at_once() {
    for rate in ["", "10/s burst 1"] {
        let mut tool = Tool::new(rate);
        tool.pause_ms(1_000);
        tool.enqueue(1).unwrap();
        tool.pass_ms(500);
        tool.enqueue(2).unwrap();
        tool.pause_ms(5_000);
        let due = tool.due();
        assert_eq!((due.granted, due.expired), (vec![], vec![1]), "{rate}");
        assert_eq!(due.next, Some(tool.now + WAIT_MAX), "{rate}");
        tool.pause_ms(30_000);
        let due = tool.due();
        assert_eq!((due.expired, due.next), (vec![2], None), "{rate}");
        assert_eq!(due.retry_after, Duration::from_secs(30), "{rate}");
        assert_eq!(tool.enqueue(3), Err(too_long(30_000)), "{rate}");
    }
}

/// RT-3: no pause is longer than 300 s, none shortens another, and one in the past has no effect.
#[test]
fn pauses_are_bounded_and_never_cut_short() {
    let mut tool = Tool::new("");
    tool.queue.pause_until(tool.now, tool.start);
    assert_eq!(tool.take(), TakeResult::Now);
    tool.pass_ms(10_000);
    tool.queue.pause_until(tool.now, tool.start);
    assert_eq!(tool.take(), TakeResult::Now);
    tool.pause_ms(1_000_000_000);
    tool.pause_ms(1);
    assert_eq!(tool.enqueue(1), Err(TooLong { retry_after: PAUSE_MAX }));
    tool.pass_ms(300_000);
    assert_eq!(tool.take(), TakeResult::Now);
}

/// RT-10: without a rate, a pause or waiters the lock is not taken, and it is so again once they are gone.
#[test]
fn a_line_without_a_rate_is_free() {
    let is_free = |tool: &Tool| tool.queue.is_free.load(Ordering::Relaxed);
    let mut tool = Tool::new("");
    assert!(is_free(&tool));
    tool.pause_ms(1_000);
    assert!(!is_free(&tool));
    let ticket = tool.enqueue(1).unwrap();
    tool.pass_ms(1_000);
    assert_eq!(tool.take(), TakeResult::Wait);
    assert!(!is_free(&tool));
    assert_eq!(tool.queue.leave(ticket), Some(1));
    assert!(is_free(&tool));
    assert!(!is_free(&Tool::new("1/s")));
}

/// RT-10: the fastest and the slowest rates do not overflow.
#[test]
fn rates_at_their_bounds_are_rates() {
    let mut fast = Tool::new("1000000000/s burst 1000");
    fast.now += Duration::from_secs(60 * 60 * 24 * 365 * 50);
    assert_eq!(fast.spend(), 1_000);
    let mut slow = Tool::new("1/24h burst 3650");
    assert_eq!(slow.spend(), 3_650);
    assert_eq!(slow.enqueue(1), Err(too_long(24 * 60 * 60 * 1_000)));
    slow.pass_ms(24 * 60 * 60 * 1_000);
    assert_eq!(slow.spend(), 1);
}
