//! What a span costs with and without a listener. The listener does nothing, so only the engine is measured.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    floor::Floor,
    handler::Handler,
    yard::{Yard, spec},
};
use std::sync::{
    Arc, Once,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use toolyard::Engine;
use tracing::{
    Event, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
    subscriber::Interest,
};

pub(crate) const AXIS: Axis = Axis {
    name: "spans",
    about: "spans without a subscriber and with one",
    sizes: &[1, 40, 1000],
    rounds: 41,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

fn build() -> Building {
    Box::pin(async {
        static LISTENER: Once = Once::new();
        // If the process already has a subscriber, this axis would measure that one.
        LISTENER.call_once(|| {
            if tracing::subscriber::set_global_default(Listener::default()).is_err() {
                tracing::warn!("another subscriber is already set: measuring that one");
            }
        });
        let yard = |name| Yard::new(name, Engine::builder(), spec("nothing"), Handler::Ready);
        let all: Contenders = vec![
            Floor::of(Handler::Ready),
            Arc::new(yard("full, no subscriber").await?),
            Arc::new(Traced(yard("full, a subscriber").await?)),
        ];
        Ok(all)
    })
}

/// Whether the listener is on.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// The subscriber of every span. It can be switched off, which is as if there were none.
#[derive(Default)]
struct Listener {
    spans: AtomicU64,
}

impl Subscriber for Listener {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        if LISTENING.load(Ordering::Relaxed) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if LISTENING.load(Ordering::Relaxed) { LevelFilter::INFO } else { LevelFilter::OFF })
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        LISTENING.load(Ordering::Relaxed)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        std::hint::black_box(span);
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        std::hint::black_box(values);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        std::hint::black_box(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn listen(on: bool) {
    LISTENING.store(on, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
}

/// A contender that is listened to while it works.
struct Traced(Yard);

impl Contender for Traced {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        listen(true);
        let work = self.0.work(calls, batches);
        Box::pin(async move {
            work.await;
            listen(false);
        })
    }
}
