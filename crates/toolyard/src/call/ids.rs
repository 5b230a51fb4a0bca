//! Finding the calls of a batch by their ids. Only cancels and resends do so, so the index is made when the first of
//! them comes, and costs the others nothing.

use std::sync::OnceLock;

/// The places of a batch's calls, ordered by id. Calls of equal id are in call order.
#[derive(Default)]
pub(crate) struct Ids(pub(super) OnceLock<Box<[u32]>>);

/// How often this thread has looked at the id of a call.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count() {
        LOOKS.set(LOOKS.get() + 1);
    }

    pub(crate) fn so_far() -> usize {
        LOOKS.get()
    }
}

#[cfg(test)]
mod tests {
    use super::looks;
    use crate::{engine::Engine, session::Turn, tool::tool_fn};
    use futures::join;
    use toolyard_core::{Batch, Call, Dedupe, ErrorKind, Outcome, ToolContext, ToolError, ToolSpec};

    const CALLS: usize = 2_000;

    /// How often finding a call may look at an id, sorting included. Searching half the batch takes a thousand looks.
    const LOOKS_PER_CALL: usize = 64;

    fn batch(tool: &str) -> Batch {
        (0..CALLS).rev().map(|n| Call::new(format!("call_{n}"), tool, format!("{{\"n\":{n}}}"))).collect()
    }

    async fn turn() -> Turn {
        let read = |name| ToolSpec::read(name);
        let done = tool_fn(read("done"), |_: serde_json::Value, _: ToolContext| async { Ok("") });
        let stuck = tool_fn(read("stuck"), |_: serde_json::Value, _: ToolContext| async {
            std::future::pending::<Result<&str, ToolError>>().await
        });
        Engine::builder().tool(done).tool(stuck).build().await.unwrap().session("s").turn()
    }

    /// CL-8: what a resent batch costs grows with its calls, not with their square.
    #[tokio::test(start_paused = true)]
    async fn a_resend_does_not_search_the_batch_for_each_call() {
        let turn = turn().await;
        turn.dispatch(batch("done")).await;
        let before = looks::so_far();
        let again = turn.resend(batch("done")).await;
        let looks = looks::so_far() - before;
        assert!(again.len() == CALLS && again.iter().all(|outcome| outcome.dedupe == Dedupe::Replayed));
        assert!((CALLS..CALLS * LOOKS_PER_CALL).contains(&looks), "{looks} looks");
    }

    /// CL-8: nor does it search an open batch, which may have as many pieces as calls.
    #[tokio::test(start_paused = true)]
    async fn a_resend_does_not_search_the_pieces_for_each_call() {
        let turn = turn().await;
        let open = turn.open_batch();
        for call in batch("done") {
            open.push(call);
            tokio::task::yield_now().await;
        }
        assert_eq!(open.finish().await.len(), CALLS);
        let before = looks::so_far();
        let again = turn.resend(batch("done")).await;
        let looks = looks::so_far() - before;
        assert!(again.len() == CALLS && again.iter().all(|outcome| outcome.dedupe == Dedupe::Replayed));
        assert!(looks < CALLS * LOOKS_PER_CALL, "{looks} looks");
    }

    /// SC-4: calls are cancelled one by one at a cost that grows with their number, not with its square.
    #[tokio::test(start_paused = true)]
    async fn a_cancel_does_not_search_the_batch_for_each_call() {
        let turn = turn().await;
        let cancel = async {
            tokio::task::yield_now().await;
            let before = looks::so_far();
            assert!((0..CALLS).all(|n| turn.cancel_call(&format!("call_{n}"))));
            looks::so_far() - before
        };
        let (outcomes, looks) = join!(turn.dispatch(batch("stuck")), cancel);
        let is_cancelled = |it: &Outcome| it.error().unwrap().kind == ErrorKind::Cancelled;
        assert!(outcomes.len() == CALLS && outcomes.iter().all(is_cancelled));
        assert!((CALLS..CALLS * LOOKS_PER_CALL).contains(&looks), "{looks} looks");
        assert!(!turn.cancel_call("call_0"));
    }

    /// CL-8: of calls with one id, each has its place, in call order.
    #[tokio::test(start_paused = true)]
    async fn calls_of_one_id_are_found_in_call_order() {
        let turn = turn().await;
        let ids = ["b", "a", "b", "c", "b", "a"];
        turn.dispatch(ids.map(|id| Call::new(id, "done", "{}")).to_vec()).await;
        let batch = turn.latest_whole().unwrap();
        let places = ["a", "b", "c", "", "d"].map(|id| batch.places_of(id).to_vec());
        assert_eq!(places, [vec![1, 5], vec![0, 2, 4], vec![3], vec![], vec![]]);
    }
}
