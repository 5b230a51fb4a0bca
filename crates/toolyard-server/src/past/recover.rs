//! Opening the sessions that an earlier life of the server has left, and taking up their turns.

use super::{Description, taken_up::TakenUp};
use crate::{
    app::App,
    book::{ROOT, Served},
    problem::Problem,
    routes::{agents::Fork, sessions::begin_again},
};
use futures::{StreamExt as _, stream};
use toolyard::{AgentPath, OpenTurn, PastAgent, PastSession, RecordError, SessionId};

/// How many turns are taken up at once: each may ask tools what became of calls.
const AT_ONCE: usize = 16;

/// What a server has taken up of an earlier life ([`Server::recover`](crate::Server::recover)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// How many sessions are open again.
    pub sessions: usize,
    /// How many turns go on, or wait for their whole response.
    pub turns: usize,
    /// What is left as it was, with the reason: the turns of a session whose token is not configured any more, for example.
    pub left: Vec<String>,
}

pub(crate) async fn recover(app: &App) -> Result<Recovered, RecordError> {
    let mut recovered = Recovered::default();
    let open = app.engine.open_turns()?;
    for past in app.engine.past_sessions()? {
        let Some(description) = past.description.as_deref().and_then(Description::read) else { continue };
        match open_again(app, &past, description) {
            Ok(unmade) => {
                recovered.sessions += 1;
                recovered.left.extend(unmade);
            }
            Err(problem) => recovered.left.push(format!("session {}: {}", past.session, problem.detail())),
        }
    }
    let taken_up = open.into_iter().map(|turn| take_up(app, turn));
    let taken_up: Vec<_> = stream::iter(taken_up).buffer_unordered(AT_ONCE).collect().await;
    for turn in taken_up.into_iter().flatten() {
        match turn {
            Ok(()) => recovered.turns += 1,
            Err(why) => recovered.left.push(why),
        }
    }
    Ok(recovered)
}

/// Opens a session as it was, within what its token may now. Returns which of its agents are not made again.
fn open_again(app: &App, past: &PastSession, description: Description) -> Result<Vec<String>, Problem> {
    let Description { served_for, open } = description;
    let token = app.access.caller_named(&served_for).ok_or_else(|| {
        Problem::not_found(format!("token '{served_for}' with the scope 'call', which had opened it"))
    })?;
    let served = begin_again(app, &token, past.session.as_str(), open)?;
    let fork = |agent: &PastAgent| {
        let unmade = |problem: Problem| {
            format!("session {}, agent {}: {}", past.session, agent.agent, problem.detail())
        };
        fork_again(&served, agent).map_err(unmade).err()
    };
    Ok(past.agents.iter().filter_map(fork).collect())
}

fn fork_again(served: &Served, past: &PastAgent) -> Result<(), Problem> {
    let fork: Option<Fork> = past.description.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let Some(fork) = fork else { return Ok(()) }; // whatever has made it is not here
    let parent = past.agent.as_str().rsplit_once('/').map(|(parent, _)| parent);
    served.fork(parent, fork.policy()?).map(drop)
}

/// Takes up a turn whose session is open again; `None` if that is not served here.
async fn take_up(app: &App, turn: OpenTurn) -> Option<Result<(), String>> {
    let OpenTurn { session, agent, turn, .. } = turn;
    let served = app.book.find(session.as_str())?;
    let taken_up = match served.agent(Some(agent.as_str())) {
        Ok(session) => TakenUp::of(&served, &session, turn).await.map_err(|error| error.to_string()),
        Err(_) => Err(unmade(&agent)),
    };
    Some(match taken_up {
        Ok(taken_up) => {
            taken_up.goes_on();
            Ok(())
        }
        Err(why) => Err(left(&session, turn, &why)),
    })
}

fn unmade(agent: &AgentPath) -> String {
    match agent.as_str() {
        ROOT => "its session is closing".to_owned(),
        agent => format!("its agent {agent} has no name by which it could be made again"),
    }
}

fn left(session: &SessionId, turn: u64, why: &str) -> String {
    format!("session {session}, turn {turn}: {why}")
}
