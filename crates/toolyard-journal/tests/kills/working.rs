//! A first life: every session and agent does what the plan says.

use crate::{
    plan::{BatchPlan, Cancel, CancelPlan, Plan, SessionPlan, TurnPlan, agent_name},
    tools::{pause, say},
};
use futures::future::{join, join_all};
use toolyard::{CallError, Engine, ForkPolicy, Outcome, Session, ToolOutput, Turn};

pub(crate) async fn work(engine: &Engine, plan: &Plan) {
    join_all(plan.sessions.iter().map(|session| work_in(engine, session))).await;
}

async fn work_in(engine: &Engine, plan: &SessionPlan) {
    let session = engine.session(plan.name.as_str());
    let agents = plan.agents.iter().enumerate().map(|(at, turns)| {
        let agent = agent(&session, agent_name(at));
        async move {
            let Some(agent) = agent else { return }; // the session is cancelled, or the engine stops
            for turn in turns {
                work_on(&agent, plan, turn).await;
            }
        }
    });
    join_all(agents).await;
}

/// The agent of this name.
pub(crate) fn agent(session: &Session, name: &str) -> Option<Session> {
    if name == "root" {
        return Some(session.clone());
    }
    session.sub_agent(name).or_else(|| session.fork(ForkPolicy::default().name(name)).ok())
}

async fn work_on(agent: &Session, session: &SessionPlan, plan: &TurnPlan) {
    let turn = agent.turn();
    let work = async {
        for batch in &plan.batches {
            dispatch(&turn, batch).await.iter().for_each(acknowledge);
        }
    };
    let cancel = async {
        if let Some(CancelPlan { after, what }) = &plan.cancel {
            pause(*after).await;
            cancel(agent, session, (&turn, plan), what).await;
        }
    };
    join(work, cancel).await;
}

async fn dispatch(turn: &Turn, plan: &BatchPlan) -> Vec<Outcome> {
    if !plan.is_open {
        return turn.dispatch(plan.calls.iter().map(|call| call.call()).collect::<Vec<_>>()).await;
    }
    let batch = turn.open_batch();
    for call in &plan.calls {
        pause(u64::from(call.fails)).await;
        batch.push(call.call());
    }
    batch.finish().await
}

async fn cancel(agent: &Session, session: &SessionPlan, (turn, plan): (&Turn, &TurnPlan), what: &Cancel) {
    let ids: Vec<&str> = match what {
        Cancel::Call(id) => vec![id],
        Cancel::Turn => plan.calls().map(|call| &*call.id).collect(),
        Cancel::Session => {
            // Of a sub-agent it is all that is its own, of the root all that is anybody's.
            let agents = session.agents.iter().enumerate();
            let reached =
                agents.filter(|(at, _)| name_of(agent) == "root" || name_of(agent) == agent_name(*at));
            reached.flat_map(|(_, turns)| turns).flat_map(TurnPlan::calls).map(|call| &*call.id).collect()
        }
    };
    ids.iter().for_each(|id| say(&format!("cancelling {id}")));
    let is_cancelled = match what {
        Cancel::Call(id) => turn.cancel_call(id), // false: it has not come yet, or has ended
        Cancel::Turn => {
            turn.cancel();
            true
        }
        Cancel::Session => {
            agent.cancel();
            true
        }
    };
    if is_cancelled && agent.recorded().await.is_ok() {
        ids.iter().for_each(|id| say(&format!("cancelled {id}")));
    }
}

fn name_of(agent: &Session) -> &str {
    agent.agent().as_str().rsplit('/').next().unwrap_or_default()
}

/// Says which result a caller has.
pub(crate) fn acknowledge(outcome: &Outcome) {
    let id = &outcome.call_id;
    if outcome.error().is_some_and(|error| error.suspended.is_some()) {
        return say(&format!("suspended {id}"));
    }
    if !outcome.recorded {
        return say(&format!("unrecorded {id}"));
    }
    say(&format!("ack {id} {}", json(&outcome.status.clone().map_err(|error| *error))));
}

/// A result as a line.
pub(crate) fn json(status: &Result<ToolOutput, CallError>) -> String {
    let text = match status {
        Ok(output) => serde_json::to_string(&("ok", output)),
        Err(error) => serde_json::to_string(&("error", error)),
    };
    text.expect("a result can be written")
}
