//! The rules again, implemented as plainly as possible: one list of waiters, searched from the front.

/// A resource that can be missing: a unit or a lease, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Res {
    Unit(usize),
    Lease(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelState {
    Running,
    Parked,
    Resuming,
    Stopped,
    Zombie,
    Gone,
}

#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) width: usize,
    pub(super) in_use: usize,
    pub(super) zombies: usize,
    pub(super) paused: bool,
}

/// An entry on a lease. It keeps its index forever.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) lease: usize,
    parent: Option<usize>,
    pub(super) state: ModelState,
}

/// The units and the lease, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) units: Vec<usize>,
    pub(super) lease: Option<usize>,
}

impl Need {
    fn all(&self) -> Vec<Res> {
        self.units.iter().map(|u| Res::Unit(*u)).chain(self.lease.map(Res::Lease)).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call { root: u64, depth: u8, lineage: Option<usize> },
    Resume { entry: Option<usize> },
}

#[derive(Debug, Clone)]
pub(super) struct Waiter {
    pub(super) id: u32,
    pub(super) since: u64,
    pub(super) need: Need,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Granted(Option<usize>),
    Waiting,
    Refused,
}

/// Root sessions, each with its credit and the number of its turn.
type Ring = Vec<(u64, u8, u64)>;

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) units: Vec<Unit>,
    /// The rank and the stack of each lease.
    pub(super) leases: Vec<(u32, Vec<usize>)>,
    pub(super) serial_paused: bool,
    pub(super) entries: Vec<Entry>,
    /// In order of arrival.
    pub(super) waiting: Vec<Waiter>,
    rings: Vec<(Res, Ring)>,
    turns: u64,
    pub(super) weights: Vec<u8>,
    reserved: Option<Waiter>,
    /// The granted waiters, each with its lease entry.
    pub(super) granted: Vec<(u32, Option<usize>)>,
    pub(super) refused: Vec<u32>,
    /// Whether it only checks what is granted, in whatever order.
    pub(super) follows: bool,
}

impl Model {
    pub(super) fn new(widths: &[usize], ranks: &[u32], roots: usize) -> Self {
        let unit = |width: &usize| Unit { width: *width, in_use: 0, zombies: 0, paused: false };
        let units: Vec<_> = widths.iter().map(unit).collect();
        let all = (0..units.len()).map(Res::Unit).chain((0..ranks.len()).map(Res::Lease));
        Self {
            rings: all.map(|res| (res, Ring::new())).collect(),
            turns: 0,
            units,
            leases: ranks.iter().map(|rank| (*rank, Vec::new())).collect(),
            serial_paused: false,
            entries: Vec::new(),
            waiting: Vec::new(),
            weights: vec![1; roots],
            reserved: None,
            granted: Vec::new(),
            refused: Vec::new(),
            follows: false,
        }
    }

    fn lineage(&self, from: Option<usize>) -> Vec<usize> {
        std::iter::successors(from, |entry| self.entries[*entry].parent).collect()
    }

    fn holder(&self, lease: usize, lineage: Option<usize>) -> Option<usize> {
        self.lineage(lineage).into_iter().find(|entry| self.entries[*entry].lease == lease)
    }

    fn may_push(&self, lease: usize, lineage: Option<usize>) -> bool {
        let Some(top) = self.leases[lease].1.last() else { return true };
        let lent = matches!(self.entries[*top].state, ModelState::Parked | ModelState::Stopped);
        lent && self.holder(lease, lineage) == Some(*top)
    }

    fn may_not_wait(&self, lease: usize, lineage: Option<usize>) -> bool {
        let held: Vec<_> = self.lineage(lineage).iter().map(|entry| self.entries[*entry].lease).collect();
        let above = held.iter().all(|other| self.leases[lease].0 > self.leases[*other].0);
        held.first().is_some_and(|nearest| *nearest != lease) && !above
    }

    /// Whether two waiters share a lane.
    fn is_same_lane(&self, a: &Waiter, b: &Waiter) -> bool {
        let key = |kind| match kind {
            Kind::Call { root, depth, lineage } => {
                let on = a
                    .need
                    .lease
                    .map(|lease| (self.holder(lease, lineage), self.may_not_wait(lease, lineage)));
                (Some((root, depth, on)), None)
            }
            Kind::Resume { entry } => (None, Some(entry)),
        };
        a.need == b.need && key(a.kind) == key(b.kind)
    }

    fn is_head(&self, at: usize) -> bool {
        !self.waiting[..at].iter().any(|before| self.is_same_lane(before, &self.waiting[at]))
    }

    /// Whether a waiter could start if it were the head of its lane.
    pub(super) fn can_start(&self, waiter: &Waiter) -> bool {
        match waiter.kind {
            Kind::Resume { entry } => {
                let is_top = |e: usize| self.leases[self.entries[e].lease].1.last() == Some(&e);
                let has_room = |unit: &usize| self.units[*unit].in_use < self.units[*unit].width;
                entry.is_none_or(is_top) && waiter.need.units.iter().all(has_room)
            }
            Kind::Call { lineage, .. } => {
                let held = self.reserved.as_ref().filter(|reserved| reserved.id != waiter.id);
                let is_free = |at: &usize| {
                    let unit = &self.units[*at];
                    let back = held.is_some_and(|held| held.need.units.contains(at));
                    !unit.paused && unit.width.saturating_sub(unit.in_use) > usize::from(back)
                };
                let may_push = |lease| {
                    let back = held.is_some_and(|held| held.need.lease == Some(lease));
                    !self.serial_paused && !back && self.may_push(lease, lineage)
                };
                waiter.need.units.iter().all(is_free) && waiter.need.lease.is_none_or(may_push)
            }
        }
    }

    /// A waiter that could start and is still waiting.
    pub(super) fn left_behind(&self) -> Option<&Waiter> {
        (0..self.waiting.len())
            .find(|at| self.can_start(&self.waiting[*at]) && self.is_head(*at))
            .map(|at| &self.waiting[at])
    }

    /// `owed`: those who may be next have yet to be looked at.
    pub(super) fn admit(&mut self, waiter: Waiter, owed: bool) -> Asked {
        let Kind::Call { lineage, .. } = waiter.kind else { unreachable!("calls ask") };
        if let Some(lease) = waiter.need.lease
            && self.may_not_wait(lease, lineage)
            && !self.may_push(lease, lineage)
        {
            return Asked::Refused;
        }
        self.age(waiter.since);
        let lane_waits = self.waiting.iter().any(|other| self.is_same_lane(other, &waiter));
        if !lane_waits && !owed && self.can_start(&waiter) {
            return Asked::Granted(self.take(&waiter));
        }
        self.enqueue(waiter);
        Asked::Waiting
    }

    fn enqueue(&mut self, waiter: Waiter) {
        if let Kind::Call { root, .. } = waiter.kind {
            let weight = self.weights[usize::try_from(root).unwrap()];
            self.turns += 1;
            for (_, ring) in self.rings.iter_mut().filter(|(res, _)| waiter.need.all().contains(res)) {
                if ring.iter().all(|(other, ..)| *other != root) {
                    ring.push((root, weight, self.turns));
                }
            }
        }
        self.waiting.push(waiter);
    }

    fn take(&mut self, waiter: &Waiter) -> Option<usize> {
        waiter.need.units.iter().for_each(|unit| self.units[*unit].in_use += 1);
        assert!(waiter.need.units.iter().all(|at| self.units[*at].in_use <= self.units[*at].width), "I3");
        match waiter.kind {
            Kind::Resume { entry } => entry.inspect(|entry| self.entries[*entry].state = ModelState::Running),
            Kind::Call { lineage, .. } => waiter.need.lease.map(|lease| {
                let entry = self.entries.len();
                self.entries.push(Entry { lease, parent: lineage, state: ModelState::Running });
                self.leases[lease].1.push(entry);
                entry
            }),
        }
    }

    fn leave(&mut self, at: usize) -> Waiter {
        let waiter = self.waiting.remove(at);
        let root_of = |kind| if let Kind::Call { root, .. } = kind { Some(root) } else { None };
        for (res, ring) in &mut self.rings {
            let here = |root| {
                let of_root = self.waiting.iter().filter(|other| root_of(other.kind) == Some(root));
                of_root.into_iter().any(|other| other.need.all().contains(res))
            };
            ring.retain(|(root, ..)| here(*root));
        }
        waiter
    }

    fn grant(&mut self, at: usize) {
        let waiter = self.leave(at);
        if self.reserved.as_ref().is_some_and(|reserved| reserved.id == waiter.id) {
            self.reserved = None;
        }
        if let Kind::Call { root, .. } = waiter.kind {
            let weight = self.weights[usize::try_from(root).unwrap()];
            self.turns += 1;
            for (_, ring) in self.rings.iter_mut().filter(|(res, _)| waiter.need.all().contains(res)) {
                let Some(at) = ring.iter().position(|(other, ..)| *other == root) else { continue };
                ring[at].1 -= 1;
                if ring[at].1 == 0 && ring.len() == 1 {
                    ring[at].1 = weight;
                } else if ring[at].1 == 0 {
                    ring.remove(at);
                    ring.push((root, weight, self.turns));
                }
            }
        }
        let entry = self.take(&waiter);
        self.granted.push((waiter.id, entry));
    }

    /// Gives the reservation to the first waiter that qualifies; returns what a previous holder loses, which is
    /// freed.
    fn age(&mut self, now: u64) -> Vec<Res> {
        let eligible = |waiter: &&Waiter| match waiter.kind {
            Kind::Resume { .. } => false,
            Kind::Call { lineage, .. } => {
                let serial = |lease| !self.serial_paused && self.may_push(lease, lineage);
                let paused = waiter.need.lease.is_none() && self.units[waiter.need.units[0]].paused;
                waiter.need.lease.is_none_or(serial) && !paused
            }
        };
        let first = self.waiting.iter().find(eligible).filter(|first| now - first.since > 2_000_000).cloned();
        let before = std::mem::replace(&mut self.reserved, first);
        let lost = before.filter(|before| self.reserved.as_ref().is_none_or(|now| now.id != before.id));
        lost.map(|lost| lost.need.all()).unwrap_or_default()
    }

    fn refuse(&mut self) {
        let nested = |model: &Self, waiter: &Waiter| match (waiter.kind, waiter.need.lease) {
            (Kind::Call { lineage, .. }, Some(lease)) => {
                model.may_not_wait(lease, lineage) && !model.may_push(lease, lineage)
            }
            _ => false,
        };
        while let Some(at) = (0..self.waiting.len()).find(|at| nested(self, &self.waiting[*at])) {
            let waiter = self.leave(at);
            self.refused.push(waiter.id);
        }
    }

    pub(super) fn settle(&mut self, mut freed: Vec<Res>, now: u64) {
        loop {
            self.refuse();
            let is_resume = |waiter: &Waiter| matches!(waiter.kind, Kind::Resume { .. });
            let able = |at: &usize| self.can_start(&self.waiting[*at]);
            let mut resumes = (0..self.waiting.len()).filter(|at| is_resume(&self.waiting[*at]));
            if !self.follows
                && let Some(at) = resumes.find(able)
            {
                self.grant(at);
                continue;
            }
            freed.extend(self.age(now));
            if self.follows {
                return;
            }
            let reserved = self.reserved.as_ref().map(|reserved| reserved.id);
            let aged = (0..self.waiting.len()).find(|at| Some(self.waiting[*at].id) == reserved);
            match aged.filter(|at| self.can_start(&self.waiting[*at])).or_else(|| self.next_of(&mut freed)) {
                Some(at) => self.grant(at),
                None => return,
            }
        }
    }

    /// Grants a waiter that is the head of its lane and can start.
    pub(super) fn follow(&mut self, id: u32, now: u64) {
        let at = self.waiting.iter().position(|waiter| waiter.id == id).unwrap();
        assert!(self.can_start(&self.waiting[at]) && self.is_head(at), "{id} was granted and cannot start");
        self.grant(at);
        self.refuse();
        self.age(now);
    }

    /// The next call: of the session whose turn it is at the first usable resource, the deepest call whose turn it is
    /// at any freed resource. Another session's call goes before it if they share a resource and its turn was
    /// earlier.
    fn next_of(&self, freed: &mut Vec<Res>) -> Option<usize> {
        let call = |at: usize| match self.waiting[at].kind {
            Kind::Call { root, depth, .. } => (root, depth),
            Kind::Resume { .. } => unreachable!("those that could go have gone"),
        };
        let mut at = loop {
            match self.next_for(*freed.first()?) {
                Some(first) => break first,
                None => drop(freed.remove(0)),
            }
        };
        let root = call(at).0;
        let turns = freed.iter().filter_map(|res| self.next_for(*res));
        let own = turns.filter(|other| call(*other).0 == root).chain([at]);
        at = own.min_by_key(|at| (std::cmp::Reverse(call(*at).1), *at))?;
        loop {
            let root = call(at).0;
            let here = self.turn(root, &self.waiting[at].need);
            let others = (0..self.waiting.len())
                .filter(|other| self.can_start(&self.waiting[*other]) && self.is_head(*other));
            let shares = |other: &usize| {
                let mut needs = self.waiting[*other].need.all().into_iter();
                call(*other).0 != root && needs.any(|res| self.waiting[at].need.all().contains(&res))
            };
            let turn = |other: usize| self.turn(call(other).0, &self.waiting[other].need);
            let first = others
                .filter(shares)
                .map(|other| (turn(other), std::cmp::Reverse(call(other).1), other))
                .min();
            match first.filter(|(turn, ..)| *turn < here) {
                Some((.., other)) => at = other,
                None => return Some(at),
            }
        }
    }

    /// The latest of a session's turns at the resources that a call takes.
    fn turn(&self, root: u64, need: &Need) -> u64 {
        let here = self.rings.iter().filter(|(res, _)| need.all().contains(res));
        here.flat_map(|(_, ring)| ring)
            .filter(|(other, ..)| *other == root)
            .map(|(.., turn)| *turn)
            .max()
            .unwrap()
    }

    fn next_for(&self, res: Res) -> Option<usize> {
        let (_, ring) = self.rings.iter().find(|(other, _)| *other == res)?;
        let heads =
            (0..self.waiting.len()).filter(|at| self.can_start(&self.waiting[*at]) && self.is_head(*at));
        let here = heads.filter(|at| self.waiting[*at].need.all().contains(&res));
        let order = |at: &usize| match self.waiting[*at].kind {
            Kind::Call { root, depth, .. } => {
                (ring.iter().position(|(other, ..)| *other == root), std::cmp::Reverse(depth), *at)
            }
            Kind::Resume { .. } => unreachable!("those that could go have gone"),
        };
        here.min_by_key(order)
    }

    /// Releases units, and sets the entry's state or removes the entry.
    pub(super) fn change(&mut self, units: &[usize], entry: Option<usize>, state: ModelState, now: u64) {
        units.iter().for_each(|unit| self.units[*unit].in_use -= 1);
        let mut freed: Vec<_> = units.iter().map(|unit| Res::Unit(*unit)).collect();
        if let Some(entry) = entry {
            let lease = self.entries[entry].lease;
            self.entries[entry].state = state;
            if state == ModelState::Gone {
                self.leases[lease].1.retain(|other| *other != entry);
            }
            freed.push(Res::Lease(lease));
        }
        self.settle(freed, now);
    }

    /// `true`: resumes at once.
    pub(super) fn resume(&mut self, waiter: Waiter, owed: bool) -> bool {
        let Kind::Resume { entry } = waiter.kind else { unreachable!("handlers resume") };
        let now = waiter.since;
        let goes = !owed && self.can_start(&waiter);
        if goes {
            self.take(&waiter);
        } else {
            entry.into_iter().for_each(|entry| self.entries[entry].state = ModelState::Resuming);
            self.enqueue(waiter);
        }
        self.settle(entry.map(|entry| Res::Lease(self.entries[entry].lease)).into_iter().collect(), now);
        goes
    }

    pub(super) fn cancel(&mut self, id: u32, now: u64) {
        let at = self.waiting.iter().position(|waiter| waiter.id == id).unwrap();
        if let Kind::Resume { entry: Some(entry) } = self.leave(at).kind {
            return self.change(&[], Some(entry), ModelState::Parked, now);
        }
        self.settle(Vec::new(), now);
    }

    pub(super) fn is_behind_zombies(&self, id: u32) -> bool {
        let waiter = self.waiting.iter().find(|waiter| waiter.id == id).unwrap();
        let units = || waiter.need.units.iter().map(|unit| &self.units[*unit]);
        let dead = |unit: &Unit| unit.zombies >= unit.width;
        let stack_dead = |lease: usize, above: Option<usize>| {
            let stack = &self.leases[lease].1;
            let from = above.map_or(0, |above| stack.iter().position(|e| *e == above).unwrap() + 1);
            !stack[from..].is_empty()
                && stack[from..].iter().all(|e| self.entries[*e].state == ModelState::Zombie)
        };
        match waiter.kind {
            Kind::Resume { entry } => {
                entry.is_some_and(|entry| stack_dead(self.entries[entry].lease, Some(entry)))
                    || units().any(dead)
            }
            Kind::Call { lineage, .. } => {
                let full = |unit: &&Unit| unit.paused || unit.in_use >= unit.width;
                let lease = waiter.need.lease.filter(|lease| !self.may_push(*lease, lineage));
                (units().any(|unit| full(&unit)) || lease.is_some())
                    && units().filter(full).all(|unit| !unit.paused && dead(unit))
                    && lease.is_none_or(|lease| stack_dead(lease, self.holder(lease, lineage)))
            }
        }
    }
}
