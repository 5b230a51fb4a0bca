//! The state of a small program at one moment, driven through the table itself: its possible events and their
//! effects.
//!
//! No unit may exceed its width, no two handlers may run on a lease at once, and nothing may be left over.

use super::programs::{Class, Program};
use super::*;
use crate::store::{ages::AGED_AFTER, queue::Queue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    NotSent,
    /// Waits for earlier runs.
    Gated,
    Waiting(Ticket),
    Running,
    Parked,
    /// Parked, and no longer awaiting what it dispatched (CC-6b).
    Dropped,
    Resuming(Ticket),
    Zombie,
    Stopped,
    Quiet,
}

#[derive(Debug, Clone)]
pub(super) struct CallState {
    pub(super) phase: Phase,
    /// How many of its steps are finished.
    step: usize,
    cancelled: bool,
    entry: Option<EntryId>,
    /// The part of its need that it holds.
    need: Need,
    since: u64,
}

/// How often events may happen that need not happen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    pub(super) zombies: u8,
    pub(super) cancels: u8,
    pub(super) drops: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Send(usize),
    Park(usize),
    End(usize),
    GiveUp(usize),
    ZombieEnds(usize),
    Expire(usize),
    Drop(usize),
    Cancel(usize),
    Abandon(usize),
    Age(usize),
}

#[derive(Debug, Clone)]
pub(super) struct World<'a> {
    program: &'a Program,
    table: Table<usize>,
    needs: Vec<Need>,
    units: Vec<UnitId>,
    leases: Vec<LeaseId>,
    pub(super) calls: Vec<CallState>,
    /// The waiters in order of arrival.
    line: Vec<usize>,
    now: u64,
    budget: Budget,
    /// How many calls were refused a lease (CC-8).
    pub(super) nested: u32,
}

impl<'a> World<'a> {
    pub(super) fn new(program: &'a Program, budget: Budget) -> Self {
        let sizes = program.sizes;
        let mut table = Table::new([sizes.read, 1, sizes.concurrent], 1000, 1000);
        let read = table.open_class(ToolClass::Read);
        let each = |table: &mut Table<usize>, n: usize, open: &dyn Fn(&mut Table<usize>) -> UnitId| {
            (0..n).map(|_| open(table)).collect::<Vec<_>>()
        };
        let agents = program.agents;
        let concurrent = each(&mut table, agents, &|table| table.open_class(ToolClass::Concurrent));
        let tools = each(&mut table, agents, &|table| {
            table.open(
                UnitKind::Tool(if sizes.tool_of_engine { Reach::Engine } else { Reach::Agent }),
                sizes.tool,
            )
        });
        let sessions =
            each(&mut table, agents, &|table| table.open(UnitKind::Session, sizes.session.unwrap_or(9)));
        let trees =
            each(&mut table, program.roots, &|table| table.open(UnitKind::Tree, sizes.tree.unwrap_or(9)));
        let own: Vec<_> = (0..program.roots).map(|_| table.open_lease(Scope::Tree)).collect();
        let named = ["a", "b"].map(|name| table.open_lease(Scope::Named(name.into())));
        let needs = program.calls.iter().zip(&program.places).map(|(call, place)| {
            let tool = call.tool.then(|| tools[if sizes.tool_of_engine { 0 } else { place.agent }]);
            let session = sizes.session.map(|_| sessions[place.agent]);
            let need = match call.class {
                Class::Read => Need::of(read, tool, session),
                Class::Concurrent => Need::of(concurrent[place.agent], tool, session),
                Class::Serial(None) => Need::serial(own[place.root], tool, session),
                Class::Serial(Some(name)) => Need::serial(named[usize::from(name)], tool, session),
            };
            if sizes.tree.is_some() { need.in_tree(trees[place.root]) } else { need }
        });
        let needs: Vec<_> = needs.collect();
        let units = [vec![read], concurrent, tools, sessions, trees].concat();
        let leases = [own, named.to_vec()].concat();
        let idle = |need: &Need| CallState {
            phase: Phase::NotSent,
            step: 0,
            cancelled: false,
            entry: None,
            need: *need,
            since: 0,
        };
        let calls = needs.iter().map(idle).collect();
        Self { program, table, needs, units, leases, calls, line: vec![], now: 1, budget, nested: 0 }
    }

    fn clock(&self) -> impl Fn() -> Moment + use<> {
        let now = Moment(self.now);
        move || now
    }

    /// The events that are possible now.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (at, (_, batch)) in self.program.batches.iter().enumerate() {
            if self.calls[batch[0]].phase == Phase::NotSent {
                events.push(Event::Send(at));
            }
        }
        (0..self.calls.len()).for_each(|call| self.events_of(call, &mut events));
        let young = self
            .line
            .iter()
            .find(|call| matches!(self.calls[**call].phase, Phase::Waiting(_)) && !self.is_aged(**call));
        events.extend(young.map(|call| Event::Age(*call)));
        events
    }

    fn events_of(&self, call: usize, events: &mut Vec<Event>) {
        let state = &self.calls[call];
        let has_more = state.step < self.program.calls[call].body.len() && !state.cancelled;
        match state.phase {
            Phase::Running => {
                events.push(if has_more { Event::Park(call) } else { Event::End(call) });
                events.extend((self.budget.zombies > 0).then_some(Event::GiveUp(call)));
            }
            Phase::Parked if self.budget.drops > 0 && !state.cancelled => events.push(Event::Drop(call)),
            Phase::Dropped => events.push(Event::End(call)),
            Phase::Zombie => events.push(Event::ZombieEnds(call)),
            Phase::Waiting(ticket) | Phase::Resuming(ticket) if self.table.is_behind_zombies(ticket) => {
                events.push(Event::Expire(call));
            }
            Phase::Gated if self.program.places[call].before.iter().all(|b| self.is_listed(*b)) => {
                events.push(Event::Expire(call));
            }
            _ => {}
        }
        let parked = matches!(state.phase, Phase::Parked | Phase::Dropped | Phase::Resuming(_));
        if parked && state.cancelled {
            events.push(Event::Abandon(call));
        }
        if self.budget.cancels > 0 && self.is_live(call) && !state.cancelled {
            events.push(Event::Cancel(call));
        }
    }

    /// Whether the event is bound to happen sooner or later.
    fn is_progress(event: Event) -> bool {
        matches!(
            event,
            Event::Send(_) | Event::Park(_) | Event::End(_) | Event::Expire(_) | Event::Abandon(_)
        )
    }

    pub(super) fn is_aged(&self, call: usize) -> bool {
        self.now - self.calls[call].since > AGED_AFTER
    }

    fn is_live(&self, call: usize) -> bool {
        !matches!(self.calls[call].phase, Phase::NotSent | Phase::Zombie | Phase::Stopped | Phase::Quiet)
    }

    /// Whether only zombies are left of it, or nothing.
    fn is_listed(&self, call: usize) -> bool {
        match self.calls[call].phase {
            Phase::Quiet | Phase::Zombie => true,
            Phase::Stopped => self
                .program
                .children(call)
                .all(|kid| self.calls[kid].phase == Phase::NotSent || self.is_listed(kid)),
            _ => false,
        }
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Send(at) => {
                let batch = self.program.batches[at].1.clone();
                self.send(&batch);
            }
            Event::Park(call) => {
                self.table.park(self.needs[call], self.calls[call].entry, self.clock());
                self.calls[call].phase = Phase::Parked;
                let step = self.program.calls[call].body[self.calls[call].step].concat();
                self.send(&step);
            }
            Event::End(call) | Event::Abandon(call) => self.stop(call),
            Event::GiveUp(call) => {
                self.budget.zombies -= 1;
                self.give_up(call);
            }
            Event::ZombieEnds(call) => {
                let state = self.calls[call].clone();
                self.table.zombie_ended(state.need, state.entry, self.clock());
                self.calls[call].phase = Phase::Stopped;
            }
            Event::Expire(call) => self.expire(call),
            Event::Drop(call) => {
                self.budget.drops -= 1;
                self.calls[call].phase = Phase::Dropped;
                self.cancel_step(call);
            }
            Event::Cancel(call) => {
                self.budget.cancels -= 1;
                self.cancel(call);
            }
            Event::Age(call) => self.now = self.calls[call].since + AGED_AFTER + 1,
        }
        self.close();
    }

    fn send(&mut self, batch: &[usize]) {
        batch.iter().for_each(|call| self.calls[*call].phase = Phase::Gated);
    }

    /// Stops a handler and cancels what it awaited.
    fn stop(&mut self, call: usize) {
        let state = self.calls[call].clone();
        if let Phase::Resuming(ticket) = state.phase {
            self.table.cancel(ticket, self.clock());
        }
        let held = if state.phase == Phase::Running { state.need } else { Need::default() };
        self.table.release(held, state.entry, self.clock());
        self.calls[call].phase = Phase::Stopped;
        self.take();
        if matches!(state.phase, Phase::Parked | Phase::Dropped) {
            self.cancel_step(call);
        }
    }

    fn give_up(&mut self, call: usize) {
        let class = self.program.calls[call].class;
        let keeps = |unit| match self.table.kind(unit) {
            Some(UnitKind::Class(_)) => class != Class::Read,
            Some(UnitKind::Tool(_)) => class != Class::Read,
            _ => false,
        };
        let (kept, freed) = self.calls[call].need.split(keeps);
        self.table.become_zombie(kept, freed, self.calls[call].entry, self.clock());
        (self.calls[call].need, self.calls[call].phase) = (kept, Phase::Zombie);
    }

    fn expire(&mut self, call: usize) {
        match self.calls[call].phase {
            Phase::Waiting(_) => self.cancel(call),
            Phase::Gated => {
                for other in self.program.places[call].batch.clone() {
                    if self.calls[other].phase == Phase::Gated {
                        self.calls[other].phase = Phase::Quiet;
                    }
                }
            }
            _ => self.stop(call),
        }
    }

    /// Cancels a call on behalf of its caller.
    fn cancel(&mut self, call: usize) {
        match self.calls[call].phase {
            Phase::Gated => self.calls[call].phase = Phase::Quiet,
            Phase::Waiting(ticket) => {
                assert_eq!(self.table.cancel(ticket, self.clock()), Some(call));
                self.calls[call].phase = Phase::Quiet;
                self.take();
            }
            Phase::Parked | Phase::Dropped if !self.calls[call].cancelled => {
                self.calls[call].cancelled = true;
                self.cancel_step(call);
            }
            Phase::Running | Phase::Resuming(_) => self.calls[call].cancelled = true,
            _ => {}
        }
    }

    fn cancel_step(&mut self, call: usize) {
        let step = self.program.calls[call].body[self.calls[call].step].concat();
        step.into_iter().for_each(|kid| self.cancel(kid));
    }

    /// Applies what the table has granted and refused.
    fn take(&mut self) {
        for going in self.table.take_granted() {
            let call = &mut self.calls[going.waiter];
            (call.phase, call.entry) = (Phase::Running, going.entry);
        }
        for call in self.table.take_refused() {
            self.calls[call].phase = Phase::Quiet;
            self.nested += 1;
        }
        let waits = |call: &usize| matches!(self.calls[*call].phase, Phase::Waiting(_) | Phase::Resuming(_));
        self.line = std::mem::take(&mut self.line).into_iter().filter(waits).collect();
    }

    /// Applies everything that follows automatically.
    fn close(&mut self) {
        self.take();
        while (0..self.calls.len()).any(|call| self.follow(call)) {
            self.take();
        }
        for (at, (_, batch)) in self.program.batches.iter().enumerate() {
            if self.program.endless.contains(&at)
                && batch.iter().all(|call| self.calls[*call].phase == Phase::Quiet)
            {
                batch.clone().into_iter().for_each(|call| self.reset(call));
            }
        }
        self.check();
    }

    fn reset(&mut self, call: usize) {
        let state = &mut self.calls[call];
        (state.phase, state.step, state.entry, state.need) = (Phase::NotSent, 0, None, self.needs[call]);
        let kids: Vec<_> = self.program.children(call).collect();
        kids.into_iter().for_each(|kid| self.reset(kid));
    }

    fn follow(&mut self, call: usize) -> bool {
        let is_quiet = |at: &usize| self.calls[*at].phase == Phase::Quiet;
        match self.calls[call].phase {
            Phase::Gated if self.program.places[call].before.iter().all(is_quiet) => self.admit(call),
            Phase::Stopped => {
                let over = |kid: usize| matches!(self.calls[kid].phase, Phase::NotSent | Phase::Quiet);
                if !self.program.children(call).all(over) {
                    return self.list(call);
                }
                self.calls[call].phase = Phase::Quiet;
                if let Some(entry) = self.calls[call].entry {
                    self.table.quiet(entry, self.clock());
                }
            }
            Phase::Parked | Phase::Dropped => {
                let step = &self.program.calls[call].body[self.calls[call].step];
                if !step.iter().flatten().all(|kid| self.is_listed(*kid)) {
                    return false;
                }
                self.calls[call].step += 1;
                let state = &self.calls[call];
                self.calls[call].phase = match self.table.resume(state.need, state.entry, self.clock(), call)
                {
                    Resumed::Now => Phase::Running,
                    Resumed::Waiting(ticket) => {
                        self.line.push(call);
                        Phase::Resuming(ticket)
                    }
                };
            }
            _ => return false,
        }
        true
    }

    /// Lists a call in the table when only zombies are left of it; this has no further effects.
    fn list(&mut self, call: usize) -> bool {
        if let Some(entry) = self.calls[call].entry.filter(|_| self.is_listed(call)) {
            self.table.listed(entry);
        }
        false
    }

    fn admit(&mut self, call: usize) {
        let place = &self.program.places[call];
        let mut up = std::iter::successors(place.parent, |at| self.program.places[*at].parent);
        let lineage = up.find_map(|at| self.calls[at].entry);
        let ask = Ask { root: place.root as u64, depth: place.depth, lineage, need: self.needs[call] };
        self.now += 1;
        self.calls[call].since = self.now;
        let could_push = ask
            .need
            .lease()
            .is_none_or(|lease| self.table.leases.may_push(lease, self.table.leases.holder(lease, lineage)));
        let asked = match self.table.try_grant(&ask) {
            Some(entry) => Asked::Granted(entry),
            None => self.table.admit(&ask, self.clock(), call),
        };
        match asked {
            Asked::Granted(entry) => {
                (self.calls[call].phase, self.calls[call].entry) = (Phase::Running, entry)
            }
            Asked::Waiting(ticket) => {
                self.calls[call].phase = Phase::Waiting(ticket);
                self.line.push(call);
            }
            Asked::Refused(_) => {
                assert!(!could_push, "CC-8: {call} was refused, and only a unit was missing");
                self.calls[call].phase = Phase::Quiet;
                self.nested += 1;
            }
        }
    }

    /// I3, I4, and nothing is left over.
    fn check(&self) {
        for id in &self.units {
            let unit = self.table.unit(*id);
            let holds = |call: &&CallState| {
                matches!(call.phase, Phase::Running | Phase::Zombie) && call.need.has(*id)
            };
            assert_eq!(unit.in_use, self.calls.iter().filter(holds).count(), "I3");
            assert!(unit.in_use <= unit.width, "I3");
        }
        for lease in &self.leases {
            let stack = self.table.leases.stack(*lease);
            let runs: Vec<_> = stack.map(|(_, entry)| entry.state).collect();
            let running = |state: &&EntryState| matches!(state, EntryState::Running | EntryState::Zombie);
            assert!(runs.iter().filter(running).count() <= 1, "I4: {runs:?}");
            assert!(!runs.iter().skip(1).any(|state| *state == EntryState::Running), "I4: {runs:?}");
        }
        if self.calls.iter().all(|call| matches!(call.phase, Phase::NotSent | Phase::Quiet)) {
            assert!(!self.table.has_waiters() && self.table.leases.entries().next().is_none(), "left over");
            assert!(
                self.table.aging.reserved.is_none() && self.table.waiting_by_root.is_empty(),
                "left over"
            );
        }
    }

    /// Whether no event is bound to happen although some call is unfinished.
    pub(super) fn is_stuck(&self, events: &[Event]) -> bool {
        !events.iter().any(|event| Self::is_progress(*event))
            && (0..self.calls.len()).any(|call| self.is_live(call))
    }

    /// Everything that future behaviour can depend on.
    pub(super) fn key(&self) -> Vec<u8> {
        let byte = |at: usize| u8::try_from(at).unwrap();
        let mut key = vec![self.budget.zombies, self.budget.cancels, self.budget.drops];
        for call in &self.calls {
            let phase = match call.phase {
                Phase::NotSent => 0,
                Phase::Gated => 1,
                Phase::Waiting(_) => 2,
                Phase::Running => 3,
                Phase::Parked => 4,
                Phase::Dropped => 5,
                Phase::Resuming(_) => 6,
                Phase::Zombie => 7,
                Phase::Stopped => 8,
                Phase::Quiet => 9,
            };
            key.extend([phase, byte(call.step), u8::from(call.cancelled)]);
        }
        key.extend(self.line.iter().flat_map(|call| [byte(*call), u8::from(self.is_aged(*call))]));
        let owner = |entry| byte(self.calls.iter().position(|call| call.entry == Some(entry)).unwrap_or(99));
        for lease in &self.leases {
            key.push(254);
            key.extend(self.table.leases.stack(*lease).map(|(id, _)| owner(id)));
            ring(self.table.leases.get(*lease).queue.as_deref(), &mut key);
        }
        self.units.iter().for_each(|unit| ring(self.table.unit(*unit).queue.as_deref(), &mut key));
        key
    }
}

fn ring(queue: Option<&Queue>, key: &mut Vec<u8>) {
    key.push(255);
    let ring = queue.map(Queue::ring).unwrap_or_default();
    key.extend(ring.into_iter().flat_map(|(root, credit)| [u8::try_from(root).unwrap(), credit]));
}
