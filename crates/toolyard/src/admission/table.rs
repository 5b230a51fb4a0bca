//! The pure table of units and lanes: grants all of a need or nothing.
//!
//! ```text
//!   units    read 20/20 used     serial(tree 1) 1/1     session(7) 3/8     tool(7, "search") 1/1
//!   lanes    {session 7: read}          call, call, call        first in, first out
//!            {session 9: read}          call
//!            {session 7: search, read}  call
//! ```
//!
//! A *lane* is one session's calls with the same need. A head that cannot go blocks its own lane only. Of the
//! heads that can, the lane that was served longest ago goes first, so a session with a thousand calls and
//! one with a single call take turns. Each unit keeps its lanes in that order: a release looks at the first
//! that can go, past those only that wait for something else besides. After every change no head is left that
//! could go; hence a newcomer whose lane is empty and whose units are free passes nobody who could have gone
//! instead.

mod lanes;
mod units;

pub(crate) use units::{Need, UnitId, UnitKind};

use crate::pool::PoolLoad;
use foldhash::{HashMap, HashMapExt};
use lanes::{LaneKey, Lanes, Turn};
use toolyard_core::ToolClass;
use units::Unit;

/// A place in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    lane: u32,
    number: u64,
}

/// What every unit of a class has in common, those still to be opened included.
#[derive(Debug, Clone, Copy)]
struct ClassRule {
    width: usize,
    paused: bool,
}

/// The table. `W` is whatever stands for a waiting call.
#[derive(Debug)]
pub(super) struct Table<W> {
    classes: [ClassRule; ToolClass::ALL.len()],
    units: Vec<Option<Unit>>,
    free_units: Vec<u32>,
    lanes: Lanes<W>,
    waiting: usize,
    waiting_by_session: HashMap<u64, usize>,
    queue_max: usize,
    queue_session_max: usize,
    tickets: u64,
    grants: u64,
    granted: Vec<(W, Need)>,
}

impl<W> Table<W> {
    /// `widths` are in the order of [`ToolClass::index`].
    pub(super) fn new(
        widths: [usize; ToolClass::ALL.len()],
        queue_max: usize,
        queue_session_max: usize,
    ) -> Self {
        Self {
            classes: widths.map(|width| ClassRule { width, paused: false }),
            units: Vec::new(),
            free_units: Vec::new(),
            lanes: Lanes::new(),
            waiting: 0,
            waiting_by_session: HashMap::new(),
            queue_max,
            queue_session_max,
            tickets: 0,
            grants: 0,
            granted: Vec::new(),
        }
    }

    /// A unit as wide as its class is now, and paused if its class is.
    pub(super) fn open_class(&mut self, class: ToolClass) -> UnitId {
        let ClassRule { width, paused } = self.classes[class.index()];
        self.open(Unit::new(UnitKind::Class(class), width, paused))
    }

    /// A unit for the calls of one tool in one agent.
    pub(super) fn open_tool(&mut self, width: usize) -> UnitId {
        self.open(Unit::new(UnitKind::Tool, width, false))
    }

    /// A unit for the calls of one session.
    pub(super) fn open_session(&mut self, width: usize) -> UnitId {
        self.open(Unit::new(UnitKind::Session, width, false))
    }

    fn open(&mut self, unit: Unit) -> UnitId {
        match self.free_units.pop() {
            Some(at) => {
                self.units[at as usize] = Some(unit);
                UnitId(at)
            }
            None => {
                self.units.push(Some(unit));
                UnitId(u32::try_from(self.units.len() - 1).expect("fewer than 2^32 units are open"))
            }
        }
    }

    pub(super) fn close_unit(&mut self, UnitId(at): UnitId) {
        let unit = self.units[at as usize].take();
        debug_assert!(unit.is_some_and(|unit| unit.in_use == 0 && unit.lanes.is_empty()), "unit in use");
        self.free_units.push(at);
    }

    pub(super) fn kind(&self, UnitId(at): UnitId) -> Option<UnitKind> {
        self.units[at as usize].as_ref().map(|unit| unit.kind)
    }

    fn unit(&mut self, UnitId(at): UnitId) -> &mut Unit {
        self.units[at as usize].as_mut().expect("a need names open units only")
    }

    fn is_free(&self, need: Need) -> bool {
        need.iter().all(|UnitId(at)| self.units[at as usize].as_ref().is_some_and(Unit::is_free))
    }

    fn take(&mut self, need: Need) {
        need.iter().for_each(|unit| self.unit(unit).in_use += 1);
        self.grants += 1;
    }

    /// Takes all of `need` if it is free and nobody in the same lane waits.
    pub(super) fn try_grant(&mut self, session: u64, need: Need) -> bool {
        let lane_waits = self.waiting > 0 && self.lanes.find(LaneKey { session, need }).is_some();
        if lane_waits || !self.is_free(need) {
            return false;
        }
        self.take(need);
        true
    }

    /// A place at the end of the lane, or the bound that forbids it, with the waiter given back.
    pub(super) fn enqueue(&mut self, session: u64, need: Need, waiter: W) -> Result<Ticket, (usize, W)> {
        if let Some(queue_max) = self.bound_met(session) {
            return Err((queue_max, waiter));
        }
        *self.waiting_by_session.entry(session).or_default() += 1;
        self.waiting += 1;
        self.tickets += 1;
        need.iter().for_each(|unit| self.unit(unit).queued += 1);
        let (key, number) = (LaneKey { session, need }, self.tickets);
        let (lane, is_new) = match self.lanes.find(key) {
            Some(lane) => (lane, false),
            None => (self.lanes.open(key, self.grants), true),
        };
        let open = self.lanes.get(lane).expect("the lane was just found");
        open.push(number, waiter);
        if is_new {
            let turn = open.turn(lane);
            self.list(need, None, turn);
        }
        Ok(Ticket { lane, number })
    }

    /// The bound that forbids one more waiter of this session (CC-4).
    fn bound_met(&self, session: u64) -> Option<usize> {
        let in_session = self.waiting_by_session.get(&session).copied().unwrap_or(0);
        if in_session >= self.queue_session_max {
            return Some(self.queue_session_max);
        }
        (self.waiting >= self.queue_max).then_some(self.queue_max)
    }

    /// Puts a lane at its place in the units it needs.
    fn list(&mut self, need: Need, before: Option<Turn>, now: Option<Turn>) {
        for unit in need.iter() {
            let lanes = &mut self.unit(unit).lanes;
            if let Some(before) = before {
                let was_listed = lanes.remove(&before);
                debug_assert!(was_listed, "a unit lists its lanes as they are");
            }
            lanes.extend(now);
        }
    }

    /// Takes a waiter out of its lane; `None` when it is no longer there.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<W> {
        let lane = self.lanes.get(ticket.lane)?;
        let before = lane.turn(ticket.lane);
        let waiter = lane.cancel(ticket.number)?;
        self.left(ticket.lane, before);
        Some(waiter)
    }

    /// Counts one waiter less in a lane, and closes the lane when it was the last.
    fn left(&mut self, at: u32, before: Option<Turn>) {
        let lane = self.lanes.get(at).expect("a waiter leaves an open lane");
        let (key, now) = (lane.key, lane.turn(at));
        self.waiting -= 1;
        let in_session = self.waiting_by_session.get_mut(&key.session).expect("its session has a waiter");
        *in_session -= 1;
        if *in_session == 0 {
            self.waiting_by_session.remove(&key.session);
        }
        key.need.iter().for_each(|unit| self.unit(unit).queued -= 1);
        if now != before {
            self.list(key.need, before, now);
        }
        if now.is_none() {
            self.lanes.close(at);
        }
    }

    /// Gives back all of `need` and grants whoever can go now; see [`Table::take_granted`].
    pub(super) fn release(&mut self, need: Need) {
        for unit in need.iter() {
            let unit = self.unit(unit);
            debug_assert!(unit.in_use > 0, "more is given back than was taken");
            unit.in_use -= 1;
        }
        if self.waiting > 0 {
            need.iter().for_each(|unit| self.serve(unit));
        }
    }

    /// What is held of `need` is held by a handler that was given up.
    pub(super) fn mark_zombie(&mut self, need: Need) {
        need.iter().for_each(|unit| self.unit(unit).zombies += 1);
    }

    /// A handler that was given up has stopped: as [`Table::release`].
    pub(super) fn release_zombie(&mut self, need: Need) {
        need.iter().for_each(|unit| self.unit(unit).zombies -= 1);
        self.release(need);
    }

    /// Whether all that is missing of `need` is held by handlers that were given up (V3).
    pub(super) fn is_behind_zombies(&self, need: Need) -> bool {
        let units = need.iter().filter_map(|UnitId(at)| self.units[at as usize].as_ref());
        let mut missing = units.filter(|unit| !unit.is_free()).peekable();
        missing.peek().is_some() && missing.all(Unit::is_held_by_zombies)
    }

    /// The number of the last ticket.
    pub(super) fn last_ticket(&self) -> u64 {
        self.tickets
    }

    /// Grants heads of the lanes that need this unit until none of them can go.
    fn serve(&mut self, unit: UnitId) {
        while self.unit(unit).is_free() {
            let Some(turn) = self.next_turn(unit) else { return };
            let lane = self.lanes.get(turn.lane).expect("a unit lists open lanes only");
            let (waiter, need) = (lane.serve(self.grants + 1), lane.key.need);
            self.left(turn.lane, Some(turn));
            self.take(need);
            self.granted.push((waiter, need));
        }
    }

    /// Of the lanes that need this unit, the first whose head can go.
    fn next_turn(&self, UnitId(at): UnitId) -> Option<Turn> {
        let lanes = &self.units[at as usize].as_ref()?.lanes;
        lanes.iter().copied().find(|turn| self.lanes.need(turn.lane).is_some_and(|need| self.is_free(need)))
    }

    /// Who was granted since this was asked last.
    pub(super) fn take_granted(&mut self) -> Vec<(W, Need)> {
        std::mem::take(&mut self.granted)
    }

    /// Sets the width of one unit.
    pub(super) fn resize_unit(&mut self, unit: UnitId, width: usize) {
        self.unit(unit).width = width;
        self.serve(unit);
    }

    pub(super) fn resize_class(&mut self, class: ToolClass, width: usize) {
        self.classes[class.index()].width = width;
        self.change_class(class, |unit| unit.width = width);
    }

    pub(super) fn pause_class(&mut self, class: ToolClass, paused: bool) {
        self.classes[class.index()].paused = paused;
        self.change_class(class, |unit| unit.paused = paused);
    }

    fn change_class(&mut self, class: ToolClass, change: impl Fn(&mut Unit)) {
        let of_class = |unit: &Unit| unit.kind == UnitKind::Class(class);
        for at in 0..self.units.len() {
            let Some(unit) = self.units[at].as_mut().filter(|unit| of_class(unit)) else {
                continue;
            };
            change(unit);
            self.serve(UnitId(u32::try_from(at).expect("units are counted in u32")));
        }
    }

    pub(super) fn load(&self, class: ToolClass) -> PoolLoad {
        let units = self.units.iter().flatten().filter(|unit| unit.kind == UnitKind::Class(class));
        let (mut running, mut queued) = (0, 0);
        for unit in units {
            running += unit.in_use;
            queued += unit.queued;
        }
        PoolLoad { running, queued }
    }
}

impl<W: Clone> Table<W> {
    /// Who has waited since that ticket or before, for nothing but what handlers hold that were given up.
    pub(super) fn behind_zombies(&self, ticket: u64) -> Vec<W> {
        let lanes = self.lanes.iter().filter(|lane| self.is_behind_zombies(lane.key.need));
        lanes.flat_map(|lane| lane.until(ticket)).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
