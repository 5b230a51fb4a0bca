//! From a model's answer to the next request: JSON in, calls, the provider's results out.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    floor::Floor,
    handler::Handler,
    response,
    yard::{Yard, spec},
};
use std::sync::Arc;
use toolyard::{Engine, Outcome, Session};
use toolyard_wire::{Format, decode, encode};

pub(crate) const AXIS: Axis = Axis {
    name: "formats",
    about: "from a provider's response text to the text of its tool results; and the engine alone",
    sizes: &[1, 40, 1000],
    rounds: 31,
    calls_per_sample: 2000,
    unit: Unit::Call,
    build,
};

fn build() -> Building {
    Box::pin(async {
        let mut all: Contenders = vec![Floor::of(Handler::Ready)];
        let yard = Yard::new("full", Engine::builder(), spec("nothing"), Handler::Ready).await?;
        let session = yard.session().clone();
        let round_trips = Format::ALL.map(|format| RoundTrip {
            format,
            session: session.clone(),
            engine: yard.engine().clone(),
        });
        all.push(Arc::new(yard));
        all.extend(round_trips.map(|trip| Arc::new(trip) as Arc<dyn Contender>));
        Ok(all)
    })
}

struct RoundTrip {
    format: Format,
    session: Session,
    // Keeps the pools alive.
    engine: Engine,
}

impl Contender for RoundTrip {
    fn name(&self) -> &str {
        self.format.as_str()
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let text = response::whole(self.format, calls);
        let (format, session, engine) = (self.format, self.session.clone(), self.engine.clone());
        Box::pin(async move {
            for _ in 0..batches {
                let message = decode(&text, Some(format)).expect("the response is well formed");
                let outcomes = session.dispatch(message.batch()).await;
                assert!(outcomes.iter().all(Outcome::success));
                std::hint::black_box(encode(&message, &outcomes, format).to_string());
            }
            drop(engine);
        })
    }
}
