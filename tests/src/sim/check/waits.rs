//! I12, CC-3: a read at the head of its session's line waits for a bounded number of another session's reads.

use super::{SLACK_US, Traces, Violation, policies::START_US, traces::AttemptTrace};
use crate::sim::{
    Fact,
    program::{Index, Node, Placement, ToolPlan, node_of_id},
};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{EventKind, MemoryRecord, ToolClass};

/// Calls that have waited this long are granted by age; less the time that may pass between a grant and its event.
const AGED_US: u64 = 2_000_000 - SLACK_US;

/// A read that was granted its permit.
struct Granted {
    node: u32,
    attempt: u32,
    root: usize,
    ready_us: u64,
    at_us: u64,
    place: usize,
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut granted = grants(index, traces);
    granted.sort_by_key(|grant| grant.place);
    let widest = widest_read_pool(index, traces);
    (0..granted.len()).filter_map(|at| waited_too_long(index, traces, &granted, at, widest)).collect()
}

fn grants(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Granted> {
    let mut granted = Vec::new();
    for (number, trace) in &traces.calls {
        let is_read = index.nodes.get(number).is_some_and(|node| node.class() == Some(ToolClass::Read));
        let root = index.root_of(*number);
        let queued = trace.events.iter().find_map(|(_, _, event)| match event.kind {
            EventKind::Called { queue_ms, .. } => Some(queue_ms),
            _ => None,
        });
        for it in trace.attempts.iter().filter(|_| is_read) {
            let AttemptTrace { at_us, place, number: attempt, .. } = *it;
            // A further attempt has waited since the end of its delay.
            let delayed = trace.attempts.iter().find(|before| before.number + 1 == attempt);
            let retried = || {
                let before = delayed?;
                Some(before.closed?.0 + before.retry?.0 * 1000)
            };
            let ready_us = match attempt {
                1 => at_us.saturating_sub(queued.unwrap_or(0) * 1000),
                _ => retried().unwrap_or(at_us).min(at_us),
            };
            granted.push(Granted { node: *number, attempt, root, ready_us, at_us, place });
        }
    }
    granted
}

/// The largest width of the read pool.
fn widest_read_pool(index: &Index<'_>, traces: &Traces<'_>) -> usize {
    let resized = traces.entries.iter().filter_map(|entry| match entry.fact {
        Fact::Resizing(ToolClass::Read, width) => Some(width),
        _ => None,
    });
    resized.chain([index.program.read]).max().unwrap_or(1)
}

/// Checks that sessions take turns. While a call is at the head of its line, another session is granted at most once
/// per lane each time the call's own session is; earlier grants may show up a little later.
fn waited_too_long(
    index: &Index<'_>,
    traces: &Traces<'_>,
    granted: &[Granted],
    at: usize,
    widest: usize,
) -> Option<Violation> {
    let grant = &granted[at];
    // A call that waits for a token or for another call's result also waits for something else.
    let node = index.nodes.get(&grant.node).filter(|node| {
        grant.attempt == 1
            && is_plain(index, node)
            && !index.waits_for_tokens(node.call.tool)
            && node.call.key.is_none()
    })?;
    let is_ahead = |other: &&Granted| {
        let other_node = index.nodes.get(&other.node);
        other.root == grant.root && other_node.is_some_and(|it| is_plain(index, it) && it.agent == node.agent)
    };
    let first_since = granted[..at].iter().filter(is_ahead).map(|other| other.at_us).max().unwrap_or(0);
    let first_since = first_since.max(grant.ready_us) + SLACK_US / 10;
    // Aged waiters are granted before turns are taken (CC-3b).
    let is_aged = |other: &Granted| other.at_us - other.ready_us >= AGED_US;
    // Its start shows up later than its grant, and others take meanwhile what is free.
    let waited_until = recorded_us(traces, grant).unwrap_or(grant.at_us).saturating_sub(START_US);
    let waited = first_since + 1..waited_until.max(first_since + 1);
    let meanwhile = granted[..at].iter().filter(|other| waited.contains(&other.at_us) && !is_aged(other));
    let mut count: BTreeMap<usize, usize> = BTreeMap::new();
    meanwhile.for_each(|other| *count.entry(other.root).or_default() += 1);
    let own = count.remove(&grant.root).unwrap_or(0);
    // By its priority, a session may be granted up to four times per round.
    let weight = |root: usize| index.program.sessions[root].priority as usize + 1;
    let most = |root: usize, own: usize| {
        (own + 1) * lanes(index, root) * weight(root).next_power_of_two() + widest + 1
    };
    let too_many = |(root, others): &(usize, usize), own| *others > most(*root, own);
    // A call that was granted a permit and then may not start has taken a turn too.
    let taken = || turns_taken(traces, grant, first_since);
    let (root, others) = count.into_iter().find(|it| too_many(it, own) && too_many(it, taken()))?;
    let what = format!("c{} was first in line while session {root} was granted {others} times", grant.node);
    Some(Violation::new("I12", what))
}

/// When the start of an attempt was given to a recorder, which it may wait for with its permit (SM-4).
fn recorded_us(traces: &Traces<'_>, grant: &Granted) -> Option<u64> {
    let is_its = |fact: &Fact| {
        matches!(fact, Fact::Recorded(record, _)
            if matches!(&**record, MemoryRecord::Attempt { call, attempt, .. }
                if *attempt == grant.attempt && node_of_id(&call.call_id) == Some(grant.node)))
    };
    traces.entries[..grant.place].iter().rev().find(|entry| is_its(&entry.fact)).map(|entry| entry.at_us)
}

/// How often a call of the same session was granted a read permit from this instant until that call was.
fn turns_taken(traces: &Traces<'_>, grant: &Granted, since_us: u64) -> usize {
    let before = traces.entries[..grant.place].iter().filter(|entry| entry.at_us >= since_us);
    let taken = before.filter(|entry| {
        matches!(&entry.fact, Fact::Permits(change) if change.what == "grant"
            && change.root == Some(grant.root as u64)
            && change.units.iter().any(|unit| unit.name.starts_with("class read")))
    });
    taken.count()
}

/// Whether a call needs a read permit and nothing else.
fn is_plain(index: &Index<'_>, node: &Node<'_>) -> bool {
    let waits_for_threads =
        |tool: &ToolPlan| index.program.threads.is_some() && tool.placement == Placement::Blocking;
    node.tool.is_some_and(|tool| tool.limit.is_none() && !waits_for_threads(tool))
        && index.agents[node.agent].cap.is_none()
        && index.program.sessions[index.agents[node.agent].root].tree_cap.is_none()
        && node.parent.is_none()
}

/// How many lanes of reads a session may have: its calls differ by agent, limited tool and depth.
fn lanes(index: &Index<'_>, root: usize) -> usize {
    let reads = index
        .nodes
        .values()
        .filter(|node| node.class() == Some(ToolClass::Read) && index.agents[node.agent].root == root);
    let lane = |node: &Node<'_>| {
        let limited = node.tool.and_then(|tool| tool.limit).map(|_| node.call.tool);
        (node.agent, limited, index.lineage(node.call.node).count())
    };
    reads.map(lane).collect::<BTreeSet<_>>().len()
}
