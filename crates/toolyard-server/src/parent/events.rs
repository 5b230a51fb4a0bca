//! Events of the engine, as the parent is told of them.

use super::{out::Out, tell};
use crate::{
    app::App,
    events::{Kept, Read, Reader, Source},
};
use futures::FutureExt as _;
use std::pin::pin;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The kinds of events that are wanted, all if it is empty; `None` if none are.
pub(super) type Wanted = Option<Vec<String>>;

/// Tells the parent of events while some are wanted, from then on, and of what is there when `finish` fires.
pub(super) async fn follow(
    app: App,
    mut wanted: watch::Receiver<Wanted>,
    finish: CancellationToken,
    out: Out,
) {
    let epoch = app.engine.epoch();
    let mut reader: Option<Reader> = None;
    loop {
        let kinds = wanted.borrow_and_update().clone();
        reader = match (kinds.is_some(), reader) {
            (false, _) => None,
            (true, Some(reader)) => Some(reader),
            (true, None) => {
                let newest = app.front.history().newest();
                Some(Reader::new(app.front.clone(), Source::All, newest, Vec::new()))
            }
        };
        let is_finishing = finish.is_cancelled();
        let read = match &mut reader {
            Some(reader) => {
                let mut next = pin!(reader.next());
                match is_finishing {
                    true => next.now_or_never(),
                    false => tokio::select! {
                        read = &mut next => Some(read),
                        changed = wanted.changed() => if changed.is_ok() { continue } else { None },
                        () = finish.cancelled() => continue,
                    },
                }
            }
            None if is_finishing => None,
            None => tokio::select! {
                changed = wanted.changed() => if changed.is_ok() { continue } else { None },
                () = finish.cancelled() => None,
            },
        };
        let told = match read {
            None => return,
            Some(Read::Reset(position)) => out.tell(tell::event_reset(epoch, position)).await,
            Some(Read::Events(events)) => {
                let is_wanted = |kept: &Kept| {
                    kinds.iter().all(|kinds| kinds.is_empty() || kinds.iter().any(|kind| kind == kept.kind()))
                };
                let mut told = Ok(());
                for kept in events.iter().filter(|kept| is_wanted(kept)) {
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
