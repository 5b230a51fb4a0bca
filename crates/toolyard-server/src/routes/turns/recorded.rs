//! The same with a journal: what has come before is found again, and nothing is acknowledged before it is recorded (JR-1,
//! HT-13).

use super::{
    super::{goes_on::GoesOn, results::wait},
    answer,
    whole::{After, CancelOnDrop, Whole, preference_applied, run, too_many_open},
};
use crate::{
    app::App,
    book::ServedTurn,
    past::{Left, recall, repeated, request_of},
    problem::Problem,
};
use axum::response::Response;
use futures::{FutureExt as _, future::poll_fn};
use std::{sync::Arc, task::Poll};
use tokio::time::timeout;
use toolyard_wire::Message;

/// Runs the calls of a response unless they have come before, and answers as their turn is then.
pub(super) async fn answer_of(whole: Whole, app: App, message: Message) -> Result<Response, Problem> {
    app.starts()?; // its body may have taken its time
    let (within, is_preferred) = (whole.within(), whole.preferred.is_some());
    let cancels = whole.cancel_on_disconnect;
    let cancel_on_drop = |turn: &Arc<ServedTurn>| cancels.then(|| CancelOnDrop(Some(turn.clone())));
    let asked = (message.format(), whole.key.as_deref().unwrap_or_default());
    if whole.key.is_some()
        && whole.served.opened().is_past
        && let Some(turn) = repeated(&app, &whole.served, &whole.agent, asked, message.calls()).await?
    {
        turn.comes_again(message);
        let guard = cancel_on_drop(&turn);
        wait(&turn, within.unwrap_or_default()).await;
        guard.into_iter().for_each(CancelOnDrop::disarm);
        let response = answer(&app, &whole.served, &turn, whole.to, None);
        return Ok(preference_applied(response, is_preferred));
    }
    let after = match whole.after {
        None => None,
        Some(After::Here(ref turn)) => Some(turn.clone()),
        Some(After::Earlier(number)) => Some(recall(&app, &whole.served, number, Left::Stays).await?),
    };
    let is_behind = after.as_ref().is_some_and(|after| !after.is_over());
    let room = whole.room.or_else(|| whole.served.turns.room()).ok_or_else(too_many_open)?;
    let request = request_of(message.format(), whole.key.as_deref());
    let (turn, mut running) = run(&whole.served, room, &whole.agent, (message, Some(request)), after);
    let guard = cancel_on_drop(&turn);
    // One that waits for another one is recorded when it begins.
    let is_recorded = !is_behind && acknowledged(&app, &turn, &mut running).await;
    match within {
        // It is shown as it is then.
        Some(within) => drop(timeout(within, running).await),
        None => drop(running),
    }
    guard.into_iter().for_each(CancelOnDrop::disarm);
    let response = answer(&app, &whole.served, &turn, whole.to, Some(is_recorded));
    Ok(preference_applied(response, is_preferred))
}

/// Drives a turn until its batch is durable, so that it may be acknowledged. Returns whether it is.
async fn acknowledged(app: &App, turn: &ServedTurn, running: &mut GoesOn) -> bool {
    let mut durable = None;
    let known = poll_fn(|cx| {
        if running.poll_unpin(cx).is_ready() {
            return Poll::Ready(None);
        }
        if durable.is_none() {
            // It arrives while it is driven.
            durable = turn.engine_turn().and_then(|turn| turn.recorded()).map(Box::pin);
        }
        match &mut durable {
            Some(durable) => durable.poll_unpin(cx).map(|durable| Some(durable.is_ok())),
            None => Poll::Pending,
        }
    })
    .await;
    match known {
        Some(is_durable) => is_durable,
        // It has ended, and nobody had to wait for what only reads.
        None => app.engine.flush().await.is_ok(),
    }
}
