//! Generates random programs.

use super::{
    Act, AnswerPlan, BatchPlan, CallPlan, Chaos, Consent, Cut, CutBy, DispatchMode, EditPlan, End, ForkPlan,
    Guards, HookPlan, Nested, OnCancel, Order, Placement, PolicyPlan, Program, Script, SessionPlan, Step,
    ToolPlan, TurnPlan,
};
use crate::sim::Dice;
use toolyard::{Budget, LimitScope, Priority, ToolClass};

/// The bounds of generated programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most root sessions.
    pub sessions: usize,
    /// The most calls of a batch.
    pub width: usize,
    /// The most levels of nested calls; 0 means none.
    pub depth: usize,
    /// The most calls of a program.
    pub calls: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { sessions: 5, width: 16, depth: 4, calls: 120 }
    }
}

/// The kind of program to generate. Each seed leaves out most of what could go wrong, so that the rest shows clearly.
struct Odds {
    bounds: Bounds,
    failures: u64,
    cancels: u64,
    questions: u64,
    blocking: u64,
    refusals: u64,
    forks: u64,
    scopes: u64,
    caps: u64,
    priorities: u64,
    deadlines: u64,
    wide: bool,
}

impl Program {
    /// The program of this seed.
    pub fn generate(seed: u64, bounds: Bounds) -> Self {
        let mut dice = Dice::new(seed, 1);
        let odds = Odds::of(&mut dice, bounds);
        let mut generator =
            Generator { node: 0, fork: 0, calls_left: bounds.calls, odds, tools: Vec::new(), dice };
        generator.tools = generator.tools();
        let mut program = generator.program(seed);
        // These use separate dice, so that adding them does not change the rest of a program.
        program.enrich(&mut Dice::new(seed, 3));
        program.govern(&mut Dice::new(seed, 4));
        program.plant(seed, &mut Dice::new(seed, 5));
        program.shape(&mut Dice::new(seed, 6));
        program.rare(&mut Dice::new(seed, 7));
        program.meet(&mut Dice::new(seed, 8));
        program.sandbox(&mut Dice::new(seed, 9));
        program.fingerprint(&mut Dice::new(seed, 10));
        program.edit(&mut Dice::new(seed, 11));
        program.record(&mut Dice::new(seed, 12));
        program.forget_stale_cancels();
        program.live_on(&mut Dice::new(seed, 13));
        program
    }
}

impl Odds {
    fn of(dice: &mut Dice, mut bounds: Bounds) -> Self {
        // Half of the programs are flat: nested calls wait in so many lanes that turns are hard to see.
        bounds.depth = dice.pick(&[0, 0, 0, 1, 2, 4]).min(bounds.depth);
        Self {
            bounds,
            failures: dice.pick(&[0, 100, 300]),
            cancels: dice.pick(&[0, 0, 150, 400]),
            questions: dice.pick(&[0, 0, 200, 500]),
            blocking: dice.pick(&[0, 0, 0, 250]),
            refusals: dice.pick(&[0, 80, 250]),
            forks: dice.pick(&[0, 0, 200, 500]),
            scopes: dice.pick(&[0, 0, 500, 800]),
            caps: dice.pick(&[0, 0, 300]),
            priorities: dice.pick(&[0, 0, 600]),
            deadlines: dice.pick(&[0, 0, 0, 150]),
            wide: dice.chance(250),
        }
    }
}

struct Generator {
    dice: Dice,
    odds: Odds,
    tools: Vec<ToolPlan>,
    /// The next call's number.
    node: u32,
    /// The next fork's number.
    fork: u32,
    /// How many calls may still be made.
    calls_left: usize,
}

impl Generator {
    fn program(&mut self, seed: u64) -> Program {
        let narrow = self.dice.chance(350);
        let width = |dice: &mut Dice, most| if narrow { 1 } else { dice.few(1..=most) };
        let (read, concurrent) = (width(&mut self.dice, 12), width(&mut self.dice, 8));
        let hooks = self.dice.chance(200);
        let cap = self.dice.maybe(200, |dice| dice.few(1..=4));
        let count = self.dice.few(1..=self.odds.bounds.sessions);
        let sessions: Vec<_> = (0..count).map(|_| self.session()).collect();
        Program {
            chaos: self.chaos(seed),
            read,
            concurrent,
            cap,
            grace_ms: self.dice.pick(&[100, 1_000, 30_000]),
            skip_rest: self.dice.chance(150),
            queue_max: self.dice.maybe(60, |dice| dice.few(1..=6)),
            answer_within_ms: self.dice.pick(&[2_000, 300_000]),
            queue_timeout_ms: self.dice.maybe(80, |dice| dice.pick(&[20, 500])),
            deadline_ms: self.dice.maybe(80, |dice| dice.pick(&[100, 3_000])),
            threads: None,
            room: None,
            recorder: None,
            lives: None,
            hooks,
            budgets: [Budget::UNLIMITED; 3],
            secret: None,
            policies: vec![PolicyPlan::default()],
            tools: self.tools.clone(),
            orders: self.orders(sessions.len()),
            sessions,
        }
    }

    fn chaos(&mut self, seed: u64) -> Chaos {
        let (yields, naps) = self.dice.pick(&[(0, 0), (200, 0), (300, 100), (100, 300), (500, 50)]);
        Chaos { seed, yields, naps }
    }

    fn tools(&mut self) -> Vec<ToolPlan> {
        // One tool of each class, so that no program lacks a class, plus some more.
        let more = self.dice.few(0..=5);
        let classes = ToolClass::ALL.into_iter().map(Some).chain((0..more).map(|_| None));
        classes.map(|class| self.tool(class)).collect()
    }

    fn tool(&mut self, class: Option<ToolClass>) -> ToolPlan {
        let class = class.unwrap_or_else(|| self.dice.pick(&ToolClass::ALL));
        let Odds { blocking, questions, scopes, .. } = self.odds;
        let placement = match () {
            () if self.dice.chance(blocking) => Placement::Blocking,
            () if self.dice.chance(200) => Placement::Inline,
            () => Placement::Task,
        };
        let consent = match () {
            () if self.dice.chance(questions) => Consent::Asked,
            () if self.dice.chance(self.odds.refusals / 5) => Consent::Forbidden,
            () => Consent::Free,
        };
        ToolPlan {
            class,
            limit: self.dice.maybe(250, |dice| dice.few(1..=4)),
            limit_scope: self.dice.pick(&[
                LimitScope::Agent,
                LimitScope::Agent,
                LimitScope::Tree,
                LimitScope::Engine,
            ]),
            scope: self.dice.maybe(scopes, |dice| dice.few(0..=1)),
            placement,
            timeout_ms: self.dice.pick(&[1_500, 5_000, 60_000]),
            consent,
            hidden_from_forks: false,
            needs_no_capability: false,
            recursive: self.odds.bounds.depth > 0 && placement == Placement::Task && self.dice.chance(150),
            sandboxed: false,
            on_drop: None,
            guards: Guards::NONE,
        }
    }

    fn session(&mut self) -> SessionPlan {
        let turns = if self.odds.wide { 1..=2 } else { 1..=4 };
        let count = self.dice.few(turns);
        let Odds { caps, priorities, forks, .. } = self.odds;
        SessionPlan {
            cap: self.dice.maybe(caps / 2, |dice| dice.few(1..=4)),
            tree_cap: self.dice.maybe(caps, |dice| dice.few(1..=4)),
            barred: Vec::new(),
            priority: match self.dice.chance(priorities) {
                true => self.dice.pick(&[Priority::High, Priority::Urgent]),
                false => Priority::Normal,
            },
            turns: (0..count).map(|_| self.turn(self.odds.bounds.depth)).collect(),
            forks: self.forks(self.odds.bounds.depth, forks),
        }
    }

    /// Some forks, with a probability of `chance` in a thousand.
    fn forks(&mut self, depth: usize, chance: u64) -> Vec<ForkPlan> {
        if depth == 0 || self.calls_left == 0 || !self.dice.chance(chance) {
            return Vec::new();
        }
        (0..self.dice.few(1..=2)).map(|_| self.fork(depth - 1)).collect()
    }

    fn fork(&mut self, depth: usize) -> ForkPlan {
        let number = self.fork;
        self.fork += 1;
        let Odds { cancels, caps, refusals, .. } = self.odds;
        let tools = self.tools.len() - 1;
        ForkPlan {
            number,
            shares_concurrent: self.dice.chance(300),
            cap: self.dice.maybe(caps / 2, |dice| dice.few(1..=3)),
            hidden: self.dice.maybe(refusals, |dice| dice.few(0..=tools)),
            barred: Vec::new(),
            cancel_ms: self.dice.maybe(cancels, |dice| dice.pick(&[0, 5, 60, 400])),
            outlives: false,
            turns: (0..self.dice.few(1..=2)).map(|_| self.turn(depth)).collect(),
            forks: self.forks(depth, 150),
        }
    }

    fn turn(&mut self, depth: usize) -> TurnPlan {
        let cancels = self.odds.cancels;
        let (gap_ms, overlaps_next) = (self.dice.pick(&[0, 0, 0, 5, 100]), self.dice.chance(300));
        let mode = match self.dice.range(0..=9) {
            0 => DispatchMode::OneByOne,
            1 => DispatchMode::Streamed(self.dice.pick(&[0, 3, 50])),
            2 => DispatchMode::Opened(self.dice.pick(&[0, 3, 50])),
            3..=5 => DispatchMode::Plain,
            _ => DispatchMode::Runs,
        };
        TurnPlan {
            gap_ms,
            overlaps_next,
            mode,
            resend: self.dice.chance(if matches!(mode, DispatchMode::Opened(_)) { 500 } else { 50 }),
            cut: self.dice.maybe(cancels, |dice| Cut {
                after_ms: dice.pick(&[0, 1, 10, 60, 200, 700, 3_000]),
                by: dice.pick(&[CutBy::Cancel, CutBy::Drop]),
            }),
            cancel_at: self.dice.maybe(cancels, |dice| (dice.pick(&[0, 1, 10, 60, 200]), dice.few(0..=5))),
            batch: self.batch(depth),
        }
    }

    fn batch(&mut self, depth: usize) -> BatchPlan {
        let most = if self.odds.wide { self.odds.bounds.width } else { 6 };
        let width = match self.dice.range(0..=29) {
            0 => 0,
            1 => self.odds.bounds.width,
            _ if self.odds.wide => self.dice.range(1..=most as u64) as usize,
            _ => self.dice.few(1..=most),
        };
        let width = width.min(self.calls_left);
        self.calls_left -= width;
        // Adjacent calls of the same tool are what forms runs.
        let mut tool = self.dice.range(0..=self.tools.len() as u64 - 1) as usize;
        let calls = (0..width).map(|at| {
            if self.dice.chance(500) {
                tool = self.dice.range(0..=self.tools.len() as u64 - 1) as usize;
            }
            self.call(tool, at, depth)
        });
        BatchPlan { calls: calls.collect() }
    }

    fn call(&mut self, tool: usize, at: usize, depth: usize) -> CallPlan {
        let node = self.node;
        self.node += 1;
        let Odds { refusals, deadlines, .. } = self.odds;
        let refused = self.dice.chance(refusals).then(|| self.dice.range(0..=2));
        CallPlan {
            node,
            tool: if refused == Some(0) { self.tools.len() } else { tool },
            broken: refused == Some(1),
            twin: refused == Some(2) && at > 0,
            timeout_ms: self.dice.maybe(100, |dice| dice.pick(&[500, 2_500])),
            deadline_ms: self.dice.maybe(deadlines, |dice| dice.pick(&[30, 200, 2_000])),
            answer: self.answer(),
            edit: EditPlan::Nothing,
            held_ms: None,
            hook: self.hook(),
            key: None,
            script: self.script(tool, depth),
        }
    }

    fn answer(&mut self) -> AnswerPlan {
        let within = self.dice.pick(&[0, 1, 20, 400, 1_200]);
        match self.dice.range(0..=19) {
            0..=14 => AnswerPlan::Yes(within),
            15..=17 => AnswerPlan::No(within),
            18 => AnswerPlan::Never,
            _ => AnswerPlan::Panic,
        }
    }

    fn hook(&mut self) -> HookPlan {
        match self.dice.range(0..=29) {
            0 => HookPlan::Abort,
            1 => HookPlan::Panic,
            2..=6 => HookPlan::Go(self.dice.pick(&[1, 30])),
            _ => HookPlan::Go(0),
        }
    }

    fn script(&mut self, tool: usize, depth: usize) -> Script {
        let failures = self.odds.failures;
        let tool = &self.tools[tool];
        let (is_blocking, is_recursive) = (tool.placement == Placement::Blocking, tool.recursive);
        let mut steps: Vec<_> = (0..self.dice.few(0..=3)).map(|_| self.step(depth, is_blocking)).collect();
        if self.dice.chance(failures / 4) {
            steps.push(Step::Sleep(self.dice.pick(&[4_000, 12_000, 70_000])));
        }
        let end = match self.dice.range(0..=9) {
            _ if !self.dice.chance(failures) => End::Ok,
            0..=2 => End::Fail,
            3 => End::No,
            4 => End::Transient,
            5 | 6 => End::Panic,
            // A handler that has no timeout or cannot be dropped would never end.
            7..=8 if !is_recursive && !is_blocking => End::Hang,
            _ => End::Ok,
        };
        Script {
            steps,
            first_ends: Vec::new(),
            end,
            on_cancel: self.dice.pick(&[OnCancel::Polite, OnCancel::Finish, OnCancel::Deaf]),
            bytes: 0,
        }
    }

    fn step(&mut self, depth: usize, is_blocking: bool) -> Step {
        let nests = if depth == 0 || self.calls_left == 0 || is_blocking { 0 } else { 400 };
        match self.dice.range(0..=9) {
            _ if self.dice.chance(nests) => self.nest(depth - 1),
            0 => Step::Emit,
            _ => Step::Sleep(self.dice.pick(&[0, 1, 5, 10, 10, 30, 100, 300])),
        }
    }

    fn nest(&mut self, depth: usize) -> Step {
        let forks = self.odds.forks;
        if self.dice.chance(forks) {
            return Step::Fork(self.fork(depth));
        }
        let side_by_side = self.dice.few(1..=3);
        Step::Nest((0..side_by_side).map(|_| self.nested(depth)).collect())
    }

    fn nested(&mut self, depth: usize) -> Nested {
        let cancels = self.odds.cancels;
        Nested {
            batch: self.batch(depth),
            dropped_ms: self.dice.maybe(cancels / 2, |dice| dice.pick(&[0, 5, 40, 400])),
        }
    }

    fn orders(&mut self, sessions: usize) -> Vec<Order> {
        let count = if self.dice.chance(600) { 0 } else { self.dice.few(1..=5) };
        let mut orders: Vec<_> = (0..count).map(|_| self.order(sessions)).collect();
        if self.odds.cancels > 0 && self.dice.chance(200) {
            let (finish, grace) = (self.dice.pick(&[0, 50, 30_000]), self.dice.pick(&[0, 50, 30_000]));
            orders.push(Order { at_ms: self.at(), act: Act::Shutdown(finish, grace) });
        }
        orders.sort_by_key(|order| order.at_ms);
        orders
    }

    fn order(&mut self, sessions: usize) -> Order {
        let cancels = if self.odds.cancels > 0 { 300 } else { 0 };
        let act = match () {
            () if self.dice.chance(cancels) => {
                Act::CancelSession(self.dice.range(0..=sessions as u64 - 1) as usize)
            }
            () if self.dice.chance(500) => {
                Act::Pause(self.dice.pick(&ToolClass::ALL), self.dice.pick(&[5, 100, 3_000]))
            }
            () => {
                let class = self.dice.pick(&[ToolClass::Read, ToolClass::Concurrent]);
                Act::Resize(class, self.dice.few(1..=6))
            }
        };
        Order { at_ms: self.at(), act }
    }

    fn at(&mut self) -> u64 {
        self.dice.pick(&[0, 1, 10, 40, 150, 600, 2_500])
    }
}
