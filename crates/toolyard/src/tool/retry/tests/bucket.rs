use super::*;
use proptest::prelude::*;
use std::{collections::VecDeque, thread};

/// T18, RT-5: ten failed retries empty it, and ten clean successes pay for one more.
#[test]
fn ten_retries_in_vain_drain_it_and_ten_successes_pay_for_one() {
    let bucket = Bucket::new(100);
    for _ in 0..10 {
        let _in_vain = bucket.pay(ErrorKind::Transient).unwrap();
    }
    assert_eq!(bucket.pay(ErrorKind::Transient), None);
    (0..9).for_each(|_| bucket.first_success());
    assert_eq!(bucket.pay(ErrorKind::Transient), None);
    bucket.first_success();
    assert!(bucket.pay(ErrorKind::Transient).is_some());
    assert_eq!(bucket.tokens(), 0);
}

/// RT-5: a retry after a timeout costs twice as much, and tokens are taken only if there are enough.
#[test]
fn a_retry_after_a_timeout_is_dearer() {
    let bucket = Bucket::new(100);
    for _ in 0..9 {
        let _in_vain = bucket.pay(ErrorKind::RateLimited).unwrap();
    }
    assert_eq!(bucket.pay(ErrorKind::Timeout), None);
    assert_eq!(bucket.tokens(), 10);
    assert!(bucket.pay(ErrorKind::Transient).is_some());
}

/// RT-5: a successful retry refunds what it took, up to the capacity.
#[test]
fn a_retry_that_succeeds_costs_nothing() {
    let bucket = Bucket::new(100);
    let paid = bucket.pay(ErrorKind::Timeout).unwrap();
    assert_eq!(bucket.tokens(), 80);
    bucket.refund(paid);
    assert_eq!(bucket.tokens(), 100);
    let paid = bucket.pay(ErrorKind::Transient).unwrap();
    (0..10).for_each(|_| bucket.first_success());
    bucket.refund(paid);
    assert_eq!(bucket.tokens(), 100);
}

/// RT-5, I9: threads take no token twice and lose none.
#[test]
fn threads_share_it_without_losing_a_token() {
    let bucket = Bucket::new(100);
    let taken: usize = thread::scope(|scope| {
        let take = || (0..1000).filter(|_| bucket.pay(ErrorKind::Transient).is_some()).count();
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!((taken, bucket.tokens()), (10, 0));
    thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| (0..20).for_each(|_| bucket.first_success()))));
    });
    assert_eq!(bucket.tokens(), 80);
}

#[derive(Debug, Clone)]
enum Step {
    Pay { timeout: bool },
    Succeed,
    Fail,
    FirstSuccess,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<bool>().prop_map(|timeout| Step::Pay { timeout }),
        2 => Just(Step::Succeed),
        2 => Just(Step::Fail),
        4 => Just(Step::FirstSuccess),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// RT-5, I9, TS-1: the bucket agrees with a plain sum, which stays between 0 and 100.
    #[test]
    fn it_holds_what_a_plain_sum_says(steps in proptest::collection::vec(step(), 1..40)) {
        let (bucket, mut sum, mut retries) = (Bucket::new(100), 100_i64, VecDeque::new());
        for step in steps {
            match step {
                Step::Pay { timeout } => {
                    let (kind, cost) =
                        if timeout { (ErrorKind::Timeout, 20) } else { (ErrorKind::Transient, 10) };
                    let paid = bucket.pay(kind);
                    prop_assert_eq!(paid.is_some(), sum >= cost);
                    if let Some(paid) = paid {
                        sum -= cost;
                        retries.push_back((paid, cost));
                    }
                }
                Step::Succeed => if let Some((paid, cost)) = retries.pop_front() {
                    bucket.refund(paid);
                    sum = (sum + cost).min(100);
                },
                Step::Fail => drop(retries.pop_front()),
                Step::FirstSuccess => {
                    bucket.first_success();
                    sum = (sum + 1).min(100);
                }
            }
            prop_assert_eq!(i64::from(bucket.tokens()), sum);
            prop_assert!((0..=100).contains(&sum));
        }
    }
}
