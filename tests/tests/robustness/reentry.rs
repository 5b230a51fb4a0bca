//! Code of the embedder that calls the engine where the engine calls it, or drops it: no lock is held there.

use crate::{no_deadlock, no_hang};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Call, Caller, Denied, Engine, Grant, LimitScope, PathEscape, PathScope, RegisterError, RuntimePolicy,
    Session, SessionOptions, Tool, ToolFactory, ToolSpec, telemetry::TOOL_CALL_ID, tool_fn,
};
use toolyard_tests::{Log, call, kinds, listen, scripted, shape, yard};
use tracing::{
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
};

/// Calls this when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// CL-8: the options for a session that is open already may hold the last handle of another session.
#[test]
fn options_of_an_open_session_may_hold_the_last_handle_of_another() {
    no_deadlock(async {
        let yard = yard(|builder, _| builder).await;
        let open = yard.engine.session("open");
        let last = Mutex::new(yard.engine.session("other"));
        let again = yard.engine.session_with("open", SessionOptions::default().resource(last));
        assert_eq!(kinds(&again.dispatch(vec![call("a", "read", 0, "ok")]).await), [None]);
        drop(open);
        let names: Vec<_> = yard.events.events().iter().map(|event| event.kind.name()).collect();
        assert_eq!(names.iter().filter(|name| **name == "session.closed").count(), 1, "{names:?}");
    });
}

/// CL-8: options that are not used may open a session when they are dropped, and so may a workspace that is asked for
/// its root.
#[test]
fn options_may_open_sessions() {
    struct Opens(Engine);
    impl PathScope for Opens {
        fn root(&self) -> &Path {
            self.0.session("from root");
            Path::new("/")
        }
        fn check(&self, _: &str) -> Result<(), PathEscape> {
            Ok(())
        }
    }
    no_deadlock(async {
        let yard = yard(|builder, _| builder).await;
        let engine = yard.engine.clone();
        let opens = Mutex::new(OnDrop(move || drop(engine.session("from drop"))));
        let workspace = Arc::new(Opens(yard.engine.clone()));
        let confirmations = toolyard::Confirmations::default();
        let options = SessionOptions::default().workspace(workspace).confirmations(confirmations);
        let session = yard.engine.session_with("s", options);
        drop(yard.engine.session_with("s", SessionOptions::default().resource(opens)));
        drop(session);
        let opened = |id: &str| {
            let of = |event: &&toolyard::Event| {
                event.session.as_str() == id && event.kind.name() == "session.opened"
            };
            yard.events.events().iter().filter(of).count()
        };
        assert_eq!(["from root", "s", "from drop"].map(opened), [1, 1, 1]);
    });
}

/// A factory that changes the registry when it is dropped.
struct Factory {
    name: &'static str,
    _on_drop: OnDrop<Box<dyn FnMut() + Send + Sync>>,
}

impl ToolFactory for Factory {
    fn spec(&self) -> ToolSpec {
        ToolSpec::read(self.name)
    }

    fn create(&self) -> Arc<dyn Tool> {
        unreachable!("it is never called")
    }
}

/// CL-8: a tool that is refused, replaced or removed may change the registry when it is dropped.
#[test]
fn a_tool_that_goes_may_change_the_registry() {
    no_deadlock(async {
        let yard = yard(|builder, _| builder).await;
        let factory = |name, removes: &'static str| {
            let engine = yard.engine.clone();
            let on_drop = move || assert!(engine.registry().unregister(removes), "{removes}");
            Factory { name, _on_drop: OnDrop(Box::new(on_drop)) }
        };
        let registry = yard.engine.registry();
        let refused = registry.register(factory("read", "serial"));
        assert!(matches!(refused, Err(RegisterError::Duplicate { .. })));
        let refused = registry.replace(factory("unknown", "concurrent"));
        assert!(matches!(refused, Err(RegisterError::Missing { .. })));
        assert_eq!(registry.list().iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["read"]);
        registry.replace(factory("read", "other")).unwrap();
        registry.register(scripted(ToolSpec::read("other"), &Log::new())).unwrap();
        registry.replace(scripted(ToolSpec::read("read"), &Log::new())).unwrap();
        assert!(!registry.has("other"), "removed by the tool that was replaced");
    });
}

/// A policy that cancels a session when it is asked about a call that says so.
struct Cancels(Arc<OnceLock<Session>>);

impl RuntimePolicy for Cancels {
    fn check(&self, _: &ToolSpec, args: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        if args["cancels"] == json!(true) {
            self.0.get().unwrap().cancel();
        }
        Ok(Grant::host())
    }
}

/// V1, SC-4: a policy may cancel the very call that made the engine ask it: here the first call of a tool with a wider
/// limit, which lets another call start.
#[test]
fn a_policy_may_cancel_the_call_that_leads_to_its_question() {
    no_deadlock(async {
        let narrow = |width: usize, log: &Log| scripted(ToolSpec::read("narrow").max_concurrency(width), log);
        let yard = yard(|builder, log| builder.tool(narrow(1, log))).await;
        let session = yard.engine.session("s");
        let waits = Call::new("b", "narrow", json!({"ms": 1000, "cancels": true}));
        let later = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let cancels = Cancels(Arc::new(OnceLock::from(session.clone())));
            yard.engine.set_policy(cancels);
            yard.engine.registry().replace(narrow(3, &yard.log)).unwrap();
            session.dispatch(vec![call("c", "narrow", 0, "polite")]).await
        };
        let first = session.dispatch(vec![call("a", "narrow", 1000, "polite"), waits]);
        let (first, later) = no_hang(async { tokio::join!(first, later) }).await;
        assert_eq!((shape(&first), shape(&later)), ("a cancelled, b cancelled".into(), "c cancelled".into()));
        assert_eq!(yard.log.started(), ["a", "c"]);
        yard.events.check();
    });
}

/// A subscriber that cancels a call at the span of another.
struct CancelsAtSpan {
    of: &'static str,
    cancels: (Session, &'static str),
    done: AtomicBool,
}

/// Whether the call of a span is this one.
struct IsOf(&'static str, bool);

impl Visit for IsOf {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.1 |= field.name() == TOOL_CALL_ID && value == self.0;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for CancelsAtSpan {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut is_of = IsOf(self.of, false);
        attributes.record(&mut is_of);
        if is_of.1 && !self.done.swap(true, Ordering::Relaxed) {
            assert!(self.cancels.0.cancel_call(self.cancels.1));
        }
    }
}

/// CC-8, SC-4: a call that takes a lease ends others that may not wait for it. Whoever learns of their end may cancel
/// that call: no lock of it is held.
#[test]
fn the_call_whose_lease_ends_another_may_be_cancelled_meanwhile() {
    no_deadlock(async {
        let two = Arc::new(OnceLock::<Session>::new());
        let nested = two.clone();
        let parent = tool_fn(ToolSpec::write("parent"), move |(): (), _| {
            let two = nested.clone();
            async move { Ok(shape(&[two.get().unwrap().call(call("nested", "narrow", 0, "ok")).await])) }
        });
        let yard = yard(|builder, log| {
            let narrow = ToolSpec::write("narrow").max_concurrency(1);
            builder.tool(scripted(narrow.limit_scope(LimitScope::Engine), log)).tool(parent)
        })
        .await;
        let two = two.get_or_init(|| yard.engine.session("two"));
        let [one, three] = ["one", "three"].map(|id| yard.engine.session(id));
        let cancels = (two.clone(), "takes");
        let _listening = listen(Registry::default().with(CancelsAtSpan {
            of: "nested",
            cancels,
            done: AtomicBool::new(false),
        }));
        let takes = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            two.call(call("takes", "serial", 1000, "polite")).await
        };
        let busy = three.call(call("busy", "narrow", 1000, "ok"));
        let parent = one.call(Call::new("parent", "parent", "{}"));
        let (busy, parent, takes) = no_hang(async { tokio::join!(busy, parent, takes) }).await;
        assert_eq!(parent.to_text(), "nested serial_nesting");
        assert_eq!(shape(&[busy, takes]), "busy ok, takes cancelled");
        yard.events.check();
    });
}

/// A policy that puts another one in force when it is dropped.
struct Hands {
    over: Engine,
    on_drop: bool,
}

impl RuntimePolicy for Hands {
    fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        Ok(Grant::host())
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        if self.on_drop {
            self.over.set_policy(toolyard::AllowAll);
        }
    }
}

/// PO-4: a policy that is replaced may replace its successor when it is dropped; the events of the policies come in the
/// order in which they came into force.
#[test]
fn the_events_of_policies_are_in_order_whatever_their_destructors_do() {
    no_deadlock(async {
        let yard = yard(|builder, _| builder).await;
        let policy = |on_drop| Hands { over: yard.engine.clone(), on_drop };
        assert_eq!([yard.engine.set_policy(policy(true)), yard.engine.set_policy(policy(false))], [2, 3]);
        let version = |event: toolyard::Event| match event.kind {
            toolyard::EventKind::PolicyChanged { version } => Some(version),
            _ => None,
        };
        let versions: Vec<_> = yard.events.events().into_iter().filter_map(version).collect();
        assert_eq!(versions, [2, 3, 4]);
    });
}
