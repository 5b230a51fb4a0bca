use super::*;
use serde_json::json;

fn check(text: &str, attempts: u32, per_ms: u64, burst: u32) {
    let rate = Rate::new(attempts, Duration::from_millis(per_ms)).unwrap().with_burst(burst).unwrap();
    assert_eq!(text.parse(), Ok(rate), "{text}");
    assert_eq!(rate.to_string().parse(), Ok(rate), "{text} as {rate}");
    assert_eq!(serde_json::from_value::<Rate>(json!(rate)).unwrap(), rate, "{text}");
}

/// RT-10: a rate reads as spelt, and reads back as written.
#[test]
fn a_rate_is_a_number_and_a_time() {
    check("5/s", 5, 1_000, 5);
    check("5/sec", 5, 1_000, 5);
    check("100/min", 100, 60_000, 100);
    check("100/m", 100, 60_000, 100);
    check("1/h", 1, 3_600_000, 1);
    check("10/s burst 20", 10, 1_000, 20);
    check("  10/s   burst  1 ", 10, 1_000, 1);
    check("1/10s", 1, 10_000, 1);
    check("3/250ms", 3, 250, 3);
    check("7/90min burst 1", 7, 5_400_000, 1);
    check("1000000000/s burst 1", 1_000_000_000, 1_000, 1);
}

/// RT-10: a rate is written in the largest unit that gives a whole number.
#[test]
fn a_rate_is_written_short() {
    for (text, short) in
        [("60/60s", "60/min"), ("1/1000ms", "1/s"), ("5/s burst 5", "5/s"), ("1/24h", "1/24h")]
    {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), short);
    }
}

/// RT-10: zero, negative, out-of-range and non-numeric rates are refused.
#[test]
fn what_is_no_rate_is_refused() {
    for text in ["0/s", "5/0s", "5/s burst 0", "0/min burst 5"] {
        assert_eq!(text.parse::<Rate>(), Err(RateError::Zero), "{text}");
    }
    let no_form = [
        "",
        "5",
        "/s",
        "5/",
        "5/x",
        "-5/s",
        "+5/s",
        "NaN/s",
        "inf/s",
        "0.5/s",
        "1e3/s",
        "5 / s",
        "5/-1s",
        "5/1.5s",
        "5/s burst",
        "5/s burst -1",
        "5/s burst 1 2",
        "5/s bursts 2",
        "4294967296/s",
        "5/S",
        "5/s/s",
    ];
    for text in no_form {
        assert_eq!(text.parse::<Rate>(), Err(RateError::Form(text.to_owned())), "{text}");
        assert!(serde_json::from_value::<Rate>(json!(text)).is_err(), "{text}");
    }
    assert_eq!("4000000000/s".parse::<Rate>(), Err(RateError::TooFast));
    assert_eq!("1/25h".parse::<Rate>(), Err(RateError::Period));
    assert_eq!("1/4294967295h".parse::<Rate>(), Err(RateError::Period));
    assert_eq!(Rate::new(1, Duration::from_micros(1500)), Err(RateError::Period));
    assert_eq!(Rate::new(1, Duration::MAX), Err(RateError::Period));
    assert_eq!("1/24h burst 4294967295".parse::<Rate>(), Err(RateError::Burst));
}

/// RT-10: an interval is never shorter than the rate allows.
#[test]
fn an_interval_is_rounded_up() {
    let rate = Rate::per_second(3).unwrap();
    assert_eq!(rate.interval(), Duration::from_nanos(333_333_334));
    assert_eq!(Rate::per_minute(60).unwrap().interval(), Duration::from_secs(1));
}
