//! Questions about the parent's calls, as the parent is told of them (PO-4).

use super::{conversation::is_own, names::Names, out::Out, tell};
use crate::{app::App, questions::Asked, routes::confirmations::Question};
use std::collections::BTreeMap;
use toolyard::{CallDigest, RequestId};

/// What a question was told as: one that is asked again may be another.
type Told = (CallDigest, bool);

/// Tells the parent of each question that is opened or ends, while it wants to be asked. It looks at what is open, so that
/// nothing waits to be told that is not so any more.
pub(super) async fn follow(app: App, names: Names, out: Out) {
    let questions = app.front.questions();
    let mut changes = questions.changes();
    let mut told: BTreeMap<RequestId, Told> = BTreeMap::new();
    loop {
        changes.mark_unchanged();
        let wanted = questions.asks_parent();
        let is_told = |asked: &Asked| wanted && is_own(&app, asked.request.session());
        let open = questions.pending(app.engine.epoch(), None, usize::MAX, is_told);
        let now: BTreeMap<RequestId, Told> =
            open.iter().map(|asked| (asked.request.id(), as_told(asked))).collect();
        let over: Vec<RequestId> = told.keys().filter(|id| !now.contains_key(id)).copied().collect();
        for id in over {
            told.remove(&id);
            let settled = questions.settled(id);
            if out.tell(tell::confirm_ended(id, settled.as_ref().map(|settled| &settled.how))).await.is_err()
            {
                return;
            }
        }
        for asked in &open {
            let id = asked.request.id();
            if told.get(&id) == now.get(&id) {
                continue;
            }
            let question = Question::whole(asked).await;
            let turn = names.find(asked.request.session(), asked.request.turn());
            if out.tell(tell::confirm(&question, turn.as_deref())).await.is_err() {
                return;
            }
            told.insert(id, as_told(asked));
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn as_told(asked: &Asked) -> Told {
    (*asked.request.digest(), asked.request.refused().is_some())
}
