//! I5, ID-3, ID-3a: a keyed call that must not run twice runs once, a call that shares a result has that result and
//! says so, and no call waits for a flight that may wait for it.

use super::{
    SLACK_US, Seen, Violation,
    seen::{Life, Try},
};
use crate::sim::{
    Said, Shape,
    program::{Consent, End, How, Index, Node, Owner},
};
use toolyard::{Dedupe, Effect, ErrorKind, EventKind, ToolClass, error::Ran};

/// Times in events are truncated to milliseconds.
const CUT_US: u64 = 1_000;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for group in index.keyed() {
        violations.extend(runs_once(index, seen, group));
        for number in group {
            let Some(life) = seen.calls.get(number) else { continue };
            let caller = Caller { index, seen, group, node: &index.nodes[number], life };
            caller
                .check(&mut |rule, what| violations.push(Violation::new(rule, format!("c{number} {what}"))));
        }
    }
    violations
}

/// Checks I5.
fn runs_once(index: &Index<'_>, seen: &Seen<'_>, group: &[u32]) -> Option<Violation> {
    let tool = index.nodes[group.first()?].tool.filter(|tool| !tool.is_repeatable())?;
    let starts = group.iter().filter_map(|node| Some((node, seen.calls.get(node)?)));
    let counts =
        |it: &&Try| it.began.is_some() && it.said.is_none_or(|(_, said)| said != Said::End(End::Harmless));
    let starts: Vec<_> = starts
        .flat_map(|(node, life)| life.tries.iter().filter(counts).map(move |_| format!("c{node}")))
        .collect();
    (starts.len() > 1).then(|| {
        let what = format!(
            "{} ran under one key of a {} tool that must not run twice",
            starts.join(", "),
            tool.class
        );
        Violation::new("I5", what)
    })
}

/// A call with a key.
struct Caller<'a> {
    index: &'a Index<'a>,
    seen: &'a Seen<'a>,
    group: &'a [u32],
    node: &'a Node<'a>,
    life: &'a Life<'a>,
}

impl Caller<'_> {
    fn check(&self, broken: &mut dyn FnMut(&'static str, String)) {
        let code = self.life.end.and_then(|end| end.code);
        let fails = self.node.tool.is_some_and(|tool| tool.care.key_fails);
        if code == Some(ErrorKind::KeyInProgress) && !fails && !self.could_wait_for_itself() {
            broken("ID-3", "is told that its key is in progress, and could have waited".to_owned());
        }
        if let Some(shape) = self.seen.results.get(&self.node.call.node) {
            self.words(shape, broken);
        }
        self.truth(broken);
    }

    /// Whether an ancestor holds a lease or leads a flight, so that waiting could be circular (ID-3a).
    fn could_wait_for_itself(&self) -> bool {
        let mut above =
            self.index.lineage(self.node.call.node).skip(1).filter_map(|it| self.index.nodes.get(&it));
        above.any(|it| it.class() == Some(ToolClass::Serial) || it.call.key.is_some())
    }

    /// Checks that what the result says about its origin fits what was observed.
    fn words(&self, shape: &Shape, broken: &mut dyn FnMut(&'static str, String)) {
        let ran = !self.life.tries.is_empty();
        let told = self.life.events.iter().find_map(|(_, _, event)| match event.kind {
            EventKind::Completed { dedupe, .. } => Some(dedupe),
            _ => None,
        });
        if told.is_some_and(|told| told != shape.dedupe) {
            broken("ID-3", format!("is told {told:?} by its event and {:?} by its result", shape.dedupe));
        }
        match shape.dedupe {
            Dedupe::Fresh if shape.attempts > 0 && !ran && !self.took_over(shape) => {
                broken("ID-3", "is told that it ran, and another did".to_owned());
            }
            Dedupe::Joined | Dedupe::Replayed if ran => {
                broken("ID-3", format!("ran and is told that it was {:?}", shape.dedupe));
            }
            Dedupe::Joined if self.could_wait_for_itself() => {
                broken("ID-3a", "waited for what may wait for it".to_owned());
            }
            Dedupe::Fresh | Dedupe::Joined | Dedupe::Replayed => {}
        }
        if shape.dedupe == Dedupe::Fresh || shape.code == Some(ErrorKind::Cancelled) {
            return;
        }
        if shape.code == Some(ErrorKind::DeadlineExceeded) || shape.code == Some(ErrorKind::Internal) {
            return;
        }
        match (self.source(shape), shape.dedupe) {
            (None, _) => broken("ID-3", format!("has a result that no call of its key came to: {shape:?}")),
            (Some(source), Dedupe::Joined) => {
                let ended_us = self.life.end.map_or(0, |end| end.at_us);
                if let Some((said_us, _)) = source.said
                    && ended_us > said_us + SLACK_US
                    && shape.code != Some(ErrorKind::Timeout)
                {
                    broken("ID-3", format!("shares a result of {said_us} us at {ended_us} us"));
                }
            }
            (Some(source), _) => self.came_later(source, broken),
        }
    }

    /// Whether the call may have taken over a flight after attempts of others, and ended before its own first attempt.
    fn took_over(&self, shape: &Shape) -> bool {
        let of_handlers = |code: ErrorKind| code.ran() == Ran::Yes && code != ErrorKind::RateLimited;
        if shape.code.is_none_or(of_handlers) {
            return false;
        }
        let others = self.group.iter().filter_map(|node| self.seen.calls.get(node));
        let ended_us = self.life.end.map_or(0, |end| end.at_us);
        others.flat_map(|life| &life.tries).any(|it| it.number == shape.attempts && it.gone_us() <= ended_us)
    }

    /// The latest attempt under its key that produced this result.
    fn source(&self, shape: &Shape) -> Option<&Try> {
        let ended_us = self.life.end?.at_us;
        let tries = self.group.iter().filter_map(|node| Some((*node, self.seen.calls.get(node)?)));
        let tries = tries.flat_map(|(node, life)| life.tries.iter().map(move |it| (node, it)));
        let gave = tries.filter(|(node, it)| it.at_us <= ended_us && gives(self.index, *node, it, shape));
        gave.map(|(_, it)| it).max_by_key(|it| it.place)
    }

    /// Checks a replay: a call whose run starts while a flight of its key is in flight must join it, whatever waits
    /// in line (ID-3).
    fn came_later(&self, source: &Try, broken: &mut dyn FnMut(&'static str, String)) {
        if let Some(ready_us) = self.ready_us()
            && source.gone_us() != u64::MAX
            && source.gone_us() > ready_us + CUT_US
        {
            let what =
                format!("was ready at {ready_us} us, and has the kept result of {} us", source.gone_us());
            broken("ID-3", what);
        }
    }

    /// The latest time at which it can have become ready: when the first call of its run did that needed no answer.
    fn ready_us(&self) -> Option<u64> {
        let placed = &self.index.batches[&self.node.batch];
        let streamed = matches!(placed.owner, Owner::Turn(turn) if matches!(turn.how, How::Streamed(_)));
        let is_free = |node: &Node<'_>| node.tool.is_some_and(|tool| tool.consent == Consent::Free);
        if streamed || self.index.program.hooks || !is_free(self.node) {
            return None;
        }
        let beside = placed.plan.calls.iter().filter_map(|call| self.index.nodes.get(&call.node));
        let beside = beside.filter(|node| node.run == self.node.run && is_free(node));
        beside.filter_map(|node| self.seen.calls.get(&node.call.node)?.ready_us()).min()
    }

    /// Checks what it is told about its effect: "not started" only if nothing ran for it.
    fn truth(&self, broken: &mut dyn FnMut(&'static str, String)) {
        let Some((place, failure)) = self.life.failure() else { return };
        let left = matches!(failure.code, ErrorKind::Cancelled | ErrorKind::DeadlineExceeded);
        let (Some(ready_us), true) = (self.ready_us(), left && failure.outcome == Effect::NotStarted) else {
            return;
        };
        let args = self.node.call.key;
        let peers = self.group.iter().filter(|peer| self.index.nodes[peer].call.key == args);
        let mut tries = peers.filter_map(|peer| self.seen.calls.get(peer)).flat_map(|life| &life.tries);
        let for_it = |it: &&Try| {
            it.at_us > ready_us + CUT_US
                && it.began.is_some_and(|(_, began)| began < place)
                && it.ended.is_none_or(|(_, ended)| ended > place)
        };
        if let Some(it) = tries.find(for_it) {
            broken(
                "V5",
                format!("is told of as not started, and what it waited for ran since {} us", it.at_us),
            );
        }
    }
}

/// Whether an attempt produced this result.
fn gives(index: &Index<'_>, node: u32, it: &Try, shape: &Shape) -> bool {
    let said = it.said.map(|(_, said)| said);
    let is = |ends: &[End]| matches!(said, Some(Said::End(end)) if ends.contains(&end));
    match shape.code {
        None => match said {
            Some(Said::CutShort) => shape.text == "cut short",
            Some(Said::End(End::Ok)) => shape.text == index.output_of(node),
            _ => false,
        },
        Some(ErrorKind::ExecutionError) => is(&[End::Fail, End::No]),
        Some(ErrorKind::Transient) => is(&[End::Transient, End::Harmless]),
        Some(ErrorKind::RateLimited) => matches!(said, Some(Said::End(End::Limited(_)))),
        Some(ErrorKind::Panic) => is(&[End::Panic]),
        _ => true,
    }
}
