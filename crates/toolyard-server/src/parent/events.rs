//! Events of the engine, as the parent is told of them.

use super::{out::Out, tell};
use crate::{
    app::App,
    events::{Read, Reader, Source},
};

/// Tells the parent of events of these kinds, from now on; of all kinds, if none is named.
pub(super) async fn follow(app: App, kinds: Vec<String>, out: Out) {
    let (epoch, position) = (app.engine.epoch(), app.front.history().newest());
    let mut reader = Reader::new(app.front.clone(), Source::All, position, kinds);
    loop {
        let told = match reader.next().await {
            Read::Reset(position) => out.tell(tell::event_reset(epoch, position)).await,
            Read::Events(events) => {
                let mut told = Ok(());
                for kept in &events {
                    told = out.tell(tell::event(epoch, kept)).await;
                }
                told
            }
        };
        if told.is_err() {
            return;
        }
    }
}
