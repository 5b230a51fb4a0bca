//! A secret planted in everything that goes into an engine and comes out of its tools shows nowhere (I15, V5).
//! These tests have a process to themselves, because the threads of a process share their log subscribers.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod marks;
mod round_trips;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::{
    fmt::{self, Write as _},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use toolyard::{
    Abort, Batch, Call, Caller, Content, Denied, EventKind, Grant, Hooks, Outcome, Redactor, RetryPolicy,
    RuntimePolicy, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec, async_trait, from_fn,
    tool_fn,
};
use toolyard_tests::{Yard, listen, yard};

/// Contains a character that JSON escapes.
const SECRET: &str = "sword\"fish-77";

fn redactor() -> Redactor {
    Redactor::standard().with_secret(SECRET).unwrap()
}

/// Fails if the text contains the secret in any form that a reader could recognise.
#[track_caller]
fn clean(what: &str, text: &str) {
    let base64 = BASE64_STANDARD.encode(SECRET);
    for part in [SECRET, "sword\\\"fish", "sword\\\\\\\"fish", base64.trim_end_matches('=')] {
        assert!(!text.contains(part), "{what} tells {part}: {text}");
    }
}

/// A tool that leaks its input in the way its argument `how` says.
struct Leaky(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl Tool for Leaky {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap().push(args["what"].clone());
        let what = args["what"].as_str().unwrap_or_default();
        let said = format!("it is '{what}'");
        match args["how"].as_str().unwrap_or_default() {
            "data" => Ok(ToolOutput::json(json!({"a": [{what: said}]}))
                .with_metadata("m", said.clone())
                .with_metadata(what, 1)
                .with_file_modified(said.clone())
                .with_command_executed(said)),
            "image" => {
                let (media_type, data) = ("image/png".to_owned(), BASE64_STANDARD.encode(what));
                let image = json!({"type": "image", "media_type": media_type, "data": data});
                Ok(ToolOutput::parts(vec![serde_json::from_value::<Content>(image).unwrap()]))
            }
            "no" => Ok(ToolOutput::failure(said)),
            "no_data" => {
                let mut output = ToolOutput::json(json!({"a": [{what: said}]}))
                    .with_metadata("m", said.clone())
                    .with_metadata(what, 1)
                    .with_file_modified(said.clone())
                    .with_command_executed(said);
                output.success = false;
                Ok(output)
            }
            "error" => Err(ToolError::execution(said.clone()).with_content(vec![Content::text(said)])),
            "source" => {
                Err(ToolError::transient("HTTP 500").with_source(io::Error::other(io::Error::other(said))))
            }
            "unclassified" => Err(io::Error::other(said).into()),
            "panic" => panic!("{said}"),
            "deltas" => {
                said.chars().for_each(|char| cx.emit(&char.to_string()));
                cx.emit(&what[..5]);
                Err(ToolError::new(ToolErrorKind::Transient, said))
            }
            "nested" => {
                let call = Call::new("inner", "leaky", json!({"how": "data", "what": what}));
                let outcomes = cx.dispatch(vec![call]).await;
                clean("a nested outcome", &format!("{outcomes:?}"));
                Ok(ToolOutput::text(format!("{outcomes:?} {what}")))
            }
            _ => Ok(ToolOutput::text(said)),
        }
    }
}

/// A policy and hooks that put arguments into their messages.
struct Talkative;

impl RuntimePolicy for Talkative {
    fn check(&self, _: &ToolSpec, args: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        match args["how"].as_str() {
            Some("denied") => Err(Denied::Because(format!("not with {}", args["what"]))),
            _ => Ok(Grant::host()),
        }
    }
}

#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<String>>);

#[async_trait]
impl Hooks for Watcher {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        match call.arguments.to_value()["how"].as_str() {
            Some("aborted") => Err(Abort::because(format!("not with {}", call.arguments))),
            _ => Ok(()),
        }
    }

    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        write!(self.0.lock().unwrap(), "{outcome:?}").unwrap();
    }
}

/// Records everything traced: spans, events, and all their fields.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<String>>);

impl Traced {
    fn note(&self, noted: impl FnOnce(&mut String)) {
        noted(&mut self.0.lock().unwrap());
    }
}

struct Fields<'a>(&'a mut String);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl tracing::Subscriber for Traced {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.note(|text| span.record(&mut Fields(text)));
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.note(|text| values.record(&mut Fields(text)));
    }
    fn event(&self, event: &tracing::Event<'_>) {
        self.note(|text| event.record(&mut Fields(text)));
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

const WAYS: &[&str] = &[
    "text",
    "data",
    "image",
    "no",
    "no_data",
    "error",
    "source",
    "unclassified",
    "panic",
    "deltas",
    "nested",
    "denied",
    "aborted",
];

/// An engine with a leaky tool, the inputs of its handlers, and the text shown to its hooks.
async fn leaky(redactor: Redactor) -> (Yard, Arc<Mutex<Vec<Value>>>, Watcher) {
    let (given, watcher) = (Arc::<Mutex<Vec<Value>>>::default(), Watcher::default());
    let yard = {
        let (given, watcher) = (given.clone(), watcher.clone());
        yard(move |builder, _| {
            let schema = json!({"type": "object", "properties": {"what": {"maxLength": 40}}});
            let spec = ToolSpec::read("leaky").input_schema(schema);
            builder
                .tool(from_fn(spec, move || Leaky(given.clone())))
                .redact(redactor)
                .policy(Talkative)
                .hooks(watcher)
                .retry(RetryPolicy::default())
        })
        .await
    };
    (yard, given, watcher)
}

fn leak(how: &str) -> Call {
    Call::new(how, "leaky", json!({"how": how, "what": SECRET}))
}

/// I15, V5: the secret is not in results, errors, causes, events, hook inputs, spans or logs, but handlers get it.
#[tokio::test(start_paused = true)]
async fn a_planted_secret_shows_nowhere() {
    let traced = Traced::default();
    let _listening = listen(traced.clone());
    let (yard, given, watcher) = leaky(redactor()).await;
    let mut batch: Vec<Call> = WAYS.iter().map(|how| leak(how)).collect();
    batch.push(Call::new("as text", "leaky", json!({"how": "x", "what": SECRET}).to_string()));
    batch.push(Call::new("escaped", "leaky", r#"{"how": "x", "what": "\u0073word\u0022fish-77"}"#));
    batch.push(Call::new("misfit", "leaky", json!({"what": format!("{SECRET}{}", "x".repeat(40))})));
    batch.push(Call::new("broken", "leaky", format!("{{\"what\": {SECRET}")));
    batch.push(Call::new("unknown", "no_such_tool", json!({SECRET: SECRET})));
    let turn = yard.engine.session("s").turn();
    let plan = yard.engine.session("s").plan(&Batch::new(batch.clone()));
    let outcomes = turn.dispatch(batch.clone()).await;
    let again = turn.resend(batch).await;
    let finished = turn.finished();

    clean("a plan", &format!("{plan:?}"));
    for outcome in outcomes.iter().chain(&again).chain(finished.iter().flatten()) {
        let id = &outcome.call_id;
        clean(id.as_str(), &format!("{outcome:?} {} {}", outcome.output(), outcome.to_text()));
        clean(id.as_str(), &outcome.arguments.to_string());
        let source = outcome.error().and_then(|error| error.source.clone());
        clean(
            id.as_str(),
            &format!("{source:?} {}", source.clone().map(|it| chain(&it)).unwrap_or_default()),
        );
    }
    let ok = |outcomes: &[Outcome]| outcomes.iter().filter(|outcome| outcome.success()).count();
    assert_eq!((ok(&outcomes), ok(&again)), (6, 6));
    assert!(outcomes[0].to_text().contains("it is '[redacted]'"), "{:?}", outcomes[0]);
    clean("a hook", &watcher.0.lock().unwrap());
    clean("an event", &serde_json::to_string(&yard.events.events()).unwrap());
    let traced = traced.0.lock().unwrap().clone();
    clean("the log", &traced);
    assert!(
        traced.contains("a handler panicked") && traced.contains("panic=\"it is '[redacted]'\""),
        "{traced}"
    );
    assert!(traced.contains("error=it is '[redacted]'"), "{traced}");
    // The values are the real ones; `deltas` and `source` ran three times each, and resent calls did not run again.
    let given = given.lock().unwrap();
    assert_eq!(given.len(), 18, "{given:?}");
    assert!(given.iter().all(|given| given == SECRET));
    yard.events.check();
}

/// OB-2, PO-7: what a tool tells of its call is in the event of the call's end without secrets and without what looks
/// like one; the result has the latter.
#[tokio::test(start_paused = true)]
async fn what_a_tool_tells_of_its_call_is_redacted_in_events() {
    let (yard, ..) = leaky(redactor()).await;
    let url = "postgres://ada:swordfish@db/x";
    for (what, how, in_event) in [
        (SECRET, "data", "it is '[redacted]'"),
        (SECRET, "no_data", "it is '[redacted]'"),
        (url, "data", "it is 'postgres://ada:[redacted: url password]@db/x'"),
        (url, "no_data", "it is 'postgres://ada:[redacted: url password]@db/x'"),
    ] {
        let call = Call::new("a", "leaky", json!({"how": how, "what": what}));
        let outcome = yard.engine.session("s").call(call).await;
        let mut last = yard.events.events().into_iter().rfind(|event| event.kind.is_terminal()).unwrap().kind;
        let told = last.details_mut().unwrap();
        assert_eq!(
            (told.command_executed.as_deref(), &told.metadata["m"]),
            (Some(in_event), &json!(in_event))
        );
        assert_eq!(told.files_modified, [in_event]);
        clean("an event", &format!("{told:?}"));
        assert!(!format!("{told:?}").contains("swordfish"), "{told:?}");
        let output = outcome.error().map_or_else(|| outcome.status.as_ref().ok(), |error| error.output());
        assert_eq!(output.unwrap().command_executed().unwrap().contains("swordfish"), what == url);
    }
    yard.events.check();
}

fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(|error| format!("{error} {error:?}"))
        .collect()
}

/// I15, V5, OB-1: a secret in pieces is held back until it is complete; the rest comes before the end of the attempt.
#[tokio::test(start_paused = true)]
async fn a_secret_split_over_deltas_is_redacted() {
    let (yard, ..) = leaky(Redactor::new().with_secret(SECRET).unwrap()).await;
    yard.engine.session("s").call(leak("deltas")).await;
    let mut attempts = vec![String::new(); 3];
    for event in yard.events.events() {
        if let EventKind::OutputDelta { text } = &event.kind {
            attempts[event.attempt.unwrap() as usize - 1].push_str(text);
        }
    }
    // The tail, which could have been the start of another secret, is emitted once it is clear that it is not.
    assert_eq!(attempts, vec!["it is '[redacted]'sword"; 3]);
    yard.events.check();
}

/// I15, ID-6: results are redacted before they are kept for a key or shared with its callers.
#[tokio::test(start_paused = true)]
async fn kept_results_are_redacted() {
    let (yard, given, _) = leaky(redactor()).await;
    let session = yard.engine.session("s");
    for how in ["data", "error", "no_data"] {
        let keyed = |id: &str| {
            let mut call = Call::new(id, "leaky", json!({"how": how, "what": SECRET}));
            call.idempotency_key = Some(how.into());
            call
        };
        let outcomes = session.dispatch(vec![keyed("first"), keyed("joined")]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let replayed = session.call(keyed("replayed")).await;
        assert_eq!(outcomes[1].success(), replayed.success());
        clean(how, &format!("{outcomes:?} {replayed:?} {} {}", outcomes[1].output(), replayed.output()));
        assert!(replayed.output().to_string().contains("[redacted]"), "{how}");
    }
    assert_eq!(given.lock().unwrap().len(), 3);
    clean("an event", &serde_json::to_string(&yard.events.events()).unwrap());
    yard.events.check();
}

/// I15, V5: a failure's message is one line; a secret that spans two lines is redacted before the message is cut.
#[tokio::test(start_paused = true)]
async fn a_secret_of_two_lines_shows_in_no_failure() {
    const KEY: &str = "the first half\nthe second half";
    let says_no = tool_fn(ToolSpec::read("says_no"), |_: Value, _: ToolContext| async {
        Ok(ToolOutput::failure(format!("no: {KEY}, so there\nand more")))
    });
    let redactor = Redactor::standard().with_secret(KEY).unwrap();
    let yard = yard(|builder, _| builder.tool(says_no).redact(redactor)).await;
    let outcome = yard.engine.session("s").call(Call::new("c", "says_no", "{}")).await;
    assert_eq!(outcome.error().unwrap().message, "no: [redacted], so there");
    let told = format!("{outcome:?} {} {:?}", outcome.output(), yard.events.events());
    assert!(!told.contains("half"), "{told}");
}

/// I15: a streamed call that was cancelled before it was received has its arguments redacted like any other.
#[tokio::test(start_paused = true)]
async fn a_call_cancelled_before_it_was_received_is_redacted() {
    let (yard, ..) = leaky(redactor()).await;
    let stream = yard.engine.session("s").open_batch();
    stream.push(leak("x"));
    stream.cancel();
    let finished = stream.finished();
    let outcome = finished[0].as_ref().unwrap();
    clean("its arguments", &outcome.arguments.to_string());
    for outcome in stream.finish().await {
        clean("its arguments", &outcome.arguments.to_string());
    }
    yard.events.check();
}
