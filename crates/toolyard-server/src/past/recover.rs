//! Opening the sessions that an earlier life of the server has left, and taking up their turns.

use super::{Description, description, recall};
use crate::{
    app::App,
    book::{ROOT, Served},
    problem::Problem,
    routes::{agents::Fork, sessions::begin_again},
};
use futures::{StreamExt as _, stream};
use tokio::task::JoinHandle;
use toolyard::{ForkPolicy, OpenTurn, PastAgent, PastSession, RecordError, SessionId};

/// How many turns are taken up at once: each may ask tools what became of calls.
const AT_ONCE: usize = 16;

/// What a server takes up of an earlier life ([`Server::recover`](crate::Server::recover)).
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// How many sessions are open again.
    pub sessions: usize,
    /// How many turns are being taken up.
    pub turns: usize,
    /// What is left as it was, with the reason: a session whose token is not configured any more, for example.
    pub left: Vec<String>,
    taking_up: JoinHandle<Vec<String>>,
}

impl Recovered {
    /// Waits until each of the turns goes on, or waits for its whole response. Returns those that are left as they were, with
    /// the reasons.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn settled(self) -> Vec<String> {
        self.taking_up.await.unwrap_or_default()
    }
}

pub(crate) fn recover(app: &App) -> Result<Recovered, RecordError> {
    let (mut sessions, mut left) = (0, Vec::new());
    let open = app.engine.open_turns()?;
    app.front.questions().come_after(&app.engine.past_epochs()?);
    for past in app.engine.past_sessions()? {
        let Some(text) = past.description.as_deref() else { continue };
        match description::read(text).and_then(|described| open_again(app, &past, described)) {
            Ok(unmade) => {
                sessions += 1;
                left.extend(unmade);
            }
            Err(problem) => left.push(format!("session {}: {}", past.session, problem.detail())),
        }
    }
    let (own, of_others): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|turn| app.book.find(turn.session.as_str()).is_some());
    let (closed, of_others): (Vec<_>, Vec<_>) =
        of_others.into_iter().partition(|turn| was_closed(app, &turn.session));
    if !of_others.is_empty() {
        left.push(format!(
            "{} turns of other sessions, of MCP clients for example: see them with 'toolyard journal ls --open'",
            of_others.len()
        ));
    }
    // Before anybody can ask for them.
    for turn in &own {
        let served = app.book.find(turn.session.as_str());
        if let Some(served) = served.filter(|served| served.agent(Some(turn.agent.as_str())).is_ok()) {
            served.will_go_on(turn.turn);
        }
    }
    let (turns, taking) = (own.len(), app.clone());
    let taking_up = tokio::spawn(async move {
        let taken_up = own.into_iter().map(|turn| take_up(&taking, turn));
        let closed = closed.into_iter().map(|turn| end(&taking, turn));
        let taken_up = stream::iter(taken_up).buffer_unordered(AT_ONCE);
        let all = taken_up.chain(stream::iter(closed).buffered(1));
        all.filter_map(|left| async { left }).collect().await
    });
    Ok(Recovered { sessions, turns, left, taking_up })
}

/// Opens a session as it was, within what its token may now. Returns which of its agents are not made again.
fn open_again(app: &App, past: &PastSession, description: Description) -> Result<Vec<String>, Problem> {
    let Description { served_for, open, opened_ms } = description;
    let token = app.access.caller_named(&served_for).ok_or_else(|| {
        Problem::not_found(format!("token '{served_for}' with the scope 'call', which had opened it"))
    })?;
    let served = begin_again(app, &token, past.session.as_str(), open, opened_ms)?;
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

/// Whether a session was one of a server, and whoever had it has closed it.
fn was_closed(app: &App, session: &SessionId) -> bool {
    let past = app.engine.past_session(session).ok().flatten();
    past.is_some_and(|past| {
        past.is_cancelled && past.description.is_some_and(|text| description::read(&text).is_ok())
    })
}

/// Ends a turn of a session that was closed, in which calls had not ended when its life did: nothing of it starts. As in any
/// life its name is taken meanwhile. Says why it is left, if it is.
async fn end(app: &App, turn: OpenTurn) -> Option<String> {
    let OpenTurn { session, agent, turn, .. } = turn;
    let left = |why: &dyn std::fmt::Display| Some(format!("session {session}, turn {turn}: {why}"));
    let root = match app.engine.open(session.clone(), app.options.session.clone()) {
        Ok(root) => root,
        Err(taken) => return left(&taken), // its owner was faster
    };
    let own = agent
        .as_str()
        .split('/')
        .skip(1)
        .try_fold(root.clone(), |parent, name| parent.fork(ForkPolicy::default().name(name)));
    let resumed = match own {
        Ok(own) => own.resume(turn).await,
        Err(_) => return left(&format_args!("agent {agent} had no name")),
    };
    match resumed {
        Ok(resumed) => {
            resumed.turn().cancel();
            drop(resumed.finish().await);
            None
        }
        Err(error) => left(&error),
    }
}

/// Takes up a turn; says why it is left, if it is.
async fn take_up(app: &App, turn: OpenTurn) -> Option<String> {
    let OpenTurn { session, agent, turn, .. } = turn;
    let served = app.book.find(session.as_str())?;
    let taken_up = match served.agent(Some(agent.as_str())) {
        Ok(_) => recall::take_up(app, &served, turn).await,
        Err(_) if agent.as_str() == ROOT => return None, // its session is closing
        // It ends with the next turn of an agent above it that is taken up (JR-10).
        Err(_) => Err(Problem::not_found(format!("agent {agent}, which had no name"))),
    };
    served.is_taken_up(turn);
    taken_up.err().map(|problem| format!("session {session}, turn {turn}: {}", problem.detail()))
}
