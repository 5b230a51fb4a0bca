//! The actor that owns one agent's program and conversation.
//!
//! ```text
//!   starting ─► running ─┬─ its conversation is over ─► 5 s to exit ─┐
//!                        ├─ told to stop ─────► `shutdown`, its grace ├─► SIGTERM, 3 s, SIGKILL ─► exited
//!                        ├─ a limit, or no sense in what it sends ────┘
//!                        └─ its program exits ───────────────────────────────────────────────► exited
//! ```

use super::{AgentPhase, AgentStatus, Shared, actor::StartAgent};
use crate::{
    end::{AgentReport, Cause, judge},
    models::Quotas,
    observe::Observer,
    process::{self, Launched},
    room::Kept,
    stderr,
    talk::{Order, Talk, TalkEnd, TalkParts, Talked},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use std::{sync::Arc, time::Duration};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use toolyard::{AgentPath, Session};
use toolyard_process::{Input, Output, Processes, Report};

/// How long an agent may take to exit that has nothing more to ask.
const EXIT_GRACE: Duration = Duration::from_secs(5);

pub(super) enum AgentMessage {
    /// Its program runs.
    Runs,
    /// It asks nothing more, and has all its answers.
    AsksNothing,
    /// Its conversation is over.
    Talked(Talked),
    /// Its program has ended, with all that it started.
    Exited(Report),
    /// It is to end within this time.
    Stop(Duration),
    /// Its time is over.
    WallTime,
    /// It has been given the time to exit, for this cause if for any.
    GraceOver,
    /// Say what it does.
    Status(RpcReplyPort<AgentStatus>),
}

/// What the actor is made from.
pub(super) struct AgentSeed {
    pub(super) shared: Arc<Shared>,
    pub(super) order: StartAgent,
    /// Who waits for its end.
    pub(super) tell: watch::Sender<Option<AgentReport>>,
}

pub(super) struct AgentActor;

/// An agent that runs.
pub(super) struct Running {
    shared: Arc<Shared>,
    session: Session,
    /// By which it is known to others.
    number: u64,
    profile: String,
    phase: AgentPhase,
    since: Instant,
    observer: Observer,
    orders: watch::Sender<Order>,
    terminate: CancellationToken,
    cause: Option<Cause>,
    talked: Option<Talked>,
    report: Option<Report>,
    quotas: Quotas,
    wall_time: Option<Duration>,
    tell: watch::Sender<Option<AgentReport>>,
    /// Whether its end has been told.
    is_told: bool,
    /// Its tasks, which end with it.
    tasks: Vec<AbortOnDropHandle<()>>,
}

impl Running {
    /// Its conversation is over.
    fn talked(&mut self, talked: Talked) {
        self.phase = AgentPhase::Stopping;
        match &talked.why {
            TalkEnd::Over => {}
            TalkEnd::Line(why) => self.end_for(Cause::Line(why.clone())),
            TalkEnd::Protocol(why) => self.end_for(Cause::Protocol(why.clone())),
        }
        self.talked = Some(talked);
    }

    /// Ends its program for this cause, unless it is being ended for another one.
    fn end_for(&mut self, cause: Cause) {
        self.phase = AgentPhase::Stopping;
        self.cause.get_or_insert(cause);
        self.terminate.cancel();
    }

    fn stop(&mut self, me: &ActorRef<AgentMessage>, grace: Duration) {
        if self.report.is_some() {
            return; // it has exited, and its conversation is told that and nothing else
        }
        self.phase = AgentPhase::Stopping;
        self.cause.get_or_insert(Cause::Stopped);
        match grace.is_zero() {
            true => self.terminate.cancel(),
            false => {
                self.orders.send_replace(Order::Stop(grace));
                self.later(me, grace, || AgentMessage::GraceOver);
            }
        }
    }

    /// Sends a message to this actor later.
    fn later(
        &mut self,
        me: &ActorRef<AgentMessage>,
        after: Duration,
        message: impl FnOnce() -> AgentMessage + Send + 'static,
    ) {
        let me = me.clone();
        self.task(async move {
            sleep(after).await;
            let _ = me.cast(message()); // it may have ended
        });
    }

    fn task(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(AbortOnDropHandle::new(tokio::spawn(task)));
    }

    /// Whether there is nothing left to wait for. Then its end is told.
    fn is_over(&mut self) -> bool {
        let (Some(report), Some(talked)) = (&self.report, &mut self.talked) else { return false };
        self.phase = AgentPhase::Exited;
        // Its calls are cancelled with their grace, its questions withdrawn, its own agents ended (AG-9).
        self.session.cancel();
        let used = match report {
            Report::Ran(ran) => ran.used,
            Report::NotStarted(_) => None,
        };
        let ended = AgentReport {
            agent: self.session.agent().clone(),
            profile: std::mem::take(&mut self.profile),
            pid: self.observer.pid(),
            end: judge(self.cause.take(), report),
            result: talked.result.take(),
            counts: self.observer.counts(),
            models: self.quotas.used(),
            lived: self.since.elapsed(),
            used,
        };
        let (agent, end) = (ended.agent.as_str(), ended.end.to_string());
        tracing::info!(agent, end, "an agent has ended");
        self.tells(ended);
        true
    }

    /// Tells its end to all who wait for it.
    fn tells(&mut self, report: AgentReport) {
        self.is_told = true;
        self.shared.forget(&self.session, self.number);
        self.shared.report(report.clone());
        self.tell.send_replace(Some(report));
    }

    fn status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.session.agent().clone(),
            profile: self.profile.clone(),
            pid: self.observer.pid(),
            phase: self.phase,
            counts: self.observer.counts(),
            models: self.quotas.used(),
            lived: self.since.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An actor that has failed tells it too.
        if !self.is_told {
            self.session.cancel();
            self.tells(AgentReport::lost(self.session.agent().clone()));
        }
    }
}

/// What an agent writes, and what it reads. What it writes elsewhere for people is logged.
type Ends = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// The ends of its channel: its standard input and output, or the socket that it has in place of its input.
fn channel(
    agent: &AgentPath,
    output: Output,
    input: Option<Input>,
    #[cfg(unix)] socket: Option<UnixStream>,
) -> Result<Ends, &'static str> {
    #[cfg(unix)]
    if let Some(socket) = socket {
        tokio::spawn(stderr::log(agent.clone(), output));
        let (from, to) = socket.into_split();
        return Ok((Box::new(from), Box::new(to)));
    }
    #[cfg(not(unix))]
    let _ = agent;
    let input = input.ok_or("its standard input is a pipe")?;
    Ok((Box::new(output), Box::new(input)))
}

/// Follows a program to its end, and ends it when it is to be ended.
async fn follow(mut processes: Processes, me: ActorRef<AgentMessage>, terminate: CancellationToken) {
    if processes.started().await.is_ok() {
        let _ = me.cast(AgentMessage::Runs); // it may have ended
    }
    let report = tokio::select! {
        biased;
        report = processes.ended() => report,
        () = terminate.cancelled() => {
            processes.terminate();
            processes.ended().await
        }
    };
    let _ = me.cast(AgentMessage::Exited(report));
}

impl Actor for AgentActor {
    type Msg = AgentMessage;
    type State = Running;
    type Arguments = Box<AgentSeed>;

    async fn pre_start(
        &self,
        me: ActorRef<AgentMessage>,
        seed: Box<AgentSeed>,
    ) -> Result<Running, ActorProcessingErr> {
        let AgentSeed { shared, order: StartAgent { session, name, profile, input }, tell } = *seed;
        let means = &shared.options.means;
        let parent = shared.kinship.parent(&session);
        let kept = Kept::of(&profile, parent.as_ref().map(|kin| &kin.kept), means)?;
        let launched = process::start(&profile, session.agent(), input.as_deref(), means, &kept)?;
        let Launched { started, models } = launched;
        let observer = Observer::new(session.id(), session.agent(), shared.options.audit.as_ref());
        if let Some(pid) = started.processes.id() {
            observer.runs_as(pid);
        }
        let wall_time = profile.limits.wall_time;
        let quotas = kept.quotas.clone();
        let number = shared.remember(&session, profile, kept);
        let (orders, ordered) = watch::channel(Order::Talk);
        let mut running = Running {
            session: session.clone(),
            number,
            profile: name,
            phase: AgentPhase::Starting,
            since: Instant::now(),
            observer: observer.clone(),
            orders,
            terminate: CancellationToken::new(),
            cause: None,
            talked: None,
            report: None,
            quotas,
            wall_time,
            tell,
            is_told: false,
            tasks: Vec::new(),
            shared: shared.clone(),
        };
        let (from, to) = channel(
            session.agent(),
            started.stdout,
            started.stdin,
            #[cfg(unix)]
            started.socket,
        )?;
        let talk = Talk::new(TalkParts {
            from,
            to,
            session: session.clone(),
            input,
            long_lines: shared.long_lines.clone(),
            answers: shared.answers.clone(),
            deltas: shared.deltas.clone(),
            observer,
            recorded: shared.options.recorded.clone(),
            orders: ordered,
        });
        let (mine, asks, agent) = (me.clone(), me.clone(), session.agent().clone());
        running.task(async move {
            let talking = AbortOnDropHandle::new(tokio::spawn(talk.run(move || {
                let _ = asks.cast(AgentMessage::AsksNothing); // it may have ended
            })));
            let talked = talking.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the conversation of an agent has failed");
                Talked { why: TalkEnd::Protocol("its conversation has failed here".to_owned()), result: None }
            });
            let _ = mine.cast(AgentMessage::Talked(talked));
        });
        if let Some(errors) = started.stderr {
            tokio::spawn(stderr::log(agent, errors)); // until its end, which is soon after that of the program
        }
        if let Some(models) = models {
            running.task(models);
        }
        running.task(follow(started.processes, me.clone(), running.terminate.clone()));
        if let Some(limit) = wall_time {
            running.later(&me, limit, || AgentMessage::WallTime);
        }
        Ok(running)
    }

    async fn handle(
        &self,
        me: ActorRef<AgentMessage>,
        message: AgentMessage,
        running: &mut Running,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            AgentMessage::Runs if running.phase == AgentPhase::Starting => {
                running.phase = AgentPhase::Running;
            }
            AgentMessage::Runs => {}
            AgentMessage::AsksNothing => {
                running.phase = AgentPhase::Stopping;
                // One that was told to stop has the time that it was given.
                if running.cause.is_none() {
                    running.later(&me, EXIT_GRACE, || AgentMessage::GraceOver);
                }
            }
            AgentMessage::Talked(talked) => running.talked(talked),
            AgentMessage::Exited(report) => {
                running.report = Some(report);
                running.orders.send_replace(Order::Exited);
            }
            AgentMessage::Stop(grace) => running.stop(&me, grace),
            AgentMessage::WallTime => {
                let limit = running.wall_time.unwrap_or_default();
                running.end_for(Cause::WallTime(limit));
            }
            AgentMessage::GraceOver => running.terminate.cancel(),
            AgentMessage::Status(reply) => {
                let _ = reply.send(running.status());
            }
        }
        if running.is_over() {
            me.stop(None);
        }
        Ok(())
    }
}
