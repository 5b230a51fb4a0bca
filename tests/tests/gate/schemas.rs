//! V1: when arguments are checked against a schema, and for how long.

use super::{SECOND, message};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use toolyard::{Call, ErrorKind, PolicyRules, Rule, ToolSpec};
use toolyard_tests::{Yard, call, scripted, shape, yard};

/// A schema under which checking data of so many levels takes 2^levels steps.
fn doubling(levels: usize) -> Value {
    let mut parts = serde_json::Map::new();
    parts.insert("d0".to_owned(), json!({"type": "object"}));
    for n in 1..=levels {
        let part = json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", n - 1)}}});
        parts.insert(format!("d{n}"), json!({"allOf": [part, part]}));
    }
    json!({"$ref": format!("#/$defs/d{levels}"), "$defs": parts})
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

async fn hostile(levels: usize) -> Yard {
    let spec = ToolSpec::read("hostile").foreign_schema(doubling(levels));
    yard(|builder, log| builder.tool(scripted(spec, log))).await
}

/// V1: parse, policy, schema: a caller that may not use a tool learns nothing of its schema.
#[tokio::test(start_paused = true)]
async fn the_policy_is_asked_before_the_schema() {
    let rules = PolicyRules::new(Rule::allow()).tool("strict", Rule::Deny);
    let spec = ToolSpec::read("strict").input_schema(json!({"type": "object", "required": ["key"]}));
    let yard = yard(|builder, log| builder.policy(rules).tool(scripted(spec, log))).await;
    let session = yard.engine.session("s");
    let outcomes =
        session.dispatch(vec![Call::new("a", "strict", "{}"), Call::new("b", "strict", "{")]).await;
    assert_eq!(shape(&outcomes), "a permission_denied, b invalid_input");
    assert_eq!(message(&outcomes[0]), "Permission denied: tool 'strict' is disabled by policy");
    assert!(outcomes[0].error().unwrap().validation_errors.is_empty());
    yard.events.check();
}

/// V1: a validation that would take years ends within its limit, nothing has started, and other batches run at once.
#[tokio::test(start_paused = true)]
async fn a_validation_without_end_is_given_up() {
    let yard = hostile(39).await;
    let (session, other) = (yard.engine.session("s"), yard.engine.session("other"));
    let began = Instant::now();
    let beside = async {
        let outcome = other.call(call("r", "read", 0, "ok")).await;
        (outcome.success(), began.elapsed())
    };
    let (outcome, beside) = tokio::join!(session.call(Call::new("a", "hostile", nested(39))), beside);
    assert_eq!(beside, (true, Duration::ZERO));
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, error.attempts), (ErrorKind::InvalidInput, 0));
    assert_eq!(error.message, "Whether the arguments of 'hostile' fit its schema was not known within 5s");
    assert_eq!(began.elapsed().as_secs(), 5);
    yard.events.check();
}

/// V1: the calls of one batch cannot add up their validations.
#[tokio::test(start_paused = true)]
async fn the_validations_of_a_batch_share_one_limit() {
    let yard = hostile(39).await;
    let began = Instant::now();
    let mut batch: Vec<Call> = (0..20).map(|n| Call::new(format!("h{n}"), "hostile", nested(39))).collect();
    batch.push(call("r", "read", 0, "ok"));
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert!(outcomes[..20].iter().all(|it| it.error().unwrap().kind == ErrorKind::InvalidInput));
    assert!(outcomes[20].success());
    assert!(began.elapsed() < 6 * SECOND, "{:?}", began.elapsed());
    yard.events.check();
}

/// V1: a validation that takes long and ends has its result: real threads, so real time.
#[tokio::test]
async fn a_validation_that_takes_long_has_its_result() {
    let yard = hostile(13).await;
    let session = yard.engine.session("s");
    let mut wrong = nested(12);
    *wrong.pointer_mut(&"/a".repeat(12)).unwrap() = json!({"a": 1});
    let batch = vec![
        Call::new("fits", "hostile", nested(13)),
        Call::new("not", "hostile", wrong),
        Call::new("quick", "hostile", json!({})),
    ];
    let outcomes = session.dispatch(batch).await;
    assert_eq!(shape(&outcomes), "fits ok, not invalid_input, quick ok");
    assert!(message(&outcomes[1]).starts_with("Arguments of 'hostile' do not fit its schema"));
    yard.events.check();
}
