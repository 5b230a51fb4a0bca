//! The sessions of a parent: opened by name or by the first turn that names them, and closed.

use super::Conversation;
use crate::{
    app::App,
    book::{Served, is_name},
    parent::ask::Head,
    parent::{GRACE, SESSION, ask::OfSession, tell},
    problem::Problem,
    routes::sessions::{Open, begin},
};
use axum::http::StatusCode;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{interval, timeout};
use toolyard::Session;

impl Conversation {
    /// Passes while something new may be begun.
    pub(super) fn may_begin(&self) -> Result<(), Problem> {
        match self.ending {
            Some(_) => Err(Problem::draining()),
            None => self.app.starts(),
        }
    }

    pub(super) fn open(&self, name: &str, open: Open) -> Result<Arc<Served>, Problem> {
        if !is_name(name) {
            let why = "a name has 1 to 128 of A-Z a-z 0-9 . _ -, and not dots alone";
            return Err(Problem::invalid("/session", why));
        }
        begin(&self.app, &self.token, open.named(name))
    }

    /// The session that is named, opened if it is not open.
    pub(super) fn served(&self, of: &OfSession) -> Result<Arc<Served>, Problem> {
        let name = of.session.as_deref().unwrap_or(SESSION);
        let find = || self.app.book.find(name).filter(|served| served.owner().is_parent());
        if let Some(served) = find().filter(|served| !served.is_closing()) {
            return Ok(served);
        }
        self.app.forget_closed(); // it may be over by now
        match find() {
            Some(served) => Ok(served),
            // What it was opened with is not given up by opening another one.
            None if self.opened.contains(name) => {
                let why = format!("the session '{name}' was closed by somebody else: open it again");
                Err(Problem::new(StatusCode::CONFLICT, "session_closed", why))
            }
            None => self.open(name, Open::default()),
        }
    }

    /// The agent that is named, and its session.
    pub(super) fn agent(&self, of: &OfSession) -> Result<(Arc<Served>, Session), Problem> {
        let served = self.served(of)?;
        let agent = served.agent(of.agent.as_deref())?;
        served.touch();
        Ok((served, agent))
    }

    /// Closes a session, and says so once its turns have ended.
    pub(super) fn close(&mut self, head: &Head, session: &str) -> Result<(), Problem> {
        let served = self.app.book.find(session).filter(|served| served.owner().is_parent());
        let was_opened = self.opened.remove(session);
        if served.is_none() && !was_opened {
            return Err(Problem::not_found(format!("session '{}'", session.escape_debug())));
        }
        served.iter().for_each(|served| drop(served.close()));
        let (app, out) = (self.app.clone(), self.out.clone());
        let closed = tell::answer("closed", head.id.as_ref(), json!({"session": session}));
        self.tasks.spawn(async move {
            if let Some(served) = served {
                for turn in served.turns.list() {
                    turn.until_ended().await;
                }
                // What has still to be let go of is so in a moment.
                let _ = timeout(GRACE, until_forgotten(&app, &served)).await;
            }
            let _ = out.tell(closed).await;
        });
        Ok(())
    }
}

/// Waits until the name of a session that is closing is free.
async fn until_forgotten(app: &App, served: &Arc<Served>) {
    let mut again = interval(Duration::from_millis(1));
    loop {
        again.tick().await;
        app.forget_closed();
        if app.book.find(served.id().as_str()).is_none_or(|now| !Arc::ptr_eq(&now, served)) {
            return;
        }
    }
}
