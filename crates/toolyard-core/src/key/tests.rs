use super::*;
use serde_json::json;
use std::collections::BTreeSet;

/// ID-2: 1 to 255 visible ASCII characters, nothing else.
#[test]
fn a_key_is_visible_ascii_of_bounded_length() {
    for good in ["a", "!", "~", "order-17/\"x\"", &"k".repeat(255)] {
        assert_eq!(IdempotencyKey::new(good).map(|key| key.as_str().to_owned()), Ok(good.to_owned()));
        assert_eq!(IdempotencyKey::try_from(good.to_owned()), good.parse());
    }
    let bad = [
        ("", KeyError::Empty),
        (&"k".repeat(256), KeyError::TooLong(256)),
        (" a", KeyError::NotVisible(0)),
        ("a b", KeyError::NotVisible(1)),
        ("ab\n", KeyError::NotVisible(2)),
        ("a\0", KeyError::NotVisible(1)),
        ("a\u{7f}", KeyError::NotVisible(1)),
        ("aé", KeyError::NotVisible(1)),
    ];
    for (text, error) in bad {
        assert_eq!(IdempotencyKey::new(text), Err(error), "{text:?}");
        assert_eq!(text.parse::<IdempotencyKey>(), Err(error), "{text:?}");
        assert!(serde_json::from_value::<IdempotencyKey>(json!(text)).is_err(), "{text:?}");
        assert!(!error.to_string().is_empty());
    }
}

/// ID-2: a key is serialised as its text.
#[test]
fn a_key_reads_back_as_it_was_written() {
    let key = IdempotencyKey::new("order-17").unwrap();
    assert_eq!(serde_json::to_value(&key).unwrap(), json!("order-17"));
    assert_eq!(serde_json::from_value::<IdempotencyKey>(json!("order-17")).unwrap(), key);
    assert_eq!(key.to_string(), "order-17");
    assert_eq!(Arc::<str>::from(key).as_ref(), "order-17");
}

/// ID-1: a derived key stays the same across versions.
#[test]
fn a_derived_key_is_a_key_and_stays_the_same() {
    let key = IdempotencyKey::derive("step-3", "pay", &json!({"to": "Ada", "amount": 5}));
    assert_eq!(key.as_str(), "tk1_0d5f2bf53cc7cd91d61f843ee1d2bdc8102b84ad9e8deb7a3d7545ebe10cdb83");
    assert_eq!(key.as_str().parse(), Ok(key));
}

/// ID-1: step, tool and arguments all count, and so do the boundaries between them.
#[test]
fn derived_keys_of_different_work_differ() {
    let nothing = json!({});
    let keys: BTreeSet<_> = [
        IdempotencyKey::derive("ab", "c", &nothing),
        IdempotencyKey::derive("a", "bc", &nothing),
        IdempotencyKey::derive("abc", "", &nothing),
        IdempotencyKey::derive("", "abc", &nothing),
        IdempotencyKey::derive("ab", "c{}", &json!("")),
        IdempotencyKey::derive("ab", "c", &json!({"a": 1})),
        IdempotencyKey::derive("ab", "c", &json!({"a": "1"})),
    ]
    .into();
    assert_eq!(keys.len(), 7);
}
