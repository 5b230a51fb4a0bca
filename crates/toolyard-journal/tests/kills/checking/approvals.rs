//! A call that somebody is asked about runs under an answer to its own question, and under no other one (JR-9).

use super::history::{Effect, History};
use crate::{asking::NOTE, plan::Says, tally::Tally};
use std::collections::{BTreeMap, BTreeSet};

/// What was asked and answered in all lives so far.
#[derive(Default)]
pub(super) struct Approvals {
    /// The questions about each call that somebody was shown, and the life in which that was first.
    asked: BTreeMap<String, BTreeMap<String, usize>>,
    /// The questions whose answer each question may be settled by beside its own.
    shared: BTreeMap<String, BTreeSet<String>>,
    /// The questions that somebody has said yes to, whether that counted or not.
    allowed: BTreeSet<String>,
    /// The questions whose giver was told that the answer counts, and the life of that.
    taken: BTreeMap<String, usize>,
    pub(super) faults: Vec<String>,
    pub(super) counts: Counts,
}

/// How often something was seen that makes the checks mean something.
#[derive(Default)]
pub(super) struct Counts {
    /// Questions that somebody was shown.
    pub(super) asked: usize,
    /// Questions that somebody was shown again in a later life.
    pub(super) asked_again: usize,
    /// Starts under an answer that an earlier life had taken.
    pub(super) recalled: usize,
    /// Starts, and effects, that no answer allows.
    pub(super) unapproved: usize,
}

impl Approvals {
    /// Takes a line that a life has said, in order. Others are left out.
    pub(super) fn read(&mut self, life: usize, line: &str) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["asked", id, request] => self.asked(life, id, request),
            ["shares", _, request, other] => {
                self.shared.entry(request.to_owned()).or_default().insert(other.to_owned());
            }
            ["answering", _, request, says] if says != Says::Deny.name() => {
                self.allowed.insert(request.to_owned());
            }
            ["answered", _, request] => {
                self.taken.entry(request.to_owned()).or_insert(life);
            }
            ["under", id, request] => match self.answer_to(request) {
                None => {
                    self.counts.unapproved += 1;
                    self.faults.push(format!("{id}: started, and nobody has allowed it"));
                }
                Some(answered) => {
                    let taken = self.taken.get(answered);
                    self.counts.recalled += usize::from(taken.is_some_and(|taken| *taken < life));
                }
            },
            _ => {}
        }
    }

    fn asked(&mut self, life: usize, id: &str, request: &str) {
        if self.taken.contains_key(request) {
            self.faults.push(format!("{id}: asked again, and its answer counted"));
        }
        let of_call = self.asked.entry(id.to_owned()).or_default();
        match of_call.get(request) {
            None => self.counts.asked += 1,
            Some(first) => self.counts.asked_again += usize::from(*first < life),
        }
        of_call.entry(request.to_owned()).or_insert(life);
        if of_call.len() > 1 {
            self.faults.push(format!("{id}: asked about under two ids: {of_call:?}"));
        }
    }

    /// The question whose yes lets the call of this question run: this one, or one that it shares.
    fn answer_to<'a>(&'a self, request: &'a str) -> Option<&'a str> {
        let shared = self.shared.get(request).into_iter().flatten().map(String::as_str);
        std::iter::once(request).chain(shared).find(|request| self.allowed.contains(*request))
    }
}

/// JR-9: one answer is good for one call, which does what was answered. What started is checked as it is read.
pub(super) fn check_approvals(history: &History, tally: &mut Tally) {
    let approvals = &history.approvals;
    tally.faults.extend(approvals.faults.iter().cloned());
    tally.counts.asked += approvals.counts.asked;
    tally.counts.asked_again += approvals.counts.asked_again;
    tally.counts.recalled += approvals.counts.recalled;
    tally.counts.unapproved += approvals.counts.unapproved;
    let mut of_answer = BTreeMap::<&str, Vec<&str>>::new();
    for effect in history.effects.iter().filter(|effect| effect.kind.asks()) {
        if let Err(why) = does_what_was_said(history, effect) {
            tally.faults.push(format!("{}: {why}", effect.id));
        }
        match approvals.answer_to(&effect.request) {
            Some(answered) => of_answer.entry(answered).or_default().push(&effect.id),
            None => {
                tally.counts.unapproved += 1;
                tally.faults.push(format!("{}: done, and nobody has allowed it", effect.id));
            }
        }
    }
    for (request, calls) in of_answer.iter().filter(|(_, calls)| calls.len() > 1) {
        tally.counts.unapproved += calls.len() - 1;
        tally.faults.push(format!("{calls:?}: all done under the answer to {request}"));
    }
}

fn does_what_was_said(history: &History, effect: &Effect) -> Result<(), String> {
    let says = history.plan_of(&effect.id).ok_or("nobody has sent it")?.says;
    match (says, effect.note.as_deref()) {
        (Says::Allow, None) | (Says::Edit, Some(NOTE)) => Ok(()),
        (says, note) => Err(format!("done with the note {note:?}, where the answer was {}", says.name())),
    }
}
