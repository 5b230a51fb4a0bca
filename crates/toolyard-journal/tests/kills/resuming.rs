//! A later life: it takes up all that is open, reads what has ended, and sends again what has a key.

use crate::{
    plan::{Plan, SessionPlan},
    point::Recording,
    random::Random,
    tools::{pause, say},
    working::{acknowledge, agent},
};
use futures::future::{join, join_all};
use toolyard::{AgentPath, Engine, PastTurn, Recorder, ResumeError, ResumedTurn, Session, SessionId};

pub(crate) async fn resume(
    engine: &Engine,
    recording: &Recording,
    plan: &Plan,
    random: &mut Random,
    life: usize,
) {
    let open = engine.open_turns().unwrap();
    let taken_up = open.iter().map(|open| {
        let cancels_after = random.chance(30).then(|| random.below(2) * random.below(4));
        take_up(engine, recording, &open.session, open.turn, cancels_after)
    });
    join_all(taken_up.collect::<Vec<_>>()).await;
    join_all(plan.sessions.iter().map(|session| read(engine, recording, session))).await;
    join_all(plan.sessions.iter().map(|session| send_again(engine, recording, session, life))).await;
}

fn past(recording: &Recording, session: &SessionId, turn: u64) -> Option<PastTurn> {
    recording.turn(session, turn).unwrap()
}

/// The agent that may resume a turn, if it is not one of a handler.
fn agent_of(engine: &Engine, session: &SessionId, path: &AgentPath) -> Option<Session> {
    let root = engine.session(session.clone());
    match path.as_str().split('/').collect::<Vec<_>>()[..] {
        ["root"] => agent(&root, "root"),
        ["root", name] => agent(&root, name),
        _ => None,
    }
}

async fn take_up(
    engine: &Engine,
    recording: &Recording,
    session: &SessionId,
    turn: u64,
    cancels_after: Option<u64>,
) {
    let Some(past) = past(recording, session, turn) else {
        return say(&format!("fault turn {turn} of {session} is open and not there"));
    };
    let Some(agent) = agent_of(engine, session, &past.agent) else {
        return say(&format!("fault turn {turn} of {session} is open and of {}", past.agent));
    };
    match agent.resume(turn).await {
        Ok(resumed) => finish(&agent, &past, resumed, cancels_after).await,
        Err(error) => say(&format!("not-resumed {turn} of {session}: {error}")),
    }
}

async fn finish(agent: &Session, past: &PastTurn, resumed: ResumedTurn, cancels_after: Option<u64>) {
    let ids: Vec<_> = past.batches.iter().flat_map(|batch| &batch.calls).map(|call| &call.call.id).collect();
    if cancels_after == Some(0) {
        ids.iter().for_each(|id| say(&format!("cancelling {id}")));
        resumed.turn().cancel();
        if agent.recorded().await.is_ok() {
            ids.iter().for_each(|id| say(&format!("cancelled {id}")));
        }
    }
    let cancel = async {
        let Some(after) = cancels_after.filter(|after| *after > 0) else { return };
        pause(after - 1).await;
        ids.iter().for_each(|id| say(&format!("cancelling {id}")));
        let reached: Vec<_> = ids.iter().filter(|id| agent.cancel_call(id.as_str())).collect();
        if agent.recorded().await.is_ok() {
            reached.iter().for_each(|id| say(&format!("cancelled {id}")));
        }
    };
    let (batches, ()) = join(resumed.finish(), cancel).await;
    batches.iter().flatten().for_each(acknowledge);
}

/// Asks for the results of all turns that had ended.
async fn read(engine: &Engine, recording: &Recording, session: &SessionPlan) {
    let session = SessionId::from(session.name.as_str());
    for turn in 1.. {
        let Some(past) = past(recording, &session, turn) else { break };
        let Some(agent) = agent_of(engine, &session, &past.agent) else { continue };
        match agent.resume(turn).await {
            Ok(resumed) => resumed.finish().await.iter().flatten().for_each(acknowledge),
            Err(ResumeError::InThisLife { .. }) => {}
            Err(error) => say(&format!("not-resumed {turn} of {session}: {error}")),
        }
    }
}

/// Sends calls once more, under the keys that they had.
async fn send_again(engine: &Engine, recording: &Recording, plan: &SessionPlan, life: usize) {
    let id = SessionId::from(plan.name.as_str());
    let turns = (1..).map_while(|turn| past(recording, &id, turn));
    let known: Vec<_> = turns.flat_map(|turn| turn.batches).flat_map(|batch| batch.calls).collect();
    let is_known = |id: &str| known.iter().any(|call| call.call.id.as_str() == id);
    let of_root = plan.agents.first().into_iter().flatten().flat_map(|turn| turn.calls());
    let calls = of_root.filter(|call| call.key.is_some() && is_known(&call.id));
    let calls: Vec<_> = calls.map(|call| call.sent_again(life)).collect();
    if !calls.is_empty() {
        engine.session(id).dispatch(calls).await.iter().for_each(acknowledge);
    }
}
