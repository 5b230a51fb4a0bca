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
//! one with a single call take turns. After every change no head is left that could go; hence a newcomer
//! whose lane is empty and whose units are free passes nobody who could have gone instead.

use crate::pool::PoolLoad;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;
use toolyard_core::ToolClass;

/// A counting semaphore of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UnitId(u32);

/// What a unit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The width of a pool, or the serial lease.
    Class(ToolClass),
    /// Calls of one tool in one agent.
    Tool,
    /// Calls of one session.
    Session,
}

/// The units a call needs, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Need {
    units: [Option<UnitId>; Need::UNITS_MAX],
}

impl Need {
    /// Tool limit, class, session cap.
    const UNITS_MAX: usize = 3;

    /// The units given; what is `None` is not bounded.
    pub(crate) fn of(class: UnitId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [Some(class), tool, session] }
    }

    fn iter(self) -> impl Iterator<Item = UnitId> {
        self.units.into_iter().flatten()
    }

    /// Those units that `keep` names, and the rest.
    pub(super) fn split(self, keep: impl Fn(UnitId) -> bool) -> (Self, Self) {
        let (mut kept, mut rest) = (Self::default(), Self::default());
        for (at, unit) in self.units.into_iter().enumerate() {
            let side = if unit.is_some_and(&keep) { &mut kept } else { &mut rest };
            side.units[at] = unit;
        }
        (kept, rest)
    }
}

/// A place in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    lane: u32,
    number: u64,
}

#[derive(Debug)]
struct Unit {
    kind: UnitKind,
    width: usize,
    in_use: usize,
    paused: bool,
    /// Lanes with a waiter that needs this unit.
    lanes: Vec<u32>,
}

impl Unit {
    fn is_free(&self) -> bool {
        !self.paused && self.in_use < self.width
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LaneKey {
    session: u64,
    need: Need,
}

#[derive(Debug)]
struct Lane<W> {
    key: LaneKey,
    /// Waiters in order of their numbers; a waiter that left is `None` until it reaches an end.
    waiters: VecDeque<(u64, Option<W>)>,
    /// When this lane was served last, in grants of the whole table.
    served_at: u64,
}

impl<W> Lane<W> {
    /// Drops waiters that left from both ends, so that head and emptiness are what they seem.
    fn trim(&mut self) {
        while self.waiters.front().is_some_and(|(_, waiter)| waiter.is_none()) {
            self.waiters.pop_front();
        }
        while self.waiters.back().is_some_and(|(_, waiter)| waiter.is_none()) {
            self.waiters.pop_back();
        }
    }
}

/// The table. `W` is whatever stands for a waiting call.
#[derive(Debug)]
pub(super) struct Table<W> {
    units: Vec<Option<Unit>>,
    free_units: Vec<u32>,
    lanes: Vec<Option<Lane<W>>>,
    free_lanes: Vec<u32>,
    lane_of: HashMap<LaneKey, u32>,
    waiting: usize,
    waiting_by_session: HashMap<u64, usize>,
    queue_max: usize,
    queue_session_max: usize,
    tickets: u64,
    grants: u64,
    granted: Vec<(W, Need)>,
}

impl<W> Table<W> {
    pub(super) fn new(queue_max: usize, queue_session_max: usize) -> Self {
        Self {
            units: Vec::new(),
            free_units: Vec::new(),
            lanes: Vec::new(),
            free_lanes: Vec::new(),
            lane_of: HashMap::new(),
            waiting: 0,
            waiting_by_session: HashMap::new(),
            queue_max,
            queue_session_max,
            tickets: 0,
            grants: 0,
            granted: Vec::new(),
        }
    }

    pub(super) fn open_unit(&mut self, kind: UnitKind, width: usize, paused: bool) -> UnitId {
        let unit = Some(Unit { kind, width, in_use: 0, paused, lanes: Vec::new() });
        match self.free_units.pop() {
            Some(at) => {
                self.units[at as usize] = unit;
                UnitId(at)
            }
            None => {
                self.units.push(unit);
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
        let lane_waits = self.waiting > 0 && self.lane_of.contains_key(&LaneKey { session, need });
        if lane_waits || !self.is_free(need) {
            return false;
        }
        self.take(need);
        true
    }

    /// A place at the end of the lane, or the bound that forbids it, with the waiter given back.
    pub(super) fn enqueue(&mut self, session: u64, need: Need, waiter: W) -> Result<Ticket, (usize, W)> {
        let in_session = self.waiting_by_session.entry(session).or_default();
        if *in_session >= self.queue_session_max {
            return Err((self.queue_session_max, waiter));
        }
        if self.waiting >= self.queue_max {
            return Err((self.queue_max, waiter));
        }
        *in_session += 1;
        self.waiting += 1;
        self.tickets += 1;
        let (lane, number) = (self.lane(LaneKey { session, need }), self.tickets);
        let waiters = &mut self.lanes[lane as usize].as_mut().expect("the lane was just found").waiters;
        waiters.push_back((number, Some(waiter)));
        Ok(Ticket { lane, number })
    }

    /// The lane of this key, opened if it is not.
    fn lane(&mut self, key: LaneKey) -> u32 {
        if let Some(lane) = self.lane_of.get(&key) {
            return *lane;
        }
        let lane = Some(Lane { key, waiters: VecDeque::new(), served_at: 0 });
        let at = match self.free_lanes.pop() {
            Some(at) => {
                self.lanes[at as usize] = lane;
                at
            }
            None => {
                self.lanes.push(lane);
                u32::try_from(self.lanes.len() - 1).expect("fewer than 2^32 lanes are open")
            }
        };
        self.lane_of.insert(key, at);
        key.need.iter().for_each(|unit| self.unit(unit).lanes.push(at));
        at
    }

    /// Takes a waiter out of its lane; `None` when it is no longer there.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<W> {
        let lane = self.lanes.get_mut(ticket.lane as usize)?.as_mut()?;
        let at = lane.waiters.binary_search_by_key(&ticket.number, |(number, _)| *number).ok()?;
        let waiter = lane.waiters[at].1.take()?;
        lane.trim();
        self.left(ticket.lane);
        Some(waiter)
    }

    /// Counts one waiter less in a lane, and closes the lane when it was the last.
    fn left(&mut self, at: u32) {
        let lane = self.lanes[at as usize].as_ref().expect("a waiter leaves an open lane");
        let (key, is_empty) = (lane.key, lane.waiters.is_empty());
        self.waiting -= 1;
        let in_session = self.waiting_by_session.get_mut(&key.session).expect("its session has a waiter");
        *in_session -= 1;
        if *in_session == 0 {
            self.waiting_by_session.remove(&key.session);
        }
        if is_empty {
            self.lanes[at as usize] = None;
            self.free_lanes.push(at);
            self.lane_of.remove(&key);
            key.need.iter().for_each(|unit| self.unit(unit).lanes.retain(|lane| *lane != at));
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

    /// Grants heads of the lanes that need this unit until none of them can go.
    fn serve(&mut self, unit: UnitId) {
        while self.unit(unit).is_free() {
            let Some(lane) = self.next_lane(unit) else { return };
            let open = self.lanes[lane as usize].as_mut().expect("a unit lists open lanes only");
            let (_, waiter) = open.waiters.pop_front().expect("an open lane has a head");
            open.trim();
            open.served_at = self.grants + 1;
            let need = open.key.need;
            self.left(lane);
            self.take(need);
            self.granted.push((waiter.expect("a head has not left"), need));
        }
    }

    /// Of the lanes that need this unit and whose head can go, the one served longest ago; then the one
    /// whose head came first.
    fn next_lane(&self, UnitId(at): UnitId) -> Option<u32> {
        let lanes = &self.units[at as usize].as_ref()?.lanes;
        let grantable = lanes.iter().copied().filter_map(|at| {
            let lane = self.lanes[at as usize].as_ref()?;
            self.is_free(lane.key.need).then_some((lane.served_at, lane.waiters.front()?.0, at))
        });
        grantable.min().map(|(_, _, at)| at)
    }

    /// Who was granted since this was asked last.
    pub(super) fn take_granted(&mut self) -> Vec<(W, Need)> {
        std::mem::take(&mut self.granted)
    }

    pub(super) fn resize_class(&mut self, class: ToolClass, width: usize) {
        self.change_class(class, |unit| unit.width = width);
    }

    pub(super) fn pause_class(&mut self, class: ToolClass, paused: bool) {
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
            let lanes = unit.lanes.iter().filter_map(|at| self.lanes[*at as usize].as_ref());
            queued += lanes.map(|lane| lane.waiters.iter().flat_map(|(_, w)| w).count()).sum::<usize>();
        }
        PoolLoad { running, queued }
    }
}

#[cfg(test)]
mod tests;
