//! Turns that a parent begins.

use super::{Conversation, turn_of};
use crate::{
    book::{Phase, ServedTurn},
    parent::{
        answers::Answers,
        ask::{Calls, Head, OfSession, Respond},
        nested::Nested,
        running::RunningTurn,
        turns,
    },
    problem::Problem,
    routes::turns::{undecodable, with_own_names},
};
use std::{collections::HashSet, sync::Arc};
use tokio::{runtime::Handle, sync::mpsc};
use toolyard::{Call, Session};
use toolyard_wire::{Format, decode};

impl Conversation {
    /// Begins a turn of the parent's, which goes on as its task.
    pub(super) fn begin(
        &self,
        name: &str,
        of: &OfSession,
        after: Option<&str>,
        format: Format,
        calls: usize,
    ) -> Result<(RunningTurn, Session), Problem> {
        self.may_begin()?;
        self.turns.is_free(name)?;
        let after = after.map(|after| self.turns.find(after)).transpose()?.flatten();
        let (served, agent) = self.agent(of)?;
        let room = served.turns.room();
        let room = room
            .ok_or_else(|| Problem::too_many("this session has too many open turns: wait for some to end"))?;
        let engine_turn = Arc::new(agent.turn().without_resend());
        let path = agent.agent().clone();
        let turn = Arc::new(ServedTurn::new(engine_turn.clone(), path, Phase::Running, format, calls));
        served.turns.add(room, turn.clone());
        let name: Arc<str> = name.into();
        self.names.add(served.id(), turn.number, name.clone());
        let (names, answers) = (self.names.clone(), self.answers());
        Ok((RunningTurn { name, served, turn, engine_turn, after, names, answers }, agent))
    }

    pub(super) fn answers(&self) -> Answers {
        Answers {
            out: self.out.clone(),
            turns: self.turns.clone(),
            meta: self.meta.clone(),
            tasks: self.tasks.clone(),
            runtime: Handle::current(),
        }
    }

    pub(super) fn respond(&self, head: &Head, ask: Respond) -> Result<(), Problem> {
        let name = turn_of(head)?;
        self.may_begin()?;
        let message = decode(ask.message.get(), ask.from).map_err(|error| undecodable(&error))?;
        turns::has_room(message.calls().len())?;
        let (running, agent) =
            self.begin(name, &ask.of, ask.after.as_deref(), message.format(), message.calls().len())?;
        let message = with_own_names(message, &agent);
        let ids = message.calls().iter().map(|call| call.id.clone()).collect();
        self.turns.begin(running.name.clone(), running.turn.clone(), ids, None);
        self.tasks.spawn(running.respond(message, ask.to, ask.each));
        Ok(())
    }

    pub(super) fn calls(&self, head: &Head, ask: Calls) -> Result<(), Problem> {
        let name = turn_of(head)?;
        if let Some(call_id) = &ask.within {
            return self.nested(name, call_id, ask.calls);
        }
        if ask.continues {
            return self.turns.add(name, ask.calls, ask.more);
        }
        turns::check(&HashSet::new(), &ask.calls)?;
        let (running, _) =
            self.begin(name, &ask.of, ask.after.as_deref(), Format::Neutral, ask.calls.len())?;
        let ids = ask.calls.iter().map(|call| call.id.clone()).collect();
        let (feed, fed) = mpsc::unbounded_channel();
        let _ = feed.send(ask.calls); // its receiver is here
        let feed = ask.more.then_some(feed);
        self.turns.begin(running.name.clone(), running.turn.clone(), ids, feed);
        self.tasks.spawn(running.calls(fed));
        Ok(())
    }

    /// Calls that a function of the parent makes.
    pub(super) fn nested(&self, name: &str, call_id: &str, calls: Vec<Call>) -> Result<(), Problem> {
        self.turns.is_free(name)?;
        turns::check(&HashSet::new(), &calls)?;
        self.functions.nest(call_id, |room| {
            let name: Arc<str> = name.into();
            let cancel = self.turns.begin_nested(name.clone());
            Nested::new(name, calls, cancel, self.answers(), room)
        })
    }
}
