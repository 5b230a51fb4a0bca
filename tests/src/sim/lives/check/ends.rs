//! JR-5, JR-6, JR-8: what is taken up ends as the rules allow, and nothing runs behind a call of which nobody knows.

use super::History;
use crate::sim::{
    Fact, ResultAgain,
    check::{Earlier, Violation},
    program::{Index, Node, Placed},
};
use toolyard::{ErrorKind, OpenTurn, Reason, ToolClass};

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let (mut found, mut earlier) = (Vec::new(), Earlier::default());
    for (number, life) in history.lives.iter().enumerate() {
        for entry in &life.entries {
            let Fact::TakenUp(batch, results) = &entry.fact else { continue };
            let Some(placed) = history.index.batches.get(batch) else { continue };
            let taken_up = TakenUp { history, earlier: &earlier, life: number, placed, results };
            taken_up.check(&mut |rule, what| {
                found.push(Violation::new(rule, format!("life {}: {what}", number + 1)));
            });
        }
        earlier.follow(&life.entries);
    }
    if let Some(last) = history.lives.last().filter(|life| !life.has_crashed()) {
        // An open batch that was dropped has not got all its calls, so nothing says that it has ended (SM-4).
        // One that was dropped before it went on is left to the next life.
        let is_left = |turn: &OpenTurn| !last.takes_up(turn) || !last.drops();
        let open = last.open[1].iter();
        let open = open.filter(|turn| is_named(turn) && turn.open_calls > 0 && is_left(turn));
        found.extend(open.map(|turn| Violation::new("JR-8", format!("still open at the end: {turn:?}"))));
    }
    found
}

/// Whether somebody has named its agent, and all above it. Others end with the next resume above them, if there is one.
fn is_named(turn: &OpenTurn) -> bool {
    turn.agent.as_str().split('/').all(|name| name == "root" || name.starts_with("fork-"))
}

/// A batch that was taken up, and its results.
struct TakenUp<'a> {
    history: &'a History<'a>,
    earlier: &'a Earlier,
    life: usize,
    placed: &'a Placed<'a>,
    results: &'a [ResultAgain],
}

impl TakenUp<'_> {
    fn check(&self, broken: &mut dyn FnMut(&'static str, String)) {
        let index = &self.history.index;
        let nodes = self.placed.plan.calls.iter().filter_map(|call| index.nodes.get(&call.node));
        let (mut is_one_unknown, mut unknown) = (false, None::<&Node<'_>>);
        for (node, result) in nodes.zip(self.results) {
            let number = node.call.node;
            let is_interrupted = result.view.code == Some(ErrorKind::Interrupted);
            if is_interrupted && !self.may_be_interrupted(index, node) {
                broken("JR-5", format!("c{number} is interrupted, and need not be"));
            }
            let is_held_back = result.reason == Some(Reason::PredecessorUnknown);
            if is_held_back && (!is_one_unknown || self.history.plan.goes_on) {
                broken("JR-8", format!("c{number} was not started, and nothing before it is unknown"));
            }
            let is_behind = unknown.is_some_and(|unknown| unknown.run < node.run);
            let runs = self.history.starts_of(number).iter().any(|life| *life >= self.life);
            if is_behind && runs && !self.history.plan.goes_on {
                broken("JR-8", format!("c{number} runs behind a call of which nobody knows"));
            }
            is_one_unknown |= is_interrupted;
            // One that has the end of another call of its key was not running itself.
            if is_interrupted && self.earlier.attempts(number) > 0 && changes(node) {
                unknown.get_or_insert(node);
            }
        }
    }

    /// Whether nobody can say what a call has done.
    fn may_be_interrupted(&self, index: &Index<'_>, node: &Node<'_>) -> bool {
        let peers = index.peers(node.call.node).iter().chain([&node.call.node]);
        peers.filter_map(|peer| index.nodes.get(peer)).any(|peer| {
            let is_once = peer.tool.is_some_and(|tool| !tool.is_repeatable() || tool.recursive);
            let is_lost = is_once || peer.call.script.is_nested() || peer.call.script.forks();
            // Until the turn of another call of its key is taken up, nobody knows of the key (JR-10).
            let is_other = peer.call.node != node.call.node;
            self.earlier.attempts(peer.call.node) > 0 && (is_lost || is_other)
        })
    }
}

/// Whether a call may have changed something.
fn changes(node: &Node<'_>) -> bool {
    node.tool.is_some_and(|tool| tool.class != ToolClass::Read)
}
