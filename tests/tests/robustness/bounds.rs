//! Bounds on the arguments and outputs of calls, however they end (CC-4, V4).

use serde_json::json;
use toolyard::{Call, Content, Limits, ToolContext, ToolError, ToolOutput, ToolSpec, tool_fn};
use toolyard_tests::{call, scripted, shape, yard};

const OUTPUT_MAX: usize = 1000;

/// V4: the bound on outputs is the same for a success, for `success: false` and for a `ToolError` with content.
#[tokio::test(start_paused = true)]
async fn every_end_has_the_same_size_limit() {
    let mut limits = Limits::default();
    limits.output_bytes_max = OUTPUT_MAX;
    let yard = yard(|builder, _| {
        let text = |cx: &ToolContext| "x".repeat(cx.call_id().as_str().parse().unwrap());
        let ok = tool_fn(ToolSpec::read("ok"), move |(): (), cx: ToolContext| async move {
            Ok(ToolOutput::text(text(&cx)))
        });
        let no = tool_fn(ToolSpec::read("no"), move |(): (), cx: ToolContext| async move {
            Ok(ToolOutput::failure(text(&cx)))
        });
        let message = tool_fn(ToolSpec::read("message"), move |(): (), cx: ToolContext| async move {
            Err::<(), _>(ToolError::execution(text(&cx)))
        });
        let content = tool_fn(ToolSpec::read("content"), move |(): (), cx: ToolContext| async move {
            Err::<(), _>(ToolError::transient("").with_content(vec![Content::text(text(&cx))]))
        });
        let data = tool_fn(ToolSpec::read("data"), move |(): (), cx: ToolContext| async move {
            // The quotes of the JSON string count.
            Ok(ToolOutput::failure("").with_structured(text(&cx).split_off(2).into()))
        });
        builder.limits(limits).tool(ok).tool(no).tool(message).tool(content).tool(data)
    })
    .await;
    let session = yard.engine.session("s");
    for (tool, within) in [
        ("ok", "ok"),
        ("no", "execution_error"),
        ("message", "execution_error"),
        ("content", "transient"),
        ("data", "execution_error"),
    ] {
        let (fits, over) = (OUTPUT_MAX.to_string(), (OUTPUT_MAX + 1).to_string());
        let outcome = session.call(call(&fits, tool, 0, "ok")).await;
        assert_eq!(shape(&[outcome]), format!("{fits} {within}"), "{tool}");
        let outcome = session.call(call(&over, tool, 0, "ok")).await;
        assert!(outcome.output().to_string().len() < OUTPUT_MAX, "{tool}: the output itself is not told");
        assert_eq!(shape(&[outcome]), format!("{over} output_too_large"), "{tool}");
    }
    yard.events.check();
}

/// V4: data of an output nests at most 100 levels, so that whoever keeps it can read it again, however the tool ends.
#[tokio::test(start_paused = true)]
async fn data_has_a_depth() {
    let yard = yard(|builder, _| {
        let deep = |cx: &ToolContext| {
            let levels = cx.call_id().as_str().parse().unwrap();
            (0..levels).fold(json!(1), |inside, _| json!([inside]))
        };
        let ok = tool_fn(ToolSpec::read("ok"), move |(): (), cx: ToolContext| async move {
            Ok(ToolOutput::json(deep(&cx)))
        });
        let no = tool_fn(ToolSpec::read("no"), move |(): (), cx: ToolContext| async move {
            Ok(ToolOutput::failure("").with_structured(deep(&cx)))
        });
        let error = tool_fn(ToolSpec::read("error"), move |(): (), cx: ToolContext| async move {
            Err::<(), _>(ToolError::execution("").with_output(ToolOutput::json(deep(&cx))))
        });
        builder.tool(ok).tool(no).tool(error)
    })
    .await;
    let session = yard.engine.session("s");
    for (tool, within) in [("ok", "ok"), ("no", "execution_error"), ("error", "execution_error")] {
        assert_eq!(
            shape(&[session.call(call("100", tool, 0, "ok")).await]),
            format!("100 {within}"),
            "{tool}"
        );
        assert_eq!(shape(&[session.call(call("101", tool, 0, "ok")).await]), "101 output_invalid", "{tool}");
    }
    yard.events.check();
}

/// V1: the bound on arguments is checked before the name is looked up.
#[tokio::test(start_paused = true)]
async fn argument_size_is_checked_before_the_tool() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let call = |id: &str, bytes: usize| Call::new(id, "nothing", format!("\"{}\"", "x".repeat(bytes - 2)));
    let most = Limits::default().arguments_bytes_max;
    let outcomes = session.dispatch(vec![call("fits", most), call("over", most + 1)]).await;
    assert_eq!(shape(&outcomes), "fits not_found, over invalid_input");
    yard.events.check();
}

/// CC-4, V5: the error about invalid arguments stays short, however large they are and however many places are wrong.
#[tokio::test(start_paused = true)]
async fn schema_errors_are_short() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": false,
    });
    let yard =
        yard(|builder, log| builder.tool(scripted(ToolSpec::read("picky").input_schema(schema), log))).await;
    let session = yard.engine.session("s");
    for args in [
        json!({"a": "x".repeat(250_000)}),
        json!({"b": vec![1; 25_000]}),
        json!({"x".repeat(250_000): 1}),
        (0..10_000).map(|n| (format!("k{n}"), json!(n))).collect(),
    ] {
        let outcome = session.call(Call::new("c", "picky", args)).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.kind.code(), "invalid_input");
        assert!(error.message.len() < 2000, "{} bytes", error.message.len());
        assert!((1..=100).contains(&error.validation_errors.len()));
        assert!(error.validation_errors.iter().all(|misfit| misfit.message.chars().count() <= 200));
        assert!(outcome.output().to_string().len() < 32 * 1024);
    }
    assert!(yard.log.started().is_empty());
    yard.events.check();
}
