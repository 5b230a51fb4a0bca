//! Small programs of calls: which call makes which, of which class, in which scope.

/// The class of a call, and the scope of a serial one: its tree's, or a named one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Read,
    Concurrent,
    Serial(Option<u8>),
}

/// A call and the steps of its handler, one after another: in each step it dispatches batches side by side.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) class: Class,
    /// Whether it calls the one tool that has a limit.
    pub(super) tool: bool,
    /// Whether the calls under it belong to another agent, which has pools of its own.
    pub(super) fork: bool,
    pub(super) body: Vec<Vec<Vec<usize>>>,
}

/// The widths of everything; `None`: unbounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) read: usize,
    pub(super) concurrent: usize,
    pub(super) tool: usize,
    pub(super) session: Option<usize>,
    pub(super) tree: Option<usize>,
    /// Whether the tool's limit is shared by the whole engine.
    pub(super) tool_of_engine: bool,
}

/// What follows for a call from its place in the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    pub(super) root: usize,
    pub(super) agent: usize,
    pub(super) depth: u8,
    /// The calls of its batch, and those of earlier runs, which must be quiescent before it starts (CL-3).
    pub(super) batch: Vec<usize>,
    pub(super) before: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) calls: Vec<Call>,
    /// Root sessions and the batches they send.
    pub(super) batches: Vec<(usize, Vec<usize>)>,
    pub(super) sizes: Sizes,
    /// Batches that are sent again as soon as they are finished.
    pub(super) endless: Vec<usize>,
    pub(super) places: Vec<Place>,
    pub(super) agents: usize,
    pub(super) roots: usize,
}

impl Program {
    pub(super) fn new(calls: Vec<Call>, batches: Vec<(usize, Vec<usize>)>, sizes: Sizes) -> Self {
        let roots = batches.iter().map(|(root, _)| root + 1).max().unwrap();
        let places = vec![Place::default(); calls.len()];
        let mut program = Self { calls, batches, sizes, endless: vec![], places, agents: roots, roots };
        for (root, batch) in program.batches.clone() {
            program.lay_out(&batch, Place { root, agent: root, ..Place::default() });
        }
        program
    }

    fn lay_out(&mut self, batch: &[usize], of_all: Place) {
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for call in batch {
            let class = self.calls[*call].class;
            let last = runs.last_mut().filter(|run| self.calls[run[0]].class == class);
            match last.filter(|_| !matches!(class, Class::Serial(_))) {
                Some(run) => run.push(*call),
                None => runs.push(vec![*call]),
            }
        }
        for (number, run) in runs.iter().enumerate() {
            for call in run {
                let before = runs[..number].concat();
                self.places[*call] = Place { batch: batch.to_vec(), before, ..of_all.clone() };
                self.lay_out_under(*call);
            }
        }
    }

    fn lay_out_under(&mut self, call: usize) {
        let place = self.places[call].clone();
        let agent = if self.calls[call].fork { self.agents } else { place.agent };
        self.agents += usize::from(self.calls[call].fork);
        let under =
            Place { parent: Some(call), agent, depth: place.depth + 1, root: place.root, ..Place::default() };
        for batch in self.calls[call].body.concat() {
            self.lay_out(&batch, under.clone());
        }
    }

    pub(super) fn children(&self, of: usize) -> impl Iterator<Item = usize> {
        self.calls[of].body.iter().flatten().flatten().copied()
    }
}

/// A deterministic source of random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    pub(super) fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn size(&mut self) -> usize {
        [1, 1, 2, 3][self.below(4)]
    }

    /// A program of at most `most` calls.
    pub(super) fn program(&mut self, most: usize, roots: usize) -> Program {
        let mut left = 2 + self.below(most - 1).max(1);
        let (mut calls, mut batches) = (Vec::new(), Vec::new());
        let (has_tool, scopes) = (self.one_in(2), self.below(3));
        while left > 0 {
            let mut batch = Vec::new();
            while left > 0 && batch.len() < 3 && (batch.is_empty() || self.one_in(2)) {
                batch.push(self.call(&mut calls, &mut left, (has_tool, scopes), 0));
            }
            let root = if batches.is_empty() { 0 } else { self.below(roots) };
            batches.push((root, batch));
        }
        let sizes = Sizes {
            read: self.size(),
            concurrent: self.size(),
            tool: self.size(),
            session: self.one_in(3).then(|| self.size()),
            tree: self.one_in(3).then(|| self.size()),
            tool_of_engine: self.one_in(2),
        };
        Program::new(calls, batches, sizes)
    }

    fn call(
        &mut self,
        calls: &mut Vec<Call>,
        left: &mut usize,
        (tools, scopes): (bool, usize),
        depth: usize,
    ) -> usize {
        let named = self.below(scopes + 1).checked_sub(1).map(|name| u8::try_from(name).unwrap());
        let class =
            [Class::Read, Class::Serial(named), Class::Concurrent, Class::Serial(named)][self.below(4)];
        let fork = class == Class::Concurrent && self.one_in(2);
        let at = calls.len();
        calls.push(Call { class, tool: tools && self.one_in(2), fork, body: Vec::new() });
        *left -= 1;
        while *left > 0 && depth < 3 && calls[at].body.len() < 2 && self.below(10) < 6 {
            let mut step = Vec::new();
            while *left > 0 && step.len() < 2 && (step.is_empty() || self.one_in(3)) {
                let mut batch = Vec::new();
                while *left > 0 && batch.len() < 3 && (batch.is_empty() || self.below(10) < 4) {
                    batch.push(self.call(calls, left, (tools, scopes), depth + 1));
                }
                step.push(batch);
            }
            calls[at].body.push(step);
        }
        at
    }
}
