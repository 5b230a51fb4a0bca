//! What the lives have said, in order, and what they have done.

use super::approvals::Approvals;
use crate::{
    killing::Life,
    plan::{CallPlan, Kind, Plan, origin},
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct History {
    plan: BTreeMap<String, CallPlan>,
    /// The lives in which a call was started, one for each start.
    pub(crate) starts: BTreeMap<String, Vec<usize>>,
    /// How many attempts of a call have failed without an effect.
    pub(crate) harmless: BTreeMap<String, usize>,
    pub(crate) acks: BTreeMap<String, Vec<String>>,
    pub(crate) suspended: BTreeSet<String>,
    /// Whose cancel somebody has asked for.
    pub(crate) cancelling: BTreeSet<String>,
    /// The life in which a cancel was acknowledged first.
    pub(crate) cancelled: BTreeMap<String, usize>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) said_faults: Vec<String>,
    pub(super) approvals: Approvals,
    /// Whether a life was asked to drain.
    pub(crate) has_drained: bool,
}

pub(crate) struct Effect {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) key: Option<String>,
    /// The question whose answer it was done under.
    pub(crate) request: String,
    pub(crate) note: Option<String>,
}

impl Effect {
    fn of(line: &str) -> Self {
        let mut parts = line.split(' ').map(str::to_owned);
        let mut next = || parts.next().expect("an effect has five parts");
        let (kind, id, key, request, note) = (Kind::of(&next()), next(), next(), next(), next());
        let given = |text| Some(text).filter(|text| text != "-");
        Self { kind, id, key: given(key), request, note: given(note) }
    }
}

impl History {
    pub(crate) fn of(lives: &[Life]) -> Self {
        let order = &lives[0].order;
        let effects = std::fs::read_to_string(order.effects()).unwrap_or_default();
        let plan: Plan = order.plan();
        let mut history = Self {
            plan: plan.calls().map(|call| (call.id.clone(), call.clone())).collect(),
            starts: BTreeMap::new(),
            harmless: BTreeMap::new(),
            acks: BTreeMap::new(),
            suspended: BTreeSet::new(),
            cancelling: BTreeSet::new(),
            cancelled: BTreeMap::new(),
            effects: effects.lines().map(Effect::of).collect(),
            said_faults: Vec::new(),
            approvals: Approvals::default(),
            has_drained: false,
        };
        for life in lives {
            life.lines.iter().for_each(|line| history.read(life.order.life, line));
        }
        history
    }

    fn read(&mut self, life: usize, line: &str) {
        self.approvals.read(life, line);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let id = rest.to_owned();
        match word {
            "start" => self.starts.entry(id).or_default().push(life),
            "no" => *self.harmless.entry(id).or_default() += 1,
            "ack" => {
                let (id, result) = rest.split_once(' ').expect("a result stands behind its call");
                self.acks.entry(id.to_owned()).or_default().push(result.to_owned());
            }
            "suspended" => drop(self.suspended.insert(id)),
            "cancelling" => drop(self.cancelling.insert(id)),
            "cancelled" => drop(self.cancelled.entry(id).or_insert(life)),
            "stopping" => self.has_drained = true,
            "fault" => self.said_faults.push(id),
            "unrecorded" | "not-resumed" if !self.has_drained => self.said_faults.push(line.to_owned()),
            _ => {}
        }
    }

    /// What was planned of a call: of one that was sent again, what was planned of the first.
    pub(crate) fn plan_of(&self, id: &str) -> Option<&CallPlan> {
        match id.contains('/') {
            true => None, // a handler has dispatched it
            false => self.plan.get(origin(id)),
        }
    }

    pub(crate) fn kind_of(&self, id: &str) -> Option<Kind> {
        match id.rsplit_once('/') {
            Some((_, "0")) => Some(Kind::Save),
            Some((_, "1")) => Some(Kind::Look),
            Some(_) => Some(Kind::Checked),
            None => self.plan_of(id).map(|call| call.kind),
        }
    }

    pub(crate) fn has_effect(&self, id: &str) -> bool {
        self.effects.iter().any(|effect| effect.id == id)
    }
}
