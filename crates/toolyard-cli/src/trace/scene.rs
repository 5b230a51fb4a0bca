//! From events to the items of a trace.

use super::open_call::{Lane, OpenCall};
use serde_json::{Value, json};
use std::collections::HashMap;
use toolyard::{AgentPath, Event, EventKind, SessionId};

/// A call: its session, its batch, and its index in it.
type Place = (SessionId, Option<u64>, Option<u32>);

/// What is known of the run so far.
#[derive(Debug, Default)]
pub(super) struct Scene {
    agents: HashMap<(SessionId, AgentPath), Agent>,
    calls: HashMap<Place, (OpenCall, (SessionId, AgentPath))>,
    turns: HashMap<(SessionId, u64), u64>,
    received: u64,
    last: u64,
    /// How many lanes there are, of all agents.
    lanes: u64,
}

/// Where the numbers of lanes begin: those below are of agents.
const LANES_FROM: u64 = 1_000_000;

/// An agent: a process of the trace.
#[derive(Debug)]
struct Agent {
    pid: u64,
    lanes: Vec<AgentLane>,
    waiting: u64,
    running: u64,
}

/// A lane of an agent: a thread of the trace.
#[derive(Debug)]
struct AgentLane {
    tid: u64,
    /// Whether a call is in it.
    is_taken: bool,
}

impl Scene {
    /// Takes an event, and returns what it adds to the trace.
    pub(super) fn read(&mut self, event: &Event) -> Vec<Value> {
        self.last = self.last.max(event.mono_us);
        match &event.kind {
            EventKind::Received { .. } => self.begin(event),
            kind if kind.is_terminal() => self.end(event),
            EventKind::TurnStarted { .. } => {
                let started = event.turn.map(|turn| ((event.session.clone(), turn), event.mono_us));
                self.turns.extend(started);
                Vec::new()
            }
            EventKind::TurnEnded { .. } => self.end_turn(event),
            EventKind::BreakerTransition { .. } | EventKind::PoolResized { .. } => vec![happening(event)],
            _ => self.within(event),
        }
    }

    /// The calls that have not ended.
    pub(super) fn close(&mut self) -> Vec<Value> {
        let at = self.last;
        self.calls.drain().flat_map(|(_, (call, _))| call.end(at, None)).collect()
    }

    fn begin(&mut self, event: &Event) -> Vec<Value> {
        let key = (event.session.clone(), event.agent.clone());
        let next_tid = LANES_FROM + self.lanes;
        let (agent, mut items) = self.agent(&key);
        let (lane, is_new) = agent.take_lane(next_tid);
        if is_new {
            let number = agent.lanes.len();
            items.push(named("thread_name", lane, &format!("lane {number}")));
            items.push(sorted("thread_sort_index", lane, number as u64));
        }
        agent.waiting += 1;
        items.push(agent.load(event.mono_us));
        self.lanes += u64::from(is_new);
        self.received += 1;
        let call = OpenCall::new(lane, self.received, event);
        self.calls.insert(place(event), (call, key));
        items
    }

    fn within(&mut self, event: &Event) -> Vec<Value> {
        let Some((call, key)) = self.calls.get_mut(&place(event)) else { return Vec::new() };
        let was_running = call.is_running;
        call.read(event);
        match self.agents.get_mut(key) {
            Some(agent) if call.is_running && !was_running => {
                agent.waiting -= 1;
                agent.running += 1;
                vec![agent.load(event.mono_us)]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, event: &Event) -> Vec<Value> {
        let Some((call, key)) = self.calls.remove(&place(event)) else { return Vec::new() };
        let mut items = Vec::new();
        if let Some(agent) = self.agents.get_mut(&key) {
            agent.free_lane(call.lane);
            match call.is_running {
                true => agent.running -= 1,
                false => agent.waiting -= 1,
            }
            items.push(agent.load(event.mono_us));
        }
        items.extend(call.end(event.mono_us, Some(event)));
        items
    }

    fn end_turn(&mut self, event: &Event) -> Vec<Value> {
        let Some(turn) = event.turn else { return Vec::new() };
        let Some(started) = self.turns.remove(&(event.session.clone(), turn)) else { return Vec::new() };
        let (agent, mut items) = self.agent(&(event.session.clone(), event.agent.clone()));
        let (pid, took) = (agent.pid, event.mono_us.saturating_sub(started));
        items.push(json!({
            "ph": "X", "cat": "turn", "name": format!("turn {turn}"), "ts": started, "dur": took, "pid": pid, "tid": pid,
        }));
        items
    }

    /// The agent, and its names if it is new.
    fn agent(&mut self, key: &(SessionId, AgentPath)) -> (&mut Agent, Vec<Value>) {
        let mut items = Vec::new();
        let pid = self.agents.len() as u64 + 1;
        let agent = self.agents.entry(key.clone()).or_insert_with(|| {
            // The first thread of a process has its number.
            let lane = Lane { pid, tid: pid };
            items.push(named("process_name", lane, &format!("{} {}", key.0, key.1)));
            items.push(sorted("process_sort_index", lane, pid));
            items.push(named("thread_name", lane, "turns"));
            items.push(sorted("thread_sort_index", lane, 0));
            Agent { pid, lanes: Vec::new(), waiting: 0, running: 0 }
        });
        (agent, items)
    }
}

impl Agent {
    /// Takes its first free lane, or a new one with this number. Says whether it is new.
    fn take_lane(&mut self, next_tid: u64) -> (Lane, bool) {
        let free = self.lanes.iter_mut().find(|lane| !lane.is_taken);
        let (tid, is_new) = match free {
            Some(lane) => {
                lane.is_taken = true;
                (lane.tid, false)
            }
            None => {
                self.lanes.push(AgentLane { tid: next_tid, is_taken: true });
                (next_tid, true)
            }
        };
        (Lane { pid: self.pid, tid }, is_new)
    }

    fn free_lane(&mut self, lane: Lane) {
        if let Some(mine) = self.lanes.iter_mut().find(|mine| mine.tid == lane.tid) {
            mine.is_taken = false;
        }
    }

    fn load(&self, at: u64) -> Value {
        let args = json!({"running": self.running, "waiting": self.waiting});
        json!({"ph": "C", "cat": "calls", "name": "calls", "ts": at, "pid": self.pid, "tid": self.pid, "args": args})
    }
}

fn place(event: &Event) -> Place {
    (event.session.clone(), event.batch, event.index)
}

fn named(kind: &str, lane: Lane, name: &str) -> Value {
    json!({"ph": "M", "name": kind, "pid": lane.pid, "tid": lane.tid, "args": {"name": name}})
}

/// Where a process or a thread is shown among the others.
fn sorted(kind: &str, lane: Lane, index: u64) -> Value {
    json!({"ph": "M", "name": kind, "pid": lane.pid, "tid": lane.tid, "args": {"sort_index": index}})
}

/// An event of the engine, as a mark across the trace.
fn happening(event: &Event) -> Value {
    let args = serde_json::to_value(&event.kind).unwrap_or_default();
    json!({"ph": "i", "s": "g", "name": event.kind.name(), "ts": event.mono_us, "pid": 0, "tid": 0, "args": args})
}
