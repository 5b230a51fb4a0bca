//! JR-1, JR-8: no result that somebody was given is lost or another one later.

use super::History;
use crate::sim::{Fact, ResultView, check::Violation};
use std::collections::BTreeMap;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let (mut found, mut given) = (Vec::new(), BTreeMap::<u32, &ResultView>::new());
    for (life, fact) in history.facts() {
        let (batch, views): (_, Vec<_>) = match fact {
            Fact::Results(batch, views) => (batch, views.iter().collect()),
            Fact::TakenUp(batch, views) => (batch, views.iter().map(|it| &it.view).collect()),
            Fact::Unknown(batch) => {
                found.extend(lost(history, &given, *batch));
                continue;
            }
            Fact::NotResumed(batch, why) => {
                let what = format!("life {}: batch c{batch} cannot be taken up: {why}", life + 1);
                found.push(Violation::new("JR-8", what));
                continue;
            }
            _ => continue,
        };
        let placed = history.index.batches.get(batch).filter(|it| it.parent.is_none());
        let Some(placed) = placed else { continue };
        for (call, view) in placed.plan.calls.iter().zip(views) {
            if let Some(before) = given.get(&call.node)
                && !is_same(history.is_plain_read(call.node), before, view)
            {
                let node = call.node;
                let what = format!("life {}: c{node} had the result {before:?}, now {view:?}", life + 1);
                found.push(Violation::new("JR-1", what));
            }
            if is_final(view) {
                given.insert(call.node, view);
            }
        }
    }
    found
}

/// Whether a result is durable, as its caller was told.
fn is_final(view: &ResultView) -> bool {
    view.suspended.is_none() && view.recorded
}

/// Whether a result is the one that was given before. A plain read may have run again, and so have failed otherwise.
fn is_same(is_plain_read: bool, before: &ResultView, now: &ResultView) -> bool {
    let both_ok = before.code.is_none() && now.code.is_none();
    let shape = |it: &ResultView| (it.id.clone(), it.code, it.text.clone(), it.bytes);
    match is_plain_read {
        true => !both_ok || is_cut_short(before) || is_cut_short(now) || shape(before) == shape(now),
        false => shape(before) == shape(now) && before.attempts == now.attempts,
    }
}

/// Whether its handler was cancelled and gave what it had.
fn is_cut_short(view: &ResultView) -> bool {
    view.text == "cut short"
}

/// The results that were given of a batch of which no record tells.
fn lost(history: &History<'_>, given: &BTreeMap<u32, &ResultView>, batch: u32) -> Option<Violation> {
    let calls = &history.index.batches.get(&batch)?.plan.calls;
    let is_lost = |node: u32| given.contains_key(&node) && !history.is_plain_read(node);
    let call = calls.iter().find(|call| is_lost(call.node))?;
    let what = format!("the result of c{} was given, and its batch is not known any more", call.node);
    Some(Violation::new("JR-1", what))
}
