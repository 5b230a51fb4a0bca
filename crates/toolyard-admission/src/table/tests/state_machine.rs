//! The table compared with the [`Model`], step by step.

mod steps;

use super::model::{self, Kind, Model, ModelState, Res, Waiter};
use super::*;
use proptest::prelude::*;
use steps::{OWN, RANKS, ROOTS, SHARED, Step, UNITS, Widths, is_concurrent, is_kept, own, step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting(Ticket),
    Running,
    Parked,
    Resuming(Ticket),
    Stopped,
    Zombie,
    Quiet,
}

/// A call as the test knows it, with its entry in the table and that in the model.
#[derive(Debug, Clone)]
struct Call {
    root: u64,
    depth: u8,
    parent: Option<usize>,
    need: (Need, model::Need),
    phase: Phase,
    entry: Option<(EntryId, usize)>,
}

struct Pair {
    table: Table<u32>,
    model: Model,
    units: Vec<UnitId>,
    leases: Vec<LeaseId>,
    calls: Vec<Call>,
    now: u64,
    /// Whether other changes come between two slices.
    slices_between: bool,
}

impl Pair {
    fn new(widths: Widths) -> Self {
        let mut table = Table::new([widths[0], 1, widths[SHARED]], 10_000, 10_000);
        let mut units = vec![
            table.open_class(ToolClass::Read),
            table.open(UnitKind::Tool(Reach::Engine), widths[1]),
            table.open(UnitKind::Threads, widths[2]),
        ];
        for _ in 0..ROOTS {
            units.push(table.open_class(ToolClass::Concurrent));
            units.push(table.open(UnitKind::Session, widths[SHARED + 1]));
            units.push(table.open(UnitKind::Tree, widths[SHARED + 2]));
            units.push(table.open(UnitKind::Tool(Reach::Agent), widths[SHARED + 3]));
        }
        let all: Vec<_> = (0..UNITS)
            .map(|unit| if unit < SHARED { widths[unit] } else { widths[SHARED + (unit - SHARED) % OWN] })
            .collect();
        let scopes =
            [Scope::Tree, Scope::Tree, Scope::Tree, Scope::Named("a".into()), Scope::Named("b".into())];
        let leases = scopes.map(|scope| table.open_lease(scope)).to_vec();
        let model = Model::new(&all, &RANKS, 3);
        Self { table, model, units, leases, calls: Vec::new(), now: 0, slices_between: false }
    }

    fn clock(&self) -> impl Fn() -> Moment + use<> {
        let now = Moment(self.now);
        move || now
    }

    fn need(&self, root: u64, kind: usize) -> (Need, model::Need) {
        let (class, tool, session, in_tree) =
            (kind % 5, kind / 5 % 3, kind / 15 % 2 == 1, kind / 30 % 2 == 1);
        let threads = (kind / 60 == 1).then_some(2);
        let tree = usize::try_from(root).unwrap();
        let own = own(tree);
        let class_unit = [Some(0), Some(own), None, None, None][class];
        let lease = [None, None, Some(tree), Some(3), Some(4)][class];
        let tool = [None, Some(1), Some(own + 3)][tool];
        let (session, in_tree) = (session.then_some(own + 1), in_tree.then_some(own + 2));
        let units = [class_unit, tool, session, in_tree, threads].into_iter().flatten().collect();
        let id = |unit: usize| self.units[unit];
        let need = match (class_unit, lease) {
            (Some(class), _) => Need::of(id(class), tool.map(id), session.map(id)),
            (None, lease) => Need::serial(self.leases[lease.unwrap()], tool.map(id), session.map(id)),
        };
        let need = in_tree.map(id).map_or(need, |tree| need.in_tree(tree));
        (threads.map(id).map_or(need, |threads| need.on_thread(threads)), model::Need { units, lease })
    }

    /// The call that `number` chooses among those in the matching phases.
    fn choose(&self, number: usize, is: impl Fn(&Phase) -> bool) -> Option<usize> {
        let of: Vec<_> = (0..self.calls.len()).filter(|at| is(&self.calls[*at].phase)).collect();
        (!of.is_empty()).then(|| of[number % of.len()])
    }

    fn has_open_children(&self, of: usize) -> bool {
        self.calls.iter().any(|call| call.parent == Some(of) && call.phase != Phase::Quiet)
    }

    /// The nearest ancestor with an entry on any lease.
    fn lineage(&self, mut parent: Option<usize>) -> Option<(EntryId, usize)> {
        while let Some(at) = parent {
            if self.calls[at].entry.is_some() {
                return self.calls[at].entry;
            }
            parent = self.calls[at].parent;
        }
        None
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Ask { root, parent, nested, need, calls } => {
                (0..calls).for_each(|_| self.ask(root, (nested, parent), need));
            }
            Step::Park(at) => self.each(at, |phase| *phase == Phase::Running, Self::park),
            Step::Resume(at) => self.each(at, |phase| *phase == Phase::Parked, Self::resume),
            Step::End(at) => self.each(at, |phase| *phase == Phase::Running, Self::end),
            Step::Abandon(at) => self.each(at, |phase| *phase == Phase::Parked, Self::abandon),
            Step::GiveUp(at) => self.each(at, |phase| *phase == Phase::Running, Self::give_up),
            Step::ZombieEnds(at) => self.each(at, |phase| *phase == Phase::Zombie, Self::zombie_ends),
            Step::Cancel(at) => {
                self.each(at, |p| matches!(p, Phase::Waiting(_) | Phase::Resuming(_)), Self::cancel);
            }
            Step::Time(millis) => self.now += millis * 1000,
            Step::Weight { root, weight } => {
                self.table.set_weight(root, weight);
                self.model.weights[usize::try_from(root).unwrap()] = weight;
            }
            Step::Resize { unit, width } => {
                self.table.resize_unit(self.units[unit], width, self.clock());
                self.model.units[unit].width = width;
                self.model.settle(vec![Res::Unit(unit)], self.now);
            }
            Step::Slice => {
                let owes = !self.table.backlog.is_empty();
                self.table.settle_slice(self.clock());
                if owes {
                    self.model.settle(Vec::new(), self.now); // the table has looked at the time too
                }
            }
            Step::ResizeAll(width) => {
                self.table.resize_class(ToolClass::Concurrent, width);
                let all: Vec<_> = (0..UNITS).filter(|unit| is_concurrent(*unit)).collect();
                all.iter().for_each(|unit| self.model.units[*unit].width = width);
                self.model.settle(all.into_iter().map(Res::Unit).collect(), self.now);
            }
            Step::Pause { class, paused } => self.pause(class, paused),
        }
        self.compare();
        self.quiet_those_who_can();
    }

    fn each(&mut self, number: usize, is: impl Fn(&Phase) -> bool, act: impl Fn(&mut Self, usize)) {
        if let Some(at) = self.choose(number, is) {
            act(self, at);
        }
    }

    fn pause(&mut self, class: ToolClass, paused: bool) {
        self.table.pause_class(class, paused);
        let freed = match class {
            ToolClass::Read => vec![Res::Unit(0)],
            ToolClass::Concurrent => (0..UNITS).filter(|unit| is_concurrent(*unit)).map(Res::Unit).collect(),
            ToolClass::Serial => (0..RANKS.len()).map(Res::Lease).collect(),
        };
        for res in &freed {
            match res {
                Res::Unit(unit) => self.model.units[*unit].paused = paused,
                Res::Lease(_) => self.model.serial_paused = paused,
            }
        }
        self.model.settle(freed, self.now);
    }

    fn ask(&mut self, root: u64, (nested, parent): (bool, usize), kind: usize) {
        let parent = self.choose(parent, |phase| *phase == Phase::Parked).filter(|_| nested);
        let (root, depth) = parent.map_or((root, 0), |at| (self.calls[at].root, self.calls[at].depth + 1));
        let (lineage, need) = (self.lineage(parent), self.need(root, kind));
        let id = u32::try_from(self.calls.len()).unwrap();
        let ask = Ask { root, depth, lineage: lineage.map(|(entry, _)| entry), need: need.0 };
        let lineage = lineage.map(|(_, entry)| entry);
        let kind = Kind::Call { root, depth, lineage };
        let owed = self.table.is_owed(need.0);
        let expected = self.model.admit(Waiter { id, since: self.now, need: need.1.clone(), kind }, owed);
        let asked = match self.table.try_grant(&ask) {
            Some(entry) => Asked::Granted(entry),
            None => self.table.admit(&ask, self.clock(), id),
        };
        let (phase, entry) = match (asked, expected) {
            (Asked::Granted(entry), model::Asked::Granted(expected)) => (Phase::Running, entry.zip(expected)),
            (Asked::Waiting(ticket), model::Asked::Waiting) => (Phase::Waiting(ticket), None),
            (Asked::Refused(Refusal::SerialNesting), model::Asked::Refused) => (Phase::Quiet, None),
            other => panic!("{id}: {other:?}"),
        };
        self.calls.push(Call { root, depth, parent, need, phase, entry });
        self.model.settle(Vec::new(), self.now);
    }

    fn park(&mut self, at: usize) {
        let call = self.calls[at].clone();
        self.table.park(call.need.0, call.entry.map(|e| e.0), self.clock());
        self.model.change(&call.need.1.units, call.entry.map(|e| e.1), ModelState::Parked, self.now);
        self.calls[at].phase = Phase::Parked;
    }

    /// A handler resumes when the calls it awaits are finished.
    fn resume(&mut self, at: usize) {
        if self.has_open_children(at) {
            return;
        }
        let call = self.calls[at].clone();
        let id = u32::try_from(at).unwrap();
        let owed = self.table.is_owed(call.need.0);
        let resumed = self.table.resume(call.need.0, call.entry.map(|e| e.0), self.clock(), id);
        let kind = Kind::Resume { entry: call.entry.map(|e| e.1) };
        let goes = self.model.resume(Waiter { id, since: self.now, need: call.need.1, kind }, owed);
        self.calls[at].phase = match resumed {
            Resumed::Now => Phase::Running,
            Resumed::Waiting(ticket) => Phase::Resuming(ticket),
        };
        assert_eq!(goes, resumed == Resumed::Now);
    }

    fn end(&mut self, at: usize) {
        let call = self.calls[at].clone();
        let entry = call.entry.map(|e| e.0);
        let (phase, state) = if self.has_open_children(at) {
            self.table.release(call.need.0, entry, self.clock());
            (Phase::Stopped, ModelState::Stopped)
        } else {
            self.table.finish(call.need.0, entry, self.clock());
            (Phase::Quiet, ModelState::Gone)
        };
        self.model.change(&call.need.1.units, call.entry.map(|e| e.1), state, self.now);
        self.calls[at].phase = phase;
    }

    fn abandon(&mut self, at: usize) {
        let call = self.calls[at].clone();
        self.table.release(Need::default(), call.entry.map(|e| e.0), self.clock());
        self.model.change(&[], call.entry.map(|e| e.1), ModelState::Stopped, self.now);
        self.calls[at].phase = Phase::Stopped;
    }

    /// A zombie's session unit is released, and the class unit too if it reads (SC-6).
    fn give_up(&mut self, at: usize) {
        let call = self.calls[at].clone();
        let keeps = is_kept;
        let ids = self.units.clone();
        let (kept, freed) = call.need.0.split(|id| keeps(ids.iter().position(|unit| *unit == id).unwrap()));
        self.table.become_zombie(kept, freed, call.entry.map(|e| e.0), self.clock());
        let (kept_units, freed_units): (Vec<_>, Vec<_>) =
            call.need.1.units.iter().copied().partition(|u| keeps(*u));
        kept_units.iter().for_each(|unit| self.model.units[*unit].zombies += 1);
        self.model.change(&freed_units, call.entry.map(|e| e.1), ModelState::Zombie, self.now);
        self.calls[at].need = (kept, model::Need { units: kept_units, lease: call.need.1.lease });
        self.calls[at].phase = Phase::Zombie;
    }

    fn zombie_ends(&mut self, at: usize) {
        let call = self.calls[at].clone();
        self.table.zombie_ended(call.need.0, call.entry.map(|e| e.0), self.clock());
        call.need.1.units.iter().for_each(|unit| self.model.units[*unit].zombies -= 1);
        self.model.change(&call.need.1.units, call.entry.map(|e| e.1), ModelState::Stopped, self.now);
        self.calls[at].phase = Phase::Stopped;
    }

    /// Cancels a waiter: a call leaves, and a handler that waits to resume is parked again.
    fn cancel(&mut self, at: usize) {
        let id = u32::try_from(at).unwrap();
        let (ticket, phase) = match self.calls[at].phase {
            Phase::Waiting(ticket) => (ticket, Phase::Quiet),
            Phase::Resuming(ticket) => (ticket, Phase::Parked),
            phase => unreachable!("{phase:?} does not wait"),
        };
        assert_eq!(self.table.cancel(ticket, self.clock()), Some(id));
        assert_eq!(self.table.cancel(ticket, self.clock()), None, "CC-9: it has left");
        self.model.cancel(id, self.now);
        self.calls[at].phase = phase;
    }

    fn quiet_those_who_can(&mut self) {
        let can =
            |pair: &Self, at: &usize| pair.calls[*at].phase == Phase::Stopped && !pair.has_open_children(*at);
        while let Some(at) = (0..self.calls.len()).find(|at| can(self, at)) {
            self.calls[at].phase = Phase::Quiet;
            if let Some((entry, expected)) = self.calls[at].entry {
                self.table.quiet(entry, self.clock());
                self.model.change(&[], Some(expected), ModelState::Gone, self.now);
                self.compare();
            }
        }
    }

    /// Table and model have granted the same waiters in the same order, and no waiter is left that could start.
    fn compare(&mut self) {
        let mut has_more = !self.slices_between;
        while has_more {
            has_more = self.table.settle_slice(self.clock());
        }
        let granted = self.table.take_granted();
        if self.model.follows {
            granted.iter().for_each(|going| self.model.follow(going.waiter, self.now));
        }
        let expected = std::mem::take(&mut self.model.granted);
        assert_eq!(
            granted.iter().map(|going| going.waiter).collect::<Vec<_>>(),
            expected.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
            "the order of grants"
        );
        for (going, (id, entry)) in granted.into_iter().zip(expected) {
            let call = &mut self.calls[id as usize];
            assert_eq!(going.need, call.need.0);
            (call.phase, call.entry) = (Phase::Running, going.entry.zip(entry));
        }
        let refused = self.table.take_refused();
        assert_eq!(refused, std::mem::take(&mut self.model.refused), "CC-8");
        refused.into_iter().for_each(|id| self.calls[id as usize].phase = Phase::Quiet);
        let left = self.model.left_behind().filter(|_| self.table.backlog.is_empty());
        assert!(left.is_none(), "{left:?} could go and waits");
        assert_rested(&self.table);
        self.check_leases();
        self.check_numbers();
    }

    /// I4: at most one handler on a lease is not parked, and it is the top unless it is a zombie.
    fn check_leases(&self) {
        for (lease, (_, expected)) in self.leases.iter().zip(&self.model.leases) {
            let stack: Vec<_> = self.table.leases.stack(*lease).collect();
            assert_eq!(stack.len(), expected.len());
            assert!(stack.iter().filter(|(_, entry)| entry.runs()).count() <= 1, "I4");
            let running = stack.iter().position(|(_, entry)| entry.state == EntryState::Running);
            assert!(running.is_none_or(|at| at == 0), "I4");
        }
    }

    /// I3, V3: the units of both agree, and so does which waiters are behind zombies.
    fn check_numbers(&self) {
        for (id, unit) in self.units.iter().zip(&self.model.units) {
            assert_eq!(
                (self.table.unit(*id).in_use, self.table.unit(*id).zombies),
                (unit.in_use, unit.zombies)
            );
        }
        for (at, call) in self.calls.iter().enumerate() {
            if let Phase::Waiting(ticket) | Phase::Resuming(ticket) = call.phase {
                let expected = self.model.is_behind_zombies(u32::try_from(at).unwrap());
                assert_eq!(self.table.is_behind_zombies(ticket), expected, "V3: {at}");
            }
        }
        let calls = self.calls.iter().filter(|call| matches!(call.phase, Phase::Waiting(_))).count();
        assert_eq!(self.table.waiting, calls);
    }

    /// Lets everything that has begun end: no waiter is left behind, and no resource stays taken.
    fn drain(&mut self) {
        self.slices_between = false;
        for class in ToolClass::ALL {
            self.pause(class, false);
            self.compare();
        }
        for _ in 0..1000 {
            let resumable = |pair: &Self, at: &usize| {
                pair.calls[*at].phase == Phase::Parked && !pair.has_open_children(*at)
            };
            let resumable = (0..self.calls.len()).find(|at| resumable(self, at));
            let open = self.choose(0, |phase| *phase != Phase::Quiet);
            match (self.choose(0, |phase| matches!(phase, Phase::Running | Phase::Zombie)), resumable, open) {
                (Some(at), _, _) if self.calls[at].phase == Phase::Running => self.end(at),
                (Some(at), _, _) => self.zombie_ends(at),
                (None, Some(at), _) => self.resume(at),
                (None, None, Some(at)) => panic!("{at} waits for ever: {:?}", self.calls[at]),
                (None, None, None) => break,
            }
            self.compare();
            self.quiet_those_who_can();
        }
        let in_use: usize = self.units.iter().map(|unit| self.table.unit(*unit).in_use).sum();
        assert_eq!(in_use, 0);
        assert!(!self.table.has_waiters() && self.table.leases.entries().next().is_none());
        assert!(self.table.waiting_by_root.is_empty() && self.table.aging.reserved.is_none());
    }
}

/// CC-3: a session that started to wait under a weight keeps that credit to the end, and is charged even if the
/// weight has been reset and no other session waits.
#[test]
fn credit_outlives_the_weight_it_came_with() {
    let ask = |root, need| Step::Ask { root, parent: 0, nested: false, need, calls: 1 };
    let steps = [
        Step::Weight { root: 0, weight: 2 },
        ask(0, 0),
        ask(0, 0),
        Step::Resume(0),
        ask(0, 5),
        ask(0, 4),
        Step::End(4_560_570_109_118_743_244),
        Step::Weight { root: 0, weight: 1 },
        ask(0, 9),
        Step::End(7_840_864_050_754_180_571),
        Step::Resume(0),
        ask(0, 5),
        ask(0, 6),
        ask(1, 5),
    ];
    let mut pair = Pair::new([1; SHARED + OWN]);
    steps.iter().for_each(|step| pair.run(step));
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    /// TS-1, I3, I4, CC-1, CC-3, CC-3b, CC-7, CC-8, CC-9, V3: the table grants the same waiters in the same order as
    /// a plain reading of the rules, leaves no waiter that could start, and is empty in the end.
    #[test]
    fn the_table_agrees_with_a_plain_reading_of_the_rules(
        widths in proptest::array::uniform7(1..3usize),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(widths);
        steps.iter().for_each(|step| pair.run(step));
        pair.drain();
    }
}

/// CC-3b: a waiter that has aged by the time of a slice has what it lacks held back from those behind it.
#[test]
fn a_slice_sees_who_has_aged() {
    let ask = |need, calls| Step::Ask { root: 0, parent: 0, nested: false, need, calls };
    let mut widths = [1; SHARED + OWN];
    (widths[0], widths[SHARED + 2]) = (2, 2); // reads and the tree
    let mut pair = Pair::new(widths);
    (pair.slices_between, pair.model.follows, pair.table.backlog.slice) = (true, true, 2);
    let resumed = Step::Pause { class: ToolClass::Read, paused: false };
    // Two calls of one tool, of which the second waits; then one of another tool, which waits for the slice.
    let steps = [ask(40, 2), resumed, Step::Time(777), ask(35, 1), Step::Time(1224), Step::Slice];
    steps.iter().for_each(|step| pair.run(step));
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// I3, I4, CC-1, CC-3: with changes settled in the smallest slices and other changes between them, only heads of
    /// lanes that can start are granted, and after the last slice none of these is left.
    #[test]
    fn slices_leave_nobody_behind(
        widths in proptest::array::uniform7(1..3usize),
        slice in 1..4usize,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(widths);
        (pair.slices_between, pair.model.follows, pair.table.backlog.slice) = (true, true, slice);
        steps.iter().for_each(|step| pair.run(step));
        pair.drain();
    }
}
